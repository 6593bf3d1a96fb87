"""Models as ExecuTorch programs."""
