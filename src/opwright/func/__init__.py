"""`torch.func` with kernels: transforms that give operators, one derived program each, however they nest."""

from opwright.func.functional import functional_call
from opwright.func.immediate import jvp, linearize, vjp
from opwright.func.transforms import grad, grad_and_value, hessian, jacfwd, jacrev, value_and_grad, vmap

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "value_and_grad",
    "vjp",
    "vmap",
]
