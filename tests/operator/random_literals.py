"""Random functions of a tensor and literals that `==`, dicts, sympy and printers are likely to mistake for others."""

from __future__ import annotations

import linecache
import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

LITERALS = (
    0.0, -0.0, 1, 1.0, True, False, 0, -1, -1.0, math.nan, -math.nan, math.inf, -math.inf, 5e-324, -1e-310, 1e-45,
    1e-40, 1.1754943508222875e-38, 2**53 + 1, 2.0**53, 2**24 + 1, 0.1, 1 / 3, 1e38, -3.4028234663852886e38, 2.5, -2.5,
    0.5, 65504.0, 127, 128, -128, 255, 256, 2**31,
)  # fmt: skip
_TWINS = ((0.0, -0.0), (True, 1), (1, 1.0), (math.nan, -math.nan), (0, False), (-0.0, 0))
_EXPONENTS = (0, 0.0, -0.0, False, True, 1, 1.0, -1, 2, 2.0, 3, 0.5, math.inf, math.nan)  # whose powers are exact
_FORMS = (
    "{x} * {a}", "{x} + {a}", "{x} - {a}", "{a} - {x}", "{x} / {a}", "{a} / {x}", "torch.copysign({x}, {a})",
    "torch.where({x} > {a}, {b}, {c})", "torch.where({x} == {a}, {x}, {b})", "torch.full_like({x}, {a})",
    "torch.clamp({x}, {a}, {b})", "{x} ** {p}", "{x} >= {a}",
    "torch.add({x}, {x}, alpha=+{a})", "torch.nan_to_num({x}, {a}, {b}, {c})", "torch.where({x} < {a}, {b}, {x})",
    "{x}.masked_fill({x} != {a}, {b})", "torch.tensor([{a}, {b}], dtype={x}.dtype).sum() + {x}",
)  # fmt: skip


def _spell(value: Any) -> str:
    if isinstance(value, float) and not math.isfinite(value):
        sign = "-" if math.copysign(1, value) < 0 else ""
        return f"{sign}math.{abs(value)!r}"
    return repr(value)


def random_function(seed: int, x: Tensor, outputs: int = 24) -> Callable[[Tensor], tuple[Tensor, ...]]:
    """A function of a tensor that returns as many tensors, each of an expression with literals.

    Args:
        seed: Another one gives another function.
        x: What it is for: expressions that raise for it are left out.
        outputs: How many there are at least.
    """
    chooser = random.Random(seed)
    lines: list[str] = []
    while len(lines) < outputs:
        form, others = chooser.choice(_FORMS), {name: _spell(chooser.choice(LITERALS)) for name in "bc"}
        first = chooser.choice([*_TWINS, *((literal,) for literal in LITERALS)])
        exponents = chooser.sample(_EXPONENTS, len(first))
        for value, exponent in zip(first, exponents, strict=True):  # the same again with what looks equal
            line = form.format(x="x", a=_spell(value), p=_spell(exponent), **others)
            lines += [line] if _is_taken(line, x) else []
    returned = ",\n        ".join(lines)
    text = f"def literals_{seed}(x: Tensor):\n    return (\n        {returned},\n    )\n"
    file = f"<literals {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    names: dict[str, Any] = {"torch": torch, "Tensor": Tensor, "math": math}
    exec(compile(text, file, "exec"), names)
    function: Callable[[Tensor], tuple[Tensor, ...]] = names[f"literals_{seed}"]
    return function


def _is_taken(line: str, x: Tensor) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            eval(line, {"torch": torch, "math": math}, {"x": x})
    except (RuntimeError, OverflowError, TypeError, ZeroDivisionError):
        return False
    return True


def differences(function: Callable[..., Any], actual: Any, expected: Any) -> list[str]:
    """Lines whose results differ in a bit, the sign of zero included; a NaN is a NaN.

    A product with `alpha` may be off by its rounding: eager's vectors add it before they round, and its last elements
    after. So may a square root: on some processors, eager takes those of MKL, which are not the nearest numbers.
    """
    text = linecache.getlines(function.__code__.co_filename)[2:]
    return [
        f"{line.strip()} gives {one.tolist()}, not {other.tolist()}"
        for line, one, other in zip(text, actual, expected, strict=False)
        if one.dtype is not other.dtype or not (torch.equal(_bits(one), _bits(other)) or _may_be_off(line, one, other))
    ]


def _may_be_off(line: str, one: Tensor, other: Tensor) -> bool:
    if not any(word in line for word in ("alpha", "** 0.5", "** -0.5", "sqrt")) or not one.dtype.is_floating_point:
        return False
    return torch.allclose(one, other, rtol=2 * torch.finfo(one.dtype).eps, atol=0, equal_nan=True)


def _bits(tensor: Tensor) -> Tensor:
    """The bits of numbers; every NaN has the same."""
    if not tensor.dtype.is_floating_point:
        return tensor
    kinds = {2: torch.int16, 4: torch.int32, 8: torch.int64}
    return torch.where(tensor.isnan(), math.nan, tensor).view(kinds[tensor.element_size()])
