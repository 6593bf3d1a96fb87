"""The parts of an operator, one class each, which `operators/base.py` puts together."""
