"""Checks of sizes at the head of emitted Python."""
