"""Modules around whose parts a forward runs as written."""
