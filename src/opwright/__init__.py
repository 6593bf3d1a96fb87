"""opwright: one PyTorch function in, a finished operator out."""
