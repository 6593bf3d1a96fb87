"""Wheels that need torch alone."""
