"""Spellings: the many names of one function of PyTorch, such as torch.add, Tensor.add_, `+` and `__radd__`."""
