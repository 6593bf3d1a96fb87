"""What code of Python says by itself: the names in it, and the lines that make sets."""
