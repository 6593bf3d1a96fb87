"""The private parts of torch that tracing uses; docs/torch-hooks.md gives the purpose and the test of each."""
