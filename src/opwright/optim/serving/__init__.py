"""What serves a step: kernels, tables of tensors for them, and plans that hold while memory does not move."""
