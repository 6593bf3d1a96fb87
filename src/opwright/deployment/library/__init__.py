"""The C++ library of a deployed model: its operators, their kernels, and their references beside them."""
