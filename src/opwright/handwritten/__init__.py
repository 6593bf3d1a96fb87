"""Handwritten rungs: their sources, their contracts, and the autograd node that runs them."""
