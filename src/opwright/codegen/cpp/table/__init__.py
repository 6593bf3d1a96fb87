"""Updates of many tensors in place, by one function that reads a table of their addresses."""
