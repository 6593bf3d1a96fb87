"""In which order the dimensions of results lie in memory where eager computes them.

A trace sees contiguous arguments, and decompositions do not always lay results out as the operations do. So, where
anything is permuted, the reference runs once more, with the sizes of the call, on meta tensors that lie as the
arguments do: their strides are those of eager's results.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch.fx import Node
from torch.overrides import TorchFunctionMode

from opwright.errors import NoKernel
from opwright.tracing.effects.watch import unchanged_outside
from opwright.tracing.graph import Graph, value_of
from opwright.tracing.interface.aliases import AS_TRACED, MAY_COPY
from opwright.tracing.interface.orders import MEMORY_FORMATS, Order, empty_in, is_dense, is_in_channels_last, order_of
from opwright.tracing.interface.results import read_result
from opwright.tracing.interface.specs import ArgumentSpec, ConstantSpec, NumberSpec, TensorSpec
from opwright.tracing.outside.ran import RanMore
from opwright.tracing.recording.draws import DrawnOrders
from opwright.tracing.recording.validation import GoesOn
from opwright.tracing.torch_hooks.disabled import spare_the_compiler
from opwright.tracing.torch_hooks.isolation import Modes, in_fresh_thread
from opwright.tracing.torch_hooks.layouts.memory_formats import MemoryFormats, NoSuchView
from opwright.tracing.torch_hooks.layouts.processor_formats import ProcessorFormats

aten = torch.ops.aten

_PERMUTING = {aten.permute, aten.transpose, aten.t, aten.as_strided}
_PRODUCTS = {aten.mm, aten.addmm, aten.bmm, aten.baddbmm, aten.mv, aten.addmv, aten.dot}  # contiguous in any case
_GROUP_NORMS = (torch.group_norm, torch.nn.functional.group_norm)


@dataclass(frozen=True, slots=True)
class ResultOrders:
    """The orders of what a reference computes; () as written.

    Attributes:
        outputs: One for each tensor.
        gradients: One for each argument; () where there is no gradient.
        are_known: Whether eager's results lie so, and densely.
        draws: One for each draw of random numbers; None for one into memory with gaps. None if the trace tells.
    """

    outputs: tuple[Order, ...]
    gradients: tuple[Order, ...] = ()
    are_known: bool = True
    draws: tuple[Order | None, ...] | None = None


def result_orders(
    reference: Callable[..., Any], specs: Sequence[ArgumentSpec], graph: Graph, gradients: Sequence[Node | None] = ()
) -> ResultOrders:
    """The orders of the results of a reference.

    Args:
        reference: The function as written.
        specs: One for each parameter.
        graph: Its trace.
        gradients: The gradients there, one for each argument; none if there are none.

    Raises:
        RanMore: If the trace's state keeps to some functions, and this runs others.
        NoKernel: If eager refuses a view of a tensor that lies as it does there.
    """
    found = [node for node in gradients if node is not None]
    as_written = ResultOrders(((),) * len(graph.outputs), ((),) * len(gradients))
    if not (any(isinstance(spec, TensorSpec) and spec.order for spec in specs) or _permutes(graph, found)):
        return as_written
    modes = Modes() if gradients else Modes.of_caller()
    try:
        seen = in_fresh_thread(lambda: _seen(reference, specs, graph.copies, differentiated=bool(gradients)), modes)
    except RanMore:
        raise
    except NoSuchView as error:
        raise NoKernel("it views a tensor that does not lie in memory so", hint="call .reshape() there") from error
    except Exception:  # a reference that looks at devices or values, or makes tensors on a device
        return replace(as_written, are_known=False)
    return seen if len(seen.outputs) == len(graph.outputs) else replace(as_written, are_known=False)


def rehearse(reference: Callable[..., Any], specs: Sequence[ArgumentSpec]) -> None:
    """Run a reference in this way before its trace, to learn at little cost which functions it runs.

    Raises:
        RanMore: If its state keeps to some functions, and this runs others.
    """
    try:
        in_fresh_thread(lambda: _seen(reference, specs, differentiated=False))
    except RanMore:
        raise
    except Exception:  # the trace will tell
        return


def _permutes(graph: Graph, gradients: Sequence[Node]) -> bool:
    """Whether anything but a product reads a permuted tensor, or a result is one."""
    if not all(value_of(node).is_contiguous() for node in (*graph.outputs, *gradients)):
        return True
    permuted = [node for node in graph.fx.nodes if getattr(node.target, "overloadpacket", None) in _PERMUTING]
    return any(
        getattr(user.target, "overloadpacket", None) not in _PRODUCTS for node in permuted for user in node.users
    )


def _seen(
    reference: Callable[..., Any],
    specs: Sequence[ArgumentSpec],
    copies: Sequence[bool] = (),
    *,
    differentiated: bool,
) -> ResultOrders:
    spare_the_compiler()
    drawn = DrawnOrders()
    with torch.device("meta"), _AsOnProcessor(), MemoryFormats(), ProcessorFormats(), GoesOn(), drawn:
        arguments = [_argument(spec) for spec in specs]
        with unchanged_outside(reference.__name__, reference):  # arguments get the attributes of a module's tensors
            returned = reference(*arguments)
        if copies:
            told = iter(copies)
            returned = getattr(reference, AS_TRACED)(returned, arguments, lambda *_: next(told))
        _, outputs = read_result(reference.__name__, returned, () if hasattr(reference, MAY_COPY) else arguments)
        orders, are_dense = tuple(map(_order, outputs)), all(map(is_dense, outputs))
        if not differentiated:
            return ResultOrders(orders, (), are_dense, tuple(drawn.found))
        wanted = [isinstance(spec, TensorSpec) and spec.requires_grad for spec in specs]
        inputs = [argument for argument, is_wanted in zip(arguments, wanted, strict=True) if is_wanted]
        flowing = [output for output in outputs if output.requires_grad]
        cotangents = [torch.empty_like(output).detach() for output in flowing]
        found = iter(torch.autograd.grad(flowing, inputs, cotangents, allow_unused=True))
        gradients = tuple(_order(next(found)) if each else () for each in wanted)
        return ResultOrders(orders, gradients, are_dense, tuple(drawn.found))


def _argument(spec: ArgumentSpec) -> Any:
    match spec:
        case ConstantSpec(_, value) | NumberSpec(_, value):
            return value
        case TensorSpec() if spec.digest:
            return None
        case TensorSpec():
            tensor = empty_in(spec.order, spec.expanded, spec.sizes, dtype=spec.dtype)
            return tensor.detach().requires_grad_(spec.requires_grad)


def _order(tensor: torch.Tensor | None) -> Order:
    """The order of a dense tensor like this one."""
    return () if tensor is None else order_of(torch.empty_like(tensor))


class _AsOnProcessor(TorchFunctionMode):
    """Lays a group norm out as on a processor: torch makes operand and cotangent contiguous on other devices."""

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        return _like_a_group_norm(*args, **(kwargs or {})) if func in _GROUP_NORMS else made


def _like_a_group_norm(
    input: torch.Tensor,
    num_groups: int,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    *further: Any,
    **named: Any,
) -> torch.Tensor:
    """Other values, which nobody looks at, of the same arguments: results and gradients lie as the operand."""
    each_channel = (-1, *[1] * (input.dim() - 2))
    made = input.contiguous(memory_format=_format_of(input)).square()
    made = made if weight is None else made * weight.view(each_channel)
    made = made if bias is None else made + bias.view(each_channel)
    return made.to(input.dtype)


def _format_of(tensor: torch.Tensor) -> torch.memory_format:
    return MEMORY_FORMATS[tensor.dim()] if is_in_channels_last(tensor) else torch.contiguous_format
