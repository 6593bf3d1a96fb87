"""What a call of a type costs: a wrapper and a Like, against the same types written by hand; 8 elements, µs.

python benchmarks/tensor_types.py [--json FILE]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import torch
from scorecard import Options, Row, Scorecard, Target, medians_us, run_script

import opwright

MOST = 1.3


class Meta(opwright.tensors.Wrapper, data=("elem",), meta=("owner",)):
    """A tensor with an owner."""

    @staticmethod
    def merge(metas: Sequence[Any]) -> Any:
        """The first one's."""
        return metas[0]


class MetaByHand(torch.Tensor):
    """The same, as a careful person writes it who wants it quick: no tree_map, no more than it needs."""

    elem: torch.Tensor
    owner: str
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    @staticmethod
    def __new__(cls: Any, elem: torch.Tensor, owner: str) -> Any:
        """Wrap a tensor."""
        self = torch.Tensor._make_wrapper_subclass(
            cls,
            elem.size(),
            strides=elem.stride(),
            storage_offset=elem.storage_offset(),
            dtype=elem.dtype,
            layout=elem.layout,
            device=elem.device,
        )
        self.elem, self.owner = elem, owner
        return self

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:  # type: ignore[override]
        """Open, run, wrap."""
        owner, inner = None, []
        for arg in args:
            if isinstance(arg, MetaByHand):
                if owner is None:
                    owner = arg.owner
                inner.append(arg.elem)
            else:
                inner.append(arg)
        result = func(*inner, **(kwargs or {}))
        return cls(result, owner) if isinstance(result, torch.Tensor) and owner is not None else result


class Scaled(opwright.tensors.Like):
    """A multiple of the identity."""

    def __init__(self, n: int, value: float) -> None:
        self.n, self.value = n, value

    def densify(self) -> torch.Tensor:
        """As a matrix."""
        return self.value * torch.eye(self.n)


@Scaled.implements(torch.add)
def add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Add two of them, or one and a number."""
    if isinstance(input, float):
        input, other = other, input
    return Scaled(input.n, input.value + alpha * (other if isinstance(other, float) else other.value))


@Scaled.implements(torch.softmax)
def softmax(input: Any, dim: Any, dtype: Any = None) -> Any:
    """Nothing, for it is the call that is measured."""
    return input


@Scaled.implements(torch.trace)
def trace(input: Any) -> float:
    """Sum the diagonal."""
    return float(input.n * input.value)


class ScaledByHand:
    """The same, with the table of PyTorch's documentation."""

    HANDLED: ClassVar[dict[Any, Callable[..., Any]]] = {}

    def __init__(self, n: int, value: float) -> None:
        self.n, self.value = n, value

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Look the handler up, and ask for types that it knows, as the documentation does."""
        if func not in cls.HANDLED or not all(issubclass(each, (torch.Tensor, ScaledByHand)) for each in types):
            return NotImplemented
        return cls.HANDLED[func](*args, **(kwargs or {}))

    def __add__(self, other: Any) -> Any:
        return torch.add(self, other)

    def __radd__(self, other: Any) -> Any:
        return torch.add(other, self)

    def trace(self) -> Any:
        return torch.trace(self)  # type: ignore[arg-type]


def _add_by_hand(input: Any, other: Any, *, alpha: float = 1) -> Any:
    if isinstance(input, float):
        input, other = other, input
    return ScaledByHand(input.n, input.value + alpha * (other if isinstance(other, float) else other.value))


def _softmax_by_hand(input: Any, dim: Any = None, _stacklevel: int = 3, dtype: Any = None) -> Any:
    return input


ScaledByHand.HANDLED = {
    torch.add: _add_by_hand,
    torch.nn.functional.softmax: _softmax_by_hand,
    torch.trace: lambda input: float(input.n * input.value),
}


def measure(options: Options) -> Scorecard:
    """Time the kit's types and those by hand in turns."""
    x, y = torch.randn(8), torch.randn(8)
    meta, other, meta_hand, other_hand = Meta(x, "a"), Meta(y, "b"), MetaByHand(x, "a"), MetaByHand(y, "b")
    learns, learns_hand = Meta(x.clone(), "a").requires_grad_(), MetaByHand(x.clone(), "a").requires_grad_()
    like, like_hand = Scaled(5, 2.0), ScaledByHand(5, 2.0)
    cases: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
        "wrapper: x + y": (lambda: meta + other, lambda: meta_hand + other_hand),
        "wrapper: x + tensor": (lambda: meta + y, lambda: meta_hand + y),
        "wrapper: x + y, recording": (lambda: learns + other, lambda: learns_hand + other_hand),
        "wrapper: torch.exp(x)": (lambda: torch.exp(meta), lambda: torch.exp(meta_hand)),
        "like: torch.add(x, y)": (lambda: torch.add(like, like), lambda: torch.add(like_hand, like_hand)),  # type: ignore[call-overload]
        "like: x + y": (lambda: like + like, lambda: like_hand + like_hand),
        "like: torch.add(x, y, alpha=2)": (
            lambda: torch.add(like, like, alpha=2),  # type: ignore[call-overload]
            lambda: torch.add(like_hand, like_hand, alpha=2),  # type: ignore[call-overload]
        ),
        "like: 1.0 + x": (lambda: 1.0 + like, lambda: 1.0 + like_hand),
        "like: x.trace()": (lambda: like.trace(), lambda: like_hand.trace()),
        "like: F.softmax(x, 0), by torch.softmax": (
            lambda: torch.nn.functional.softmax(like, 0),  # type: ignore[arg-type]
            lambda: torch.nn.functional.softmax(like_hand, 0),  # type: ignore[arg-type]
        ),
        "like: torch.trace(x)": (lambda: torch.trace(like), lambda: torch.trace(like_hand)),  # type: ignore[arg-type]
    }
    rows = [_row(name, kit, by_hand, options) for name, (kit, by_hand) in cases.items()]
    targets = [Target(row.name, row.figures["kit / by hand"] or 0.0, "<=", MOST, " ×") for row in rows]
    return Scorecard("one call of a type, on 8 elements; µs", rows, targets)


def _row(name: str, kit: Callable[[], Any], by_hand: Callable[[], Any], options: Options) -> Row:
    found = medians_us({"kit": kit, "by hand": by_hand}, options)
    return Row(name, {**found, "kit / by hand": found["kit"] / found["by hand"]})


if __name__ == "__main__":
    run_script(measure, __doc__)
