"""Ready optimizers: those of torch.optim with their arguments and numbers, and others from their papers."""
