"""Values: what to give for a parameter of a function, by its type and its name.

Nobody has written example calls for a thousand functions. A schema and a few guesses for each parameter give one that
PyTorch accepts of most; the search for it is in `plan.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from opwright.tensors.spellings.overloads import Parameter


class Place:
    """The mark of the tensor that is tried, or of a second one of its shape."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return self.name


SAMPLE, OTHER = Place("sample"), Place("other")

_UNGIVEN = frozenset(
    {"device", "generator", "inplace", "layout", "memory_format", "out", "pin_memory", "stream", "_stacklevel"}
)
_WORDS: dict[str, tuple[Any, ...]] = {
    "equation": ("ij,ij->ij", "i,i->i"),
    "indexing": ("ij",),
    "mode": ("constant", "nearest", "mean"),
    "ord": ("fro", 2),
    "pad": ([0, 1],),
    "reduce": ("sum",),
    "reduction": ("mean", 1),
    "rounding_mode": ("floor",),
    "side": ("right",),
    "approximate": ("tanh",),
    "padding": (0, (1,)),
    "UPLO": ("U",),
}
_SIZES: dict[str, tuple[Any, ...]] = {
    "axis0": (0,),
    "axis1": (1, 0),
    "blank": (0,),
    "dim": (0,),
    "dim0": (0,),
    "dim1": (1, 0),
    "dim2": (1,),
    "diagonal": (1,),
    "end_dim": (1, 0),
    "groups": (1,),
    "k": (1,),
    "length": (1,),
    "n": (2,),
    "num_classes": (5,),
    "offset": (1,),
    "sections": (1,),
    "size": (2, 1),
    "start_dim": (0,),
    "start": (0,),
    "step": (1,),
    "wrap": (False,),
    "training": (True,),
    "train": (True,),
}
_LISTS: dict[str, Callable[[torch.Tensor], tuple[Any, ...]]] = {
    "dims": lambda x: (tuple(reversed(range(x.dim()))), (0,)),
    "kernel_size": lambda x: ((1,) * max(x.dim() - 1, 1), (1,) * max(x.dim() - 2, 1), 1),
    "normalized_shape": lambda x: ((x.shape[-1:]),),
    "output_size": lambda x: ((1,) * max(x.dim() - 1, 1), (1,) * max(x.dim() - 2, 1)),
    "pad": lambda x: ((0, 1),),
    "repeats": lambda x: ((2,) * max(x.dim(), 1),),
    "shape": lambda x: (tuple(x.shape),),
    "size": lambda x: (tuple(x.shape),),
    "sizes": lambda x: ((1, *x.shape[1:]), tuple(x.shape)),
    "split_sizes": lambda x: ((1, x.shape[0] - 1),),
    "stride": lambda x: (tuple(x.stride()),),
}


def candidates(parameter: Parameter, dense: torch.Tensor) -> list[Any]:
    """What to try for a parameter that must be given, the likeliest first.

    Args:
        parameter: The parameter.
        dense: The dense tensor of the sample, whose shape and dtype others have.
    """
    kind, name = parameter.type, parameter.name
    if kind.startswith("Optional["):
        kind = kind.removeprefix("Optional[").removesuffix("]")
    if kind == "Tensor":
        return _tensors(name, dense)
    if "List[Optional[Tensor]]" in kind or kind == "List[Tensor]":
        indices = [torch.zeros(1, dtype=torch.int64)]
        return [indices] if "ind" in name else [[SAMPLE, OTHER], [SAMPLE], [OTHER, SAMPLE, OTHER]]
    if name in ("dtype", "output_dtype"):
        return [torch.float64]
    if kind in ("List[int]", "List[SymInt]"):
        return [*(_LISTS[name](dense) if name in _LISTS else ()), (0,), (1,), (1, 1), (0, 1)]
    if kind == "bool":
        return [parameter.default is False]
    if kind in ("int", "SymInt"):
        return [*_SIZES.get(name, ()), 0, 1, 2]
    if name == "rcond":  # of matrices without full rank, solutions depend on memory that PyTorch does not initialise
        return [1e-6]
    if kind in ("number", "float", "complex"):
        return [0.5, 2]
    if kind == "str":
        return list(_WORDS.get(name, ("mean",)))
    return _any(parameter, dense)


def variants(parameter: Parameter, dense: torch.Tensor) -> list[Any]:
    """What to give for a parameter that may be left out, beside its default."""
    if parameter.name in _UNGIVEN or parameter.name.startswith("_"):
        return []
    if isinstance(parameter.default, bool):
        return [not parameter.default]
    if isinstance(parameter.default, (int, float)):
        return [parameter.default + 1]
    found = candidates(parameter, dense)
    return [value for value in found if not isinstance(value, Place)][:2] if parameter.type != "Any" else []


def _tensors(name: str, dense: torch.Tensor) -> list[Any]:
    index = torch.zeros(1, dtype=torch.int64)
    first, last = dense.shape[0] if dense.dim() else 1, dense.shape[-1] if dense.dim() else 1
    if "mask" in name or name == "condition":
        return [dense > dense.float().mean() if not dense.is_complex() else torch.ones(dense.shape, dtype=torch.bool)]
    if "ind" in name:
        return [index, torch.zeros(dense.shape, dtype=torch.int64), torch.zeros(1, 1, dtype=torch.int64)]
    row, column = torch.ones(last, dtype=dense.dtype), torch.ones(first, dtype=dense.dtype)
    if name in ("running_mean", "running_var", "bias", "mean", "var"):
        return [row, None, OTHER]
    rest: list[Any] = [row, column, torch.zeros(first, dtype=torch.int64), torch.ones((), dtype=dense.dtype)]
    if name == "weight":
        rest = [
            row,
            torch.ones(first, first, 1, dtype=dense.dtype),
            None,
            torch.ones(first, first, 1, 1).to(dense.dtype),
        ]
    return [SAMPLE, *rest, dense.unsqueeze(0)]


def _any(parameter: Parameter, dense: torch.Tensor) -> list[Any]:
    """For functions in Python, whose parameters have no types."""
    name = parameter.name
    if name in ("tensors", "arrays", "seq", "matrices"):
        return [[SAMPLE, OTHER], SAMPLE]
    if name in _LISTS:
        return [*_LISTS[name](dense), 1]
    if name in _WORDS:
        return list(_WORDS[name])
    if name in ("split_size", "split_size_or_sections", "num_groups", "num_samples", "scale_factor", "indices"):
        return [1, (1,)]
    if name in _SIZES:
        return list(_SIZES[name])
    if name in ("p", "q", "alpha", "beta", "margin", "threshold", "value", "exponent"):
        return [0.5, 2, OTHER]
    if name in ("dtype", "output_dtype"):
        return [torch.float64]
    return [*_tensors(name, dense), 1, 0.5, (1,)]
