"""Like: types that act like tensors and are none."""
