"""Calls of torch functions, printed or recorded."""
