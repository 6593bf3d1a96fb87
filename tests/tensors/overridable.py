"""Every overridable function of torch through a wrapper with metadata, the wrapper in each place of a tensor in turn.

Calls are those of PyTorch's own test table, found by the function's name, and a few simple ones for what is not in it.
A call counts if it works on plain tensors and gives tensors.
"""

from __future__ import annotations

import copy
import re
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import torch
from torch.overrides import get_overridable_functions, resolve_name
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from opwright.tensors import Wrapper
from tests.tensors.wrapped import Meta
from tests.torch_tables import stand_in_for_expecttest

Sample = tuple[tuple[Any, ...], dict[str, Any]]

_ALIASES = {
    "absolute": "abs", "concat": "cat", "concatenate": "cat", "divide": "div", "multiply": "mul", "subtract": "sub",
    "truediv": "true_divide", "floordiv": "floor_divide", "mod": "remainder", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "bitwise_left_shift", "rshift": "bitwise_right_shift", "invert": "bitwise_not",
    "getitem": "__getitem__",
}  # fmt: skip


def functions() -> dict[str, Callable[..., Any]]:
    """Every overridable function by its name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [function for group in get_overridable_functions().values() for function in group]
    return {resolve_name(function) or repr(function): function for function in found}


@cache
def _table() -> dict[str, list[Any]]:
    stand_in_for_expecttest()
    from torch.testing._internal.common_methods_invocations import op_db

    table: dict[str, list[Any]] = {}
    for info in op_db:
        for name in {info.name, *(alias.name for alias in info.aliases)}:
            table.setdefault(name.rpartition(".")[2], []).append(info)
    return table


def _base_names(name: str) -> Iterator[str]:
    last = name.removesuffix(".__get__").rpartition(".")[2]
    yield last
    for base in (last.strip("_"), last.rstrip("_"), last.removesuffix("_"), last.replace("_copy", "")):
        for spelt in (base, re.sub(r"^[ri](?=\w{2})", "", base) if last.startswith("__") else base):
            yield _ALIASES.get(spelt, spelt)
            yield spelt


def samples(name: str) -> Iterator[Sample]:
    """Calls to try, those of the table first."""
    for base in dict.fromkeys(_base_names(name)):
        for info in _table().get(base, ()):
            for dtype in (torch.float32, torch.int64, torch.bool, torch.complex64):
                if dtype in info.dtypes:
                    for given, _ in zip(info.sample_inputs("cpu", dtype), range(6), strict=False):
                        yield (given.input, *given.args), dict(given.kwargs)
    yield from by_hand().get(name.rpartition(".")[2], ())
    x, whole, square = torch.rand(2, 3), torch.ones(2, 3, dtype=torch.int64), torch.eye(3) * 2
    sizes: tuple[tuple[int, ...], ...] = ((3,), (2, 3, 4), (), (1, 2, 4, 4))
    for given in (x, whole, square, whole.bool(), *map(torch.rand, sizes)):
        rest = (
            (),
            (given,),
            (1,),
            (0,),
            (2.0,),
            (torch.float64,),
            ((1,),),
            (given, given),
            (0, 1),
            (0, 0, 1),
            ("cpu",),
        )
        for more in rest:
            yield (given, *more), {}
    yield ([x, x],), {}
    yield ((2, 3),), {}


@cache
def by_hand() -> dict[str, list[Sample]]:
    """Calls of functions that the table spells otherwise, or does not have."""
    image, row, signs = torch.rand(1, 2, 4, 4), torch.rand(2, 3), torch.ones(2)
    state, weights = torch.rand(2, 3), [torch.rand(12, 3), torch.rand(12, 3), torch.rand(12), torch.rand(12)]
    cells = {
        "lstm_cell": (row, [state, state], *weights),
        "gru_cell": (row, state, *(weight[:9] for weight in weights)),
        "rnn_relu_cell": (row, state, *(weight[:3] for weight in weights)),
        "rnn_tanh_cell": (row, state, *(weight[:3] for weight in weights)),
    }
    hidden, how = state[None], (True, 1, 0.0, False, False, False)
    layers = {
        "lstm": (row[None], [hidden, hidden], weights, *how),
        "gru": (row[None], hidden, [weight[:9] for weight in weights], *how),
        "rnn_relu": (row[None], hidden, [weight[:3] for weight in weights], *how),
        "rnn_tanh": (row[None], hidden, [weight[:3] for weight in weights], *how),
    }
    norm = (image, signs, signs, torch.zeros(2), signs, False, 0.1, 1e-5, False)
    single = {
        "batch_norm": norm,
        "instance_norm": (image, signs, signs, torch.zeros(2), signs, True, 0.1, 1e-5, False),
        "convolution": (image, torch.rand(3, 2, 2, 2), torch.rand(3), (1, 1), (0, 0), (1, 1), False, (0, 0), 1),
        "conv_tbc": (torch.rand(4, 1, 2), torch.rand(2, 2, 3), torch.rand(3)),
        "affine_grid_generator": (torch.rand(1, 2, 3), (1, 2, 4, 4), False),
        "affine_grid": (torch.rand(1, 2, 3), (1, 2, 4, 4)),
        "grid_sampler": (image, torch.rand(1, 3, 3, 2), 0, 0, False),
        "fold": (torch.rand(1, 8, 9), (4, 4), (2, 2)),
        "lp_pool1d": (torch.rand(1, 2, 4), 2.0, 2),
        "lp_pool2d": (image, 2.0, 2),
        "lp_pool3d": (torch.rand(1, 2, 4, 4, 4), 2.0, 2),
        "polygamma": (1, row),
        "dropout": (row, 0.5, True),
        "alpha_dropout": (row, 0.5, True),
        "feature_dropout": (image, 0.5, True),
        "feature_alpha_dropout": (image, 0.5, True),
        "native_dropout": (row, 0.5, True),
        "embedding_bag": (row, torch.tensor([0, 1, 1]), torch.tensor([0, 2])),
        "cosine_embedding_loss": (row, row + 1, signs),
        "poisson_nll_loss": (row, row, True, False, 1e-8, 1),
        "ctc_loss": (torch.rand(4, 1, 3).log_softmax(2), torch.tensor([[1, 2]]), torch.tensor([4]), torch.tensor([2])),
        "fake_quantize_per_tensor_affine": (row, 0.1, 0, 0, 255),
        "fake_quantize_per_channel_affine": (row, torch.ones(2), torch.zeros(2, dtype=torch.int32), 0, 0, 255),
        "float_power_": (row.double(), 2),
    }
    return {name: [(tuple(args), {})] for name, args in (single | cells | layers).items()}


def _copied(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else copy.copy(value)


def calls(sample: Sample) -> Iterator[Sample]:
    """The call with a wrapper instead of each of its tensors in turn, then of all."""
    leaves, layout = tree_flatten(sample)
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    for chosen in [*([place] for place in places), *([places] if len(places) > 1 else [])]:
        given = [Meta(_copied(leaf), "me") if place in chosen else _copied(leaf) for place, leaf in enumerate(leaves)]
        yield tree_unflatten(given, layout)


def first_that_works(name: str, function: Callable[..., Any]) -> tuple[Sample, Any] | None:
    """A call that works where its tensors are plain, and what it gives; one that gives tensors if there is any."""
    without = None
    for sample in samples(name):
        leaves, layout = tree_flatten(sample)
        args, kwargs = tree_unflatten([_copied(leaf) for leaf in leaves], layout)
        try:
            torch.manual_seed(0)
            result = function(*args, **kwargs)
        except Exception:
            continue
        if any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(result)):
            return sample, result
        without = without or (sample, result)
    return without


class _Written(TorchDispatchMode):
    """Writes down operations that are given a wrapper and change a plain tensor."""

    def __init__(self) -> None:
        super().__init__()
        self.operations: set[str] = set()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        given = dict(zip((argument.name for argument in func._schema.arguments), args, strict=False), **(kwargs or {}))
        changed = [argument.name for argument in func._schema.arguments if argument.is_write]
        if Meta in types and any(type(given.get(name)) is torch.Tensor for name in changed):
            self.operations.add(str(func))
        return func(*args, **(kwargs or {}))


def written_into_plain(name: str, function: Callable[..., Any]) -> set[str]:
    """The operations of a function that write what they are given in a wrapper into a plain tensor."""
    found = first_that_works(name, function)
    written = _Written()
    for args, kwargs in calls(found[0]) if found else ():
        with warnings.catch_warnings(), written:
            warnings.simplefilter("ignore")
            _method(name, function, args)(*args, **kwargs)
    return written.operations


def judge(name: str, function: Callable[..., Any]) -> str:
    """What became of the metadata: "kept", "no tensors", "no call", or what is wrong and where the wrapper was."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = first_that_works(name, function)
        if found is None:
            return "no call"
        sample, expected = found
        if not any(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(expected)):
            return "no tensors"
        for place, (args, kwargs) in enumerate(calls(sample)):
            torch.manual_seed(0)
            try:
                result = _method(name, function, args)(*args, **kwargs)
            except Exception as error:
                return f"fails at {place}: {type(error).__name__}: {str(error).splitlines()[0][:90]}"
            plain = [leaf for leaf in tree_leaves((args, kwargs)) if type(leaf) is torch.Tensor]
            said = _compared(result, expected, plain, has_values="empty" not in name and "resize" not in name)
            if said:
                return f"{said} at {place}"
    return "kept"


def _method(name: str, function: Callable[..., Any], args: tuple[Any, ...]) -> Callable[..., Any]:
    """A method as it is called: wrappers have some of their own, such as `share_memory_`."""
    own = name.rpartition(".")[2]
    return getattr(Meta, own) if own in vars(Wrapper) and args and isinstance(args[0], Meta) else function


def _compared(result: Any, expected: Any, plain_arguments: list[torch.Tensor], *, has_values: bool) -> str:
    """What is wrong; a plain argument that is changed, and returned itself, cannot carry metadata."""
    for found, plain in zip(tree_leaves(result), tree_leaves(expected), strict=True):
        if not isinstance(plain, torch.Tensor) or any(found is argument for argument in plain_arguments):
            continue
        if type(found) is not Meta or found.owner != "me":
            return "lost"
        if found.shape != plain.shape or found.dtype != plain.dtype:
            return "another shape"
        if plain.layout is torch.strided and not plain.is_nested and found.stride() != plain.stride():
            return "other strides"
        if not has_values:
            continue
        try:
            torch.testing.assert_close(found.elem.detach(), plain.detach(), rtol=1e-5, atol=1e-5, equal_nan=True)
        except AssertionError:
            return "another value"
        except (RuntimeError, NotImplementedError, ValueError):  # values of this dtype or layout cannot be compared
            continue
    return ""
