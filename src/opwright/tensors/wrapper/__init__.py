"""Tensor subclasses around tensors, with metadata that travels."""
