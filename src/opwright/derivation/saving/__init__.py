"""What the backward pass keeps of the forward pass, and what it computes again."""
