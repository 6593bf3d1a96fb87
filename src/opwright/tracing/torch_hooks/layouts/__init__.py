"""How results lie in memory, where torch does not tell it of fake tensors, or takes long."""
