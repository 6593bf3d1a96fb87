"""new: a project to begin with, an operator with samples and tests in it."""
