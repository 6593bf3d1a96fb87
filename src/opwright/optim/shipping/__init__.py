"""Optimizers that leave this process: in wheels, and as projects of their own."""
