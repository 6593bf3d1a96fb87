"""What an optimizer tells of itself: `check`, `bench` and `explain`."""
