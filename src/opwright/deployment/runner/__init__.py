"""The C++ program of a deployment: how it is written, built and run."""
