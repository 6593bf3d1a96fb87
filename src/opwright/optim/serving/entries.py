"""Entries: one parameter with its gradient and states, and the kind that they are of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from opwright.binding.environment import PLAIN_TYPES
from opwright.optim.definition import MASTER, STEP, Definition
from opwright.optim.first_values import OF_STEPS
from opwright.optim.kinds import Kind, StateKind, split_numbers
from opwright.optim.serving.parts import Specs, part_of, specs_of_parts
from opwright.tracing.torch_hooks.spread import spec_of

_DEVICES = ("cpu", "cuda")
_DTYPES = (torch.float32, torch.float64, torch.bfloat16, torch.float16)


@dataclass(slots=True)
class Entry:
    """One parameter.

    Attributes:
        param: The parameter.
        state: Its states and its step.
        number: Its own number.
        group: The number of its group.
        tensors: The operands of its update, by name; a complex tensor as a real one. The gradient is there where it is
            needed in a step.
        kind: What they are; the sizes are those of whole tensors.
        served: Whether kernels may serve them.
        copied: A gradient that lies otherwise than the parameter is copied into `tensors["grad"]` before each step.
        specs: How the wholes lie of which `tensors` are the parts that this process has; None if these are whole.
        conjugated: Parameters and states with the conjugate bit, of which `tensors` has copies.
    """

    param: torch.Tensor
    state: dict[str, Any]
    number: int
    group: int
    tensors: dict[str, torch.Tensor]
    kind: Kind
    served: bool
    copied: bool
    specs: Specs | None = None
    conjugated: Mapping[str, torch.Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Manner:
    """How an optimizer updates, beside its hyper-parameters.

    Attributes:
        scaled: Whether gradients have a factor.
        written: Whether they are written back with it.
        at_random: Whether half types are rounded at random.
        launched: The types of devices whose kernels run while the processor goes on.
    """

    scaled: bool
    written: bool
    at_random: bool
    launched: tuple[str, ...] = ("cuda",)


def entry_of(
    definition: Definition,
    param: torch.Tensor,
    state: dict[str, Any],
    number: int,
    group: int,
    hyper: Mapping[str, Any],
    maximize: bool,
    manner: Manner,
) -> Entry:
    """Look at a parameter with a gradient, whose states are there.

    Raises:
        RuntimeError: If the gradient is sparse and the definition does not take it.
    """
    grad = param.grad
    assert grad is not None
    copied = False
    if grad.layout is not torch.strided:
        if not definition.sparse:
            raise RuntimeError(f"{definition.name} does not support sparse gradients")
        if hyper.get("weight_decay"):
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        copied = True
    names = [MASTER] if isinstance(state.get(MASTER), torch.Tensor) else []
    names += [name for name in definition.states if isinstance(state.get(name), torch.Tensor)]
    specs = specs_of_parts(param, grad, {name: state[name] for name in names}, written=manner.written)
    sizes = param.shape if specs else None
    if specs:
        copied = spec_of(grad).placements != specs["param"].placements
        param, grad = part_of(param), part_of(grad, specs["param"])
    written = {"param": param, **{name: part_of(state[name]) if specs else state[name] for name in names}}
    conjugated = {name: tensor.detach() for name, tensor in written.items() if tensor.is_conj()}
    is_plain_memory = not (conjugated or any(map(torch.Tensor.is_neg, written.values())))
    real, *rest = map(_real, written.values())
    kept = dict(zip(names, rest, strict=True))
    sizes = real.shape if sizes is None else sizes
    operands = (param, grad, *kept.values())
    device = param.device
    plain = device.type in _DEVICES and all(type(t) in PLAIN_TYPES and _is_near(t, param) for t in operands)
    if plain and not copied:
        copied = grad.is_conj() or grad.is_neg() or _strides(grad) != _strides(param)
    tensors = {"param": real, "grad": _real(_copy(grad, param) if copied else grad), **kept}
    of_shape = [t for t in kept.values() if t.dim() or not real.dim()]
    is_flat = plain and _is_dense(param) and all(_strides(t) == _strides(real) for t in of_shape)
    states = tuple(_state_kind(kept[name], sizes, specs) if name in kept else None for name in definition.states)
    numbers, constants = split_numbers(definition, hyper)
    kind = Kind(
        sizes=_pattern(sizes),
        param=real.dtype,
        grad=tensors["grad"].dtype,
        states=states,
        master=kept[MASTER].dtype if MASTER in kept else None,
        constants=tuple(sorted(constants.items(), key=lambda item: item[0])),
        numbers=tuple(numbers),
        maximize=maximize,
        scaled=manner.scaled,
        written=manner.written,
        at_random=manner.at_random,
        is_flat=is_flat and bool(real.dim()),
        is_part=specs is not None,
        distant_factor=manner.scaled and device.type in manner.launched,
        device=device.type,
    )
    is_empty = 0 in sizes  # no kernel is valid for sizes of zero
    fits = specs is None or (kind.is_flat and 1 not in sizes)  # tables serve no sizes of one
    known = all(t.dtype in _DTYPES for t in tensors.values()) and state[STEP].dtype in OF_STEPS
    written_once = all(map(_is_written_once, (real, *kept.values())))
    served = plain and is_plain_memory and fits and known and not is_empty and written_once
    return Entry(param, state, number, group, tensors, kind, served, copied, specs, conjugated)


def copy_gradient(entry: Entry, grad: torch.Tensor) -> None:
    """Bring a gradient into the order of its parameter, and to its places."""
    own = entry.tensors["param"] if entry.specs else entry.param
    made = _real(_copy(part_of(grad, entry.specs["param"]) if entry.specs else grad, own))
    entry.tensors["grad"].copy_(made)


def _copy(grad: torch.Tensor, param: torch.Tensor) -> torch.Tensor:
    dense = grad.to_dense() if grad.layout is not torch.strided else grad
    return torch.empty_like(param, dtype=grad.dtype, memory_format=torch.preserve_format).copy_(dense)


def _real(tensor: torch.Tensor) -> torch.Tensor:
    plain = tensor.detach()
    return torch.view_as_real(plain.resolve_conj()) if plain.is_complex() else plain


def _is_near(operand: torch.Tensor, param: torch.Tensor) -> bool:
    """Whether a kernel finds an operand: on the device of the parameter, or, if it is a number, with the processor."""
    return operand.device == param.device or (not operand.dim() and bool(param.dim()) and operand.device.type == "cpu")


def _state_kind(state: torch.Tensor, sizes: Sequence[int], specs: Specs | None) -> StateKind:
    is_number = not state.dim() and bool(sizes)
    own = sizes if specs and not is_number else state.shape
    return StateKind(state.dtype, _pattern(own), is_number, is_number and state.device.type != "cpu")


def _pattern(sizes: Sequence[int]) -> tuple[bool, ...]:
    return tuple(size == 1 for size in sizes)


def _strides(tensor: torch.Tensor) -> tuple[tuple[int, int], ...]:
    """Sizes and strides; along dimensions of one element, these do not matter."""
    return tuple((size, stride if size > 1 else 0) for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _is_dense(tensor: torch.Tensor) -> bool:
    found: bool = torch.ops.aten.is_non_overlapping_and_dense(tensor)
    return found


def _is_written_once(tensor: torch.Tensor) -> bool:
    """Whether no two elements share memory; PyTorch refuses to write to others."""
    return all(stride or size <= 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def overlapping(entries: Sequence[Entry]) -> set[int]:
    """The positions of entries that share memory with others in what is written."""
    spans = sorted((*span, position) for position, entry in enumerate(entries) for span in _spans(entry))
    shared: set[int] = set()
    reach, holder = -1, -1
    for start, stop, position in spans:
        if start < reach:
            shared |= {holder, position}
        if stop > reach:
            reach, holder = stop, position
    return shared


def _spans(entry: Entry) -> Iterable[tuple[int, int]]:
    step = entry.state[STEP]
    for name, tensor in (*entry.tensors.items(), (STEP, step)):
        if name != "grad" and tensor.numel() and tensor.device.type in _DEVICES and type(tensor) in PLAIN_TYPES:
            last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
            start = tensor.data_ptr()
            yield start, start + (last + 1) * tensor.element_size()
