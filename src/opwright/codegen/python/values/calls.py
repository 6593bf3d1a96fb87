"""Library calls in Python: `torch.ops.aten.addmm(bias, x, weight, alpha=2)`."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence

from opwright.errors import NoKernel
from opwright.ir.expressions.integer import Integer
from opwright.ir.printer import print_operand
from opwright.ir.program import Call, ConstantOperand, Operand, OptionalOperand

_SCALED = ("beta", "alpha")
_FACTORY = ("dtype", "layout", "device", "pin_memory")

# The last arguments of some operations can only be given by name (torch's native_functions.yaml).
KEYWORDS: dict[str, tuple[str, ...]] = {
    "aten::add.Tensor": ("alpha",),
    "aten::addbmm": _SCALED,
    "aten::addcdiv": ("value",),
    "aten::addcmul": ("value",),
    "aten::addmm": _SCALED,
    "aten::addmv": _SCALED,
    "aten::addr": _SCALED,
    "aten::aminmax": ("dim", "keepdim"),
    "aten::arange": _FACTORY,
    "aten::arange.start": _FACTORY,
    "aten::arange.start_step": _FACTORY,
    "aten::argsort.stable": ("stable", "dim", "descending"),
    "aten::baddbmm": _SCALED,
    "aten::bucketize.Tensor": ("out_int32", "right"),
    "aten::clone": ("memory_format",),
    "aten::div.Tensor_mode": ("rounding_mode",),
    "aten::full": _FACTORY,
    "aten::gather": ("sparse_grad",),
    "aten::gelu": ("approximate",),
    "aten::gelu_backward": ("approximate",),
    "aten::index_add": ("alpha",),
    "aten::index_reduce": ("include_self",),
    "aten::isin.Tensor_Tensor": ("assume_unique", "invert"),
    "aten::kl_div": ("log_target",),
    "aten::linalg_cholesky": ("upper",),
    "aten::linalg_solve_triangular": ("upper", "left", "unitriangular"),
    "aten::new_zeros": _FACTORY,
    "aten::ones": _FACTORY,
    "aten::repeat_interleave.self_int": ("output_size",),
    "aten::scalar_tensor": _FACTORY,
    "aten::scatter.reduce": ("reduce",),
    "aten::scatter_reduce.two": ("include_self",),
    "aten::searchsorted.Tensor": ("out_int32", "right", "side", "sorter"),
    "aten::sort.stable": ("stable", "dim", "descending"),
    "aten::std.correction": ("correction", "keepdim"),
    "aten::sub.Tensor": ("alpha",),
    "aten::sum.dim_IntList": ("dtype",),
    "aten::var.correction": ("correction", "keepdim"),
    "aten::var_mean.correction": ("correction", "keepdim"),
    "aten::zeros": _FACTORY,
}
_ONE_BY_DEFAULT = frozenset({"beta", "alpha", "value"})


def spell_call(step: Call, buffer: Callable[[str], str], size: Callable[[Integer], str], device: str) -> str:
    """Write a library call; `buffer`, `size` and `device` say how its operands are written.

    Raises:
        NoKernel: If an operand has no Python spelling.
    """
    name = f"{step.function}.{step.overload}" if step.overload else step.function
    names = KEYWORDS.get(name, ())
    positional = len(step.operands) - len(names)

    def constant(value: float | bool | str, kind: str) -> str:
        return device if kind == "Device" else spell_constant(value, kind)

    given = [print_operand(operand, buffer, size, constant) for operand in step.operands]
    keywords = [
        f"{keyword}={text}"
        for keyword, text in zip(names, given[positional:], strict=True)
        if text != "None" and not (keyword in _ONE_BY_DEFAULT and text == "1")
    ]
    return f"torch.ops.{name.replace('::', '.')}({', '.join([*_positional(step, given[:positional]), *keywords])})"


def _positional(step: Call, given: Sequence[str]) -> list[str]:
    """Operands in order, without Nones at the end; a dtype is a keyword argument, which every operation allows."""
    texts = list(given)
    while texts and texts[-1] == "None":
        texts.pop()
    for position, operand in enumerate(step.operands[: len(texts)]):
        if _is_dtype(operand) and texts[position] != "None":
            if position < len(texts) - 1:
                raise NoKernel(f"{step.function} takes operands after a dtype, and the function rung cannot name those")
            texts[position] = f"dtype={texts[position]}"
    return texts


def _is_dtype(operand: Operand) -> bool:
    given = operand.item if isinstance(operand, OptionalOperand) else operand
    return isinstance(given, ConstantOperand) and given.kind == "ScalarType"


def spell_constant(value: float | int | bool | str | None, kind: str = "") -> str:
    """Write a constant; `kind` tells a dtype from a string."""
    if isinstance(value, str):
        return f"torch.{value}" if kind in ("ScalarType", "Layout") else json.dumps(value)
    if isinstance(value, float):
        return spell_number(value)
    return repr(value)


def spell_number(value: float | int | bool) -> str:
    """Write a number as short as its value allows: a float tensor takes `2` for 2.0."""
    if isinstance(value, bool):
        return str(value)
    if value != value:
        return "torch.nan" if math.copysign(1, value) > 0 else "-torch.nan"
    if value in (float("inf"), float("-inf")):
        return "torch.inf" if value > 0 else "-torch.inf"
    is_negative_zero = value == 0 and str(value).startswith("-")
    return str(int(value)) if value == int(value) and abs(value) < 1e6 and not is_negative_zero else repr(value)
