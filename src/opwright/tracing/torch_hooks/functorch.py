"""The levels of torch's function transforms: finding the innermost, unwrapping its tensors, running below it.

`torch.func` keeps a stack of levels, one for each active transform. A tensor that takes part in one is wrapped at its
level. This file has the private hooks behind that; tests/tracing/torch_hooks/test_functorch.py guards each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import Any, Literal

import torch
from torch._C import _functorch as hooks
from torch._functorch import eager_transforms
from torch._functorch.pyfunctorch import retrieve_all_functorch_interpreters
from torch.autograd import forward_ad

are_active = torch._C._are_functorch_transforms_active
depth: Callable[[], int] = hooks.get_dynamic_layer_stack_depth
unwrap_dead = hooks.unwrap_if_dead
is_in_old_batch = hooks.is_legacy_batchedtensor  # of the `vmap` before `torch.func`, which gradcheck still uses


def wrapped_by_levels(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor that the levels of transforms wrap."""
    while hooks.is_functorch_wrapped_tensor(tensor):
        tensor = hooks.get_unwrapped(tensor)
    return tensor


def _dual_level() -> int:
    """The level of dual tensors; -1 if there is none.

    In code that `torch.compile` has compiled, PyTorch opens it without noting it in Python: what tells is the level of
    `torch.func.jvp` around it. There is never more than one.
    """
    if forward_ad._current_level >= 0 or not are_active():
        return forward_ad._current_level
    return 0 if is_within_jvp() else -1


def is_within_jvp() -> bool:
    """Whether an active transform is `torch.func.jvp`."""
    return any(interpreter.key().name == "Jvp" for interpreter in retrieve_all_functorch_interpreters())


def is_forward_mode() -> bool:
    """Whether there is a level of dual tensors, with tangents switched on."""
    return _dual_level() >= 0 and torch._C._is_fwd_grad_enabled()


@contextmanager
def nested_forward_mode() -> Iterator[None]:
    """Let `torch.func.jvp` run within a level of dual tensors, if there is one, as it does within another `jvp`.

    PyTorch has one level. Each `jvp` in another wraps its tensors, so that what one wrapping holds is its own; only the
    outermost opens the level, and one that a caller opened by `forward_ad.dual_level` is not counted as that.
    """
    if not _has_dual_level():
        yield
        return
    noted, nesting = forward_ad._current_level, eager_transforms.JVP_NESTING
    forward_ad._current_level, eager_transforms.JVP_NESTING = 0, max(nesting, 1)
    try:
        yield
    finally:
        forward_ad._current_level, eager_transforms.JVP_NESTING = noted, nesting


def _has_dual_level() -> bool:
    """Whether there is a level, also one of another thread, or of compiled code, which Python does not know of."""
    try:
        level = torch._C._enter_dual_level()
    except RuntimeError:
        return True
    torch._C._exit_dual_level(level=level)
    return False


def is_dual(value: Any) -> bool:
    """Whether a value is a tensor with a tangent; of an old batch that is not known, so it may be."""
    if not isinstance(value, torch.Tensor):
        return False
    return is_in_old_batch(value) or tangent_of(value) is not None


def tangent_of(tensor: torch.Tensor) -> torch.Tensor | None:
    """The tangent of a tensor at the level of dual tensors, of which there must be one; None if it has none."""
    tangent: torch.Tensor | None = torch._VF._unpack_dual(tensor, level=_dual_level())[1]
    return tangent


def make_dual(tensor: torch.Tensor, tangent: torch.Tensor) -> torch.Tensor:
    """A tensor with a tangent at the level of dual tensors."""
    dual: torch.Tensor = torch._VF._make_dual(tensor, tangent, level=_dual_level())
    return dual


def is_differentiating() -> bool:
    """Whether an active transform differentiates."""
    return any(interpreter.key().name in ("Grad", "Jvp") for interpreter in retrieve_all_functorch_interpreters())


class Transform(Enum):
    """The kind of a level."""

    GRAD = "grad"
    JVP = "jvp"
    VMAP = "vmap"
    FUNCTIONALIZE = "functionalize"


_READ: dict[int, tuple[Transform, Any]] = {
    hooks.TransformType.Grad.value: (Transform.GRAD, hooks.CGradInterpreterPtr),
    hooks.TransformType.Jvp.value: (Transform.JVP, hooks.CJvpInterpreterPtr),
    hooks.TransformType.Vmap.value: (Transform.VMAP, hooks.CVmapInterpreterPtr),
    hooks.TransformType.Functionalize.value: (Transform.FUNCTIONALIZE, hooks.CFunctionalizeInterpreterPtr),
}
_RANDOMNESS: dict[int, Literal["error", "different", "same"]] = {
    hooks.RandomnessType.Error.value: "error",
    hooks.RandomnessType.Different.value: "different",
    hooks.RandomnessType.Same.value: "same",
}


class Level:
    """An active transform.

    Attributes:
        transform: Its kind.
        number: Its position in the stack, from one.
    """

    __slots__ = ("_interpreter", "_owner", "number", "transform")

    def __init__(self, interpreter: Any) -> None:
        self.transform, read = _READ[interpreter.key().value]
        self.number: int = interpreter.level()
        self._owner = interpreter  # keeps what `_interpreter` points into
        self._interpreter = read(interpreter)

    def below(self) -> Below:
        """Run below the level, which must be the innermost, until the end of the block."""
        return Below(self)

    @property
    def randomness(self) -> Literal["error", "different", "same"]:
        """The `randomness` of `torch.vmap`."""
        return _RANDOMNESS[self._interpreter.randomness().value]

    @property
    def batch_size(self) -> int:
        """How many entries the batch of a `vmap` has."""
        size: int = self._interpreter.batchSize()
        return size

    @property
    def began_without_gradients(self) -> bool:
        """Whether gradients were switched off around this level of `torch.func.grad`."""
        return not self._interpreter.prevGradMode()

    @property
    def began_without_tangents(self) -> bool:
        """Whether forward mode was switched off around this level of `torch.func.jvp`."""
        return not self._interpreter.prevFwdGradMode()

    def has(self, tensor: torch.Tensor) -> bool:
        """Whether a tensor is wrapped at this level, to be differentiated."""
        return hooks.is_gradtrackingtensor(tensor) and hooks.maybe_get_level(tensor) == self.number

    def wrap(self, tensor: torch.Tensor) -> torch.Tensor:
        """Wrap a tensor from below, to be differentiated."""
        return hooks._wrap_for_grad(tensor, self.number)

    def unwrap(self, tensor: torch.Tensor) -> torch.Tensor:
        """The tensor below; a tensor that is not of this level stays as it is."""
        return hooks._unwrap_for_grad(tensor, self.number)

    def lift(self, tensor: torch.Tensor) -> torch.Tensor:
        """Wrap a tensor that is not of this level, as a constant."""
        lifted: torch.Tensor = self._interpreter.lift(tensor)
        return lifted

    def add_batch(self, tensor: torch.Tensor) -> torch.Tensor:
        """Wrap a tensor from below, with its first dimension as the batch."""
        return hooks._add_batch_dim(tensor, 0, self.number)

    def unbatched(self, tensor: torch.Tensor) -> tuple[torch.Tensor, int | None]:
        """The tensor below, and which of its dimensions is the batch; None if none is."""
        value, dimension = hooks._unwrap_batched(tensor, self.number)
        return value, dimension


class Below:
    """Below the innermost level.

    As in torch's own step from level to level, gradients are off there if they were off when the level began.
    """

    __slots__ = ("_layer", "_level", "_restore")

    def __init__(self, level: Level) -> None:
        self._level = level
        self._layer: Any = None
        self._restore: tuple[Callable[[bool], Any], bool] | None = None

    def __enter__(self) -> None:
        level = self._level
        if level.transform is Transform.GRAD and level.began_without_gradients:
            self._restore = torch._C._set_grad_enabled, torch.is_grad_enabled()
        elif level.transform is Transform.JVP and level.began_without_tangents:
            self._restore = torch._C._set_fwd_grad_enabled, torch._C._is_fwd_grad_enabled()
        if self._restore is not None:
            self._restore[0](False)
        self._layer = hooks.pop_dynamic_layer_stack()

    def __exit__(self, *_: object) -> None:
        hooks.push_dynamic_layer_stack(self._layer)
        if self._restore is not None:
            switch, before = self._restore
            switch(before)


def innermost() -> Level:
    """The innermost level, which sees an operation first; there must be one."""
    return Level(hooks.peek_interpreter_stack())


def record_at_one_level(apply: Callable[..., Any], *args: Any) -> Any:
    """Call the `apply` of an `autograd.Function` that belongs to the innermost level alone."""
    before = hooks.get_single_level_autograd_function_allowed()
    hooks.set_single_level_autograd_function_allowed(True)
    try:
        return apply(*args)
    finally:
        hooks.set_single_level_autograd_function_allowed(before)


@contextmanager
def drawing_alike_above(first: int) -> Iterator[None]:
    """Until the end of the block, draw random numbers once for a whole batch at the levels beyond the first ones."""
    layers = []
    while depth() > first:
        layers.append((innermost(), hooks.pop_dynamic_layer_stack()))
    for level, layer in reversed(layers):
        if level.transform is Transform.VMAP:
            hooks._vmap_increment_nesting(level.batch_size, "same")
        else:
            hooks.push_dynamic_layer_stack(layer)
    try:
        yield
    finally:
        for _ in layers:
            hooks.pop_dynamic_layer_stack()
        for _, layer in reversed(layers):
            hooks.push_dynamic_layer_stack(layer)
