"""What tracing uses of torch that is not public; docs/torch-hooks.md says of each what it is for and what guards it."""
