"""Calls: which functions are called, and what with."""
