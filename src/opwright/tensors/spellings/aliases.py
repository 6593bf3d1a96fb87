"""Names that PyTorch has for one function: its aliases, and what Python's operators call.

Each row is a fact about PyTorch. Its documentation says "Alias for" of most of `ALIASES`; a test finds those that are
missing here.
"""

from __future__ import annotations

ALIASES = {
    "absolute": "abs",
    "arccos": "acos",
    "arccosh": "acosh",
    "arcsin": "asin",
    "arcsinh": "asinh",
    "arctan": "atan",
    "arctan2": "atan2",
    "arctanh": "atanh",
    "clip": "clamp",
    "concat": "cat",
    "concatenate": "cat",
    "divide": "div",
    "fix": "trunc",
    "ger": "outer",
    "greater": "gt",
    "greater_equal": "ge",
    "less": "lt",
    "less_equal": "le",
    "linalg_det": "det",
    "linalg_inv": "inverse",
    "linalg_matmul": "matmul",
    "linalg_matrix_exp": "matrix_exp",
    "linalg_matrix_power": "matrix_power",
    "linalg_slogdet": "slogdet",
    "mH": "adjoint",
    "moveaxis": "movedim",
    "multiply": "mul",
    "ndim": "dim",
    "ndimension": "dim",
    "negative": "neg",
    "nelement": "numel",
    "not_equal": "ne",
    "orgqr": "linalg_householder_product",
    "row_stack": "vstack",
    "special_digamma": "digamma",
    "special_erf": "erf",
    "special_erfc": "erfc",
    "special_erfinv": "erfinv",
    "special_exp2": "exp2",
    "special_expit": "sigmoid",
    "special_expm1": "expm1",
    "special_gammainc": "igamma",
    "special_gammaincc": "igammac",
    "special_gammaln": "lgamma",
    "special_i0": "i0",
    "special_log1p": "log1p",
    "special_log_softmax": "log_softmax",
    "special_logit": "logit",
    "special_logsumexp": "logsumexp",
    "special_multigammaln": "mvlgamma",
    "special_polygamma": "polygamma",
    "special_psi": "digamma",
    "special_round": "round",
    "special_sinc": "sinc",
    "special_softmax": "softmax",
    "special_xlogy": "xlogy",
    "subtract": "sub",
    "swapaxes": "transpose",
    "swapdims": "transpose",
    "trapz": "trapezoid",
    "true_divide": "div",
}
"""The name of a function in ATen, or of a property of tensors, and the one that stands for all."""

OPERATORS = {
    "abs": "abs",
    "add": "add",
    "and": "bitwise_and",
    "div": "div",
    "eq": "eq",
    "floordiv": "floor_divide",
    "ge": "ge",
    "gt": "gt",
    "idiv": "div",
    "invert": "bitwise_not",
    "le": "le",
    "lshift": "bitwise_left_shift",
    "lt": "lt",
    "matmul": "matmul",
    "mod": "remainder",
    "mul": "mul",
    "ne": "ne",
    "neg": "neg",
    "or": "bitwise_or",
    "pos": "positive",
    "pow": "pow",
    "rshift": "bitwise_right_shift",
    "sub": "sub",
    "truediv": "div",
    "xor": "bitwise_xor",
}
"""The method of an operator, without its underscores, and the function that it is."""

SAME_METHODS = {"__nonzero__": "__bool__", "__long__": "__int__"}

SWAPPED = frozenset({"torch.rsub", "torch.Tensor.where", "torch.Tensor.polygamma", "torch.Tensor.polygamma_"})
"""Functions that take the first two arguments of their family in the other order."""

SWAPPED_NAMES = {"rsub": "sub"}

IN_NN = frozenset(
    {
        "batch_norm",
        "celu",
        "group_norm",
        "layer_norm",
        "log_softmax",
        "relu",
        "rms_norm",
        "selu",
        "softmax",
        "threshold",
    }
)
"""Functions of torch.nn.functional that are those of torch, with other parameters beside or in another order."""

OTHER_KEYWORDS = {
    "axis": ("dim",),
    "keepdims": ("keepdim",),
    "x": ("input", "self"),
    "a": ("input", "self"),
    "x1": ("input", "self"),
    "x2": ("other",),
    "input": ("self",),
    "self": ("input",),
}
"""Names of arguments that PyTorch's parser takes for another, after NumPy's; and `self`, which Python calls `input`."""
