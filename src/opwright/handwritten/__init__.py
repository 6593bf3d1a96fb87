"""Rungs written by hand: their sources, the contract they keep, and the node that runs them."""
