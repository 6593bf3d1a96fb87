"""Optimizers derived from the update of one parameter, and ready ones."""
