"""Models as TorchScript, and a library with their operators."""
