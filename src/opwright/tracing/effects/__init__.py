"""What a reference changes outside of itself, seen while it is traced and undone: a kernel would do none of it."""
