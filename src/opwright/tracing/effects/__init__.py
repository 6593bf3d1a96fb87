"""Side effects of a reference, detected during its trace and undone: a kernel would not have them."""
