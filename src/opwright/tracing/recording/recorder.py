"""Recording: runs a function on fake tensors and writes down its core ATen operations below autograd.

If gradients are asked for, these include the operations of PyTorch's derivative formulas.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor
from torch.fx import Graph as FxGraph
from torch.fx import Node
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import arg_tree_leaves

from opwright.errors import NoKernel, OutsideTensor, UndeclaredMutation, UntraceableReference
from opwright.ir.call_traits import CHECKS
from opwright.tracing.callers import is_outside
from opwright.tracing.decompositions.demands import demand_dtypes
from opwright.tracing.decompositions.table import decomposition
from opwright.tracing.effects.watch import paused
from opwright.tracing.hints import AS_ARGUMENT, KEEP_OUTSIDE, NEW_TENSOR
from opwright.tracing.interface.memory import memory_of
from opwright.tracing.interface.orders import Order
from opwright.tracing.recording.described import Described
from opwright.tracing.recording.draws import is_draw, order_of_draw, refuse_draw
from opwright.tracing.recording.in_place import (
    SeenThrough,
    functional_of,
    memory_written,
    views_of,
    without_out,
    written_by,
)
from opwright.tracing.recording.lent import Lent
from opwright.tracing.recording.operations import FORWARDING, LIFTS, LOOKS_FOR_NAN, SILENT, gives_tensors
from opwright.tracing.recording.standing import reads_real
from opwright.tracing.recording.validation import checked_answer
from opwright.tracing.recording.values import STANDS_FOR
from opwright.tracing.scalars.functions import FIRST_INTEGER, LAST_INTEGER, Bounds
from opwright.tracing.scalars.numbers import NUMBER, NumberTable
from opwright.tracing.scalars.sizes import SizeTable
from opwright.tracing.scalars.uses import integers_held_by
from opwright.tracing.torch_hooks.layouts.laid_otherwise import BY_STRIDES, refuse_what_lies_otherwise
from opwright.tracing.torch_hooks.unseen import Unseen

aten = torch.ops.aten

_DEVICE, _MOST_CONSTANTS = torch.ops.prim.device.default, 64


class Recorder(Unseen, TorchDispatchMode):
    """Writes a `torch.fx` graph of the operations executed under it."""

    def __init__(self, sizes: SizeTable) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._sizes = sizes
        self.numbers = NumberTable(sizes)
        self.fx, self.described = FxGraph(), Described()
        self.hides_from_autograd, self.operations = False, list[str]()
        self.needs_row_major = self.needs_whole_memory = self.may_assume = False
        self.draws, self.lent = dict[Node, Order](), Lent()
        self._in_place: OpOverload | None = None
        self._watching, self._recording, self._generator = False, True, torch.get_rng_state()
        self._nodes, self._dtypes = dict[int, Node](), dict[int, torch.dtype]()
        self._detached, self._looked_at, self.written = set[int](), set[int](), set[int]()
        self._inputs, self._views = list[torch.Tensor](), dict[int, SeenThrough]()
        self._kept: list[Any] = []  # keeps every fake tensor alive, so that its id stays its own

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Note whether anything is hidden from autograd until the end of the block."""
        self._watching, self._recording = True, torch.is_grad_enabled()
        yield
        self._watching = False

    def _reads_detached(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        """Whether an operation reads a detached value; only the backward reads those that autograd saves."""
        return bool(self._detached) and any(id(value) in self._detached for value in arg_tree_leaves(*args, **kwargs))

    @contextmanager
    def _unwatched(self) -> Iterator[None]:
        """Decompositions may detach anything: autograd has seen the whole operation."""
        watching, self._watching = self._watching, False
        try:
            yield
        finally:
            self._watching = watching

    def placeholder(self, name: str, tensor: torch.Tensor) -> Node:
        """Declare an input."""
        node = self.fx.placeholder(name)
        self._inputs.append(tensor)
        self._bind(tensor, node)
        return node

    def give(self, name: str, node: Node) -> Node:
        """Declare an input with the value of a node, and read it everywhere instead of the node."""
        with self.fx.inserting_before(next(iter(self.fx.nodes))):
            given = self.fx.placeholder(name)
        given.meta |= {"val": node.meta["val"], STANDS_FOR: node}
        node.replace_all_uses_with(given)
        self._nodes = {key: given if known is node else known for key, known in self._nodes.items()}
        return given

    def node_of(self, tensor: torch.Tensor) -> Node:
        """The node that computes a tensor.

        Raises:
            OutsideTensor: If the tensor was made outside, such as one in the function's closure.
        """
        if id(tensor) not in self._nodes:
            raise OutsideTensor("the function uses a tensor that is not one of its parameters", hint=AS_ARGUMENT)
        if self._dtypes.get(id(tensor), tensor.dtype) is not tensor.dtype:  # `module.double()` swaps two tensors
            raise NoKernel("the function converts a module that it makes", hint="make it with dtype=")
        return self._nodes[id(tensor)]

    def has(self, tensor: object) -> bool:
        """Whether an object is a tensor that was recorded."""
        return id(tensor) in self._nodes

    def __torch_dispatch__(
        self, func: OpOverload, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func is _DEVICE and type(args[0]) is FakeTensor:  # asked by torch's own functions, several times each
            return args[0].fake_device
        self.described.look_from(sys._getframe(1))
        with paused(calls_nobody=True, operation=func):
            if func in LOOKS_FOR_NAN and torch.is_anomaly_check_nan_enabled() and not is_outside(sys._getframe(1)):
                return self._finds_no_nan(func, args)
            return self._dispatched(func, args, kwargs or {})

    def _finds_no_nan(self, func: OpOverload, args: tuple[Any, ...]) -> Any:
        """Answer anomaly mode, which looks for NaN in gradients: fake tensors have none."""
        if func is aten._local_scalar_dense.default:
            return False if id(args[0]) in self._looked_at else self._assumed(func, args[0])
        result = func(*args)
        self._looked_at.add(id(result))
        self._kept.append(result)
        return result

    def _dispatched(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if func.name().split(".")[0] in SILENT:
            return func(*args, **kwargs)
        if func is aten._local_scalar_dense.default:
            return self._assumed(func, args[0])
        self.operations += [func.name()] * (self._watching and not func.is_view and gives_tensors(func))
        hidden = self._recording and not torch.is_grad_enabled()
        if self._watching and (hidden or self._reads_detached(args, kwargs)):
            self.hides_from_autograd = True
        if self._watching and func._schema.is_mutable:
            self.written |= memory_written(func, args, kwargs)
        rule = None if (is_real := reads_real(args, kwargs)) else decomposition(func, args, kwargs)
        # A decomposition would draw other numbers; that of attention gives other values than its backward pass reads.
        if rule is not None and torch.Tag.nondeterministic_seeded not in func.tags:
            with self, self._unwatched(), self.described.of(rule, self._nodes):
                result = rule(*args, **kwargs)
            if func is aten.detach.default and self._watching and args[0].requires_grad:
                self._detached.add(id(result))
            if result is not NotImplemented:
                demand_dtypes(func, args, kwargs, result)
                self.numbers.bound_in(func, args, kwargs, result)
                return result
        if is_real:
            if func in LIFTS:
                return self.lent.standing_for(args[0], self._constant(args[0]))
            raise OutsideTensor("the function uses a tensor that is not one of its parameters", hint=AS_ARGUMENT)
        if func._schema.is_mutable:
            return self._record_in_place(func, args, kwargs)
        draw = None
        if is_draw(func, args, kwargs):
            refuse_draw(func, self._generator)
            draw = order_of_draw(func, args, kwargs, in_place=self._in_place is func)
            draws_along = any(isinstance(argument, torch.Tensor) for argument in args)  # in the order of its memory
            self.needs_row_major, self._in_place = self.needs_row_major or draws_along, None
        refuse_what_lies_otherwise(func, args, kwargs)
        if self._watching and func.overloadpacket in BY_STRIDES:
            self.needs_row_major = self.needs_whole_memory = True
        result = func(*args, **kwargs)
        if any(result is argument for argument in args):
            return result  # a conversion that changes nothing
        if func in FORWARDING and self.has(args[0]):
            self._see(func, args, kwargs, result)
            self._bind(result, self._nodes[id(args[0])])
            return result
        node = self._record(func, args, kwargs, result)
        if draw is not None:
            self.draws[node] = draw
        return result

    def _see(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        members = [result] if isinstance(result, torch.Tensor) else result
        for view, member in zip(views_of(func, args, kwargs, result), members or (), strict=False):
            self._views[id(member)] = view

    def _constant(self, tensor: torch.Tensor) -> torch.Tensor:
        """A tensor that the function makes of plain numbers, such as `torch.tensor([1.0, 2.0])`.

        Raises:
            NoKernel: If it has too many elements for a source.
        """
        if tensor.numel() > _MOST_CONSTANTS or tensor.numel() == 0:
            raise NoKernel(f"the function makes a tensor of {tensor.numel()} numbers", hint=AS_ARGUMENT)
        with _disable_current_modes():
            numbers = tensor.flatten().tolist()
        with self, self._unwatched():
            if len(numbers) == 1:
                return torch.full(tensor.shape, numbers[0], dtype=tensor.dtype)
            return torch.cat([torch.full((1,), each, dtype=tensor.dtype) for each in numbers]).reshape(tensor.shape)

    def _assumed(self, func: OpOverload, tensor: torch.Tensor) -> bool:
        """Answer a question after which the function goes on or raises; kernels check the answer at every call."""
        with self, self._unwatched():
            return checked_answer(func, tensor, sys._getframe(1) if self.may_assume and self.has(tensor) else None)

    def _record(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> Node:
        if torch.Tag.dynamic_output_shape in func.tags and free_unbacked_symbols(result):
            raise UntraceableReference(f"{func.name()}'s sizes depend on the values of a tensor", hint=KEEP_OUTSIDE)
        self._see(func, args, kwargs, result)
        self.numbers.refuse_in(func, args, kwargs)
        self.numbers.bound_in(func, args, kwargs, result)
        held = integers_held_by(args, kwargs, result)
        node = self.fx.call_function(func, tuple(self._replace(args, held)), self._replace(kwargs, held))
        node.meta["val"] = result
        if isinstance(result, torch.Tensor):
            self._bind(result, node)
            return node
        if result is None and func._schema.name in CHECKS:
            node.meta["val"] = ()
            return node
        if not isinstance(result, (tuple, list)):
            raise NoKernel(f"{func.name()} gives a Python value that depends on data", hint=KEEP_OUTSIDE)
        for position, member in enumerate(result):
            if isinstance(member, torch.Tensor):
                item = self.fx.call_function(operator.getitem, (node, position))
                self._bind(member, item)
        return node

    def _record_in_place(self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Record a modification of a temporary as the operation that gives the modified value.

        Raises:
            NoKernel: If the tensor is an input, whose change must be visible, or if it cannot be written back.
        """
        target: Any = args[0] if args else None
        written = written_by(func, args, kwargs)
        for tensor in written:
            self._refuse_input(tensor)
            self.lent.refuse(tensor)
        if not (func._schema.arguments and func._schema.arguments[0].is_write):
            return self._record_out(func, args, kwargs, written)
        functional, aliases = functional_of(func), self._aliases(target)
        if functional is None or not aliases:
            raise NoKernel(f"the function modifies a tensor in place ({func.name()})", hint=NEW_TENSOR)
        if torch.Tag.inplace_view in func.tags:
            return self._record_reshaping_in_place(func, functional, args, kwargs)
        given = [argument.default_value for argument in func._schema.arguments[len(args) :] if not argument.kwarg_only]
        args = (*args, *given)
        with self:  # recorded as any other operation is, and converted as an assignment converts
            self._in_place = functional
            result = functional(*args, **kwargs)
            renewed = {id(target): self._converted(result, target)}
            if len({self._nodes[id(alias)] for alias in aliases}) > 1:
                renewed |= self._renewed(target, renewed[id(target)], aliases)
        if func is not aten.copy_.default:  # which checks what `functional` has checked, and imports DTensor for it
            func(*args, **kwargs)
        for alias in aliases:
            self._nodes[id(alias)] = self._nodes[id(renewed.get(id(alias), renewed[id(target)]))]
        return target

    def _record_out(
        self, func: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any], written: list[torch.Tensor]
    ) -> Any:
        """Record an operation that writes into `out=` as the operation without it, and a copy.

        Raises:
            NoKernel: If it writes into other arguments, or one has not the size and dtype of the result.
        """
        functional, names = without_out(func), {argument.name for argument in func._schema.arguments if argument.is_out}
        if functional is None or len(names) != len(written):
            raise NoKernel(f"the function modifies a tensor in place ({func.name()})", hint=NEW_TENSOR)
        with self:
            results = functional(*args, **{name: value for name, value in kwargs.items() if name not in names})
            results = [results] if isinstance(results, torch.Tensor) else results
            for out, result in zip(written, results, strict=True):
                if (out.shape, out.dtype) != (result.shape, result.dtype):
                    raise NoKernel(f"out= of {func.name()} has another size or dtype", hint="leave out= out")
                aten.copy_.default(out, result)
        return written[0] if len(written) == 1 else tuple(written)

    def _refuse_input(self, target: Any) -> None:
        for tensor in self._inputs if isinstance(target, torch.Tensor) else ():
            if memory_of(tensor) == memory_of(target):
                name = self._nodes[id(tensor)].name
                raise UndeclaredMutation(
                    f"the function changes its argument '{name}', which mutates= does not name",
                    hint=f'give the decorator mutates=("{name}",), or change a copy',
                )

    def _record_reshaping_in_place(
        self, func: OpOverload, functional: OpOverload, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Record that a tensor becomes a view of what it was; a copy stands for that from now on."""
        target = args[0]
        before = aten.alias.default(target)
        self._show_instead(target, before)
        self._nodes[id(before)] = self._nodes[id(target)]
        self._kept.insert(next(p for p, kept in enumerate(self._kept) if kept is target), before)
        self._views = {key: view.with_source(target, before) for key, view in self._views.items()}
        if id(target) in self._views:
            self._views[id(before)] = self._views[id(target)]
        with self:
            result = functional(before, *args[1:], **kwargs)
        func(*args, **kwargs)
        self._views[id(target)] = SeenThrough(before, functional, tuple(args[1:]), kwargs)
        self._nodes[id(target)] = self._nodes[id(result)]
        return target

    def _show_instead(self, target: torch.Tensor, before: torch.Tensor) -> None:
        """Replace a tensor as the value of all its nodes, also of those before a change of its elements."""
        for node in self.fx.nodes:
            value = node.meta.get("val")
            if value is target:
                node.meta["val"] = before
            elif isinstance(value, (tuple, list)) and any(member is target for member in value):
                node.meta["val"] = tuple(before if member is target else member for member in value)

    def _converted(self, result: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        result = result if result.dtype is target.dtype else result.to(target.dtype)
        return result if len(result.shape) == len(target.shape) else result.expand(target.shape)

    def _renewed(
        self, target: torch.Tensor, value: torch.Tensor, aliases: list[torch.Tensor]
    ) -> dict[int, torch.Tensor]:
        """The new value of every tensor in the memory of `target` after `value` was written there.

        Raises:
            NoKernel: If one of them is a view in a way that cannot be followed.
        """
        base, written = target, value
        while (view := self._views.get(id(base))) is not None:
            back = view.written_back(written)
            if back is None:
                raise NoKernel(f"the function modifies a tensor in place through {view.func.name()}", hint=NEW_TENSOR)
            base, written = view.source, back
        renewed = {id(base): written}
        for alias in aliases:  # in the order they were made: a source comes before its views
            if alias is base:
                continue
            seen = self._views.get(id(alias))
            if seen is None or id(seen.source) not in renewed:
                raise NoKernel("the function modifies a tensor in place that is seen in several ways", hint=NEW_TENSOR)
            renewed[id(alias)] = seen.of(renewed[id(seen.source)])
        return renewed

    def _aliases(self, tensor: Any) -> list[torch.Tensor]:
        """All recorded tensors in the memory of a temporary; none if one of them is an input."""
        if not isinstance(tensor, torch.Tensor) or not self.has(tensor):
            return []
        memory = memory_of(tensor)
        aliases = [kept for kept in self._kept if memory_of(kept) == memory]
        return [] if any(self._nodes[id(alias)].op == "placeholder" for alias in aliases) else aliases

    def _replace(self, value: Any, held: Bounds | None = None) -> Any:
        """The node or number of an argument; `held` are the integers that its tensors can hold."""
        if isinstance(value, torch.Tensor):
            return self.node_of(value)
        if isinstance(value, (torch.SymInt, torch.SymFloat)):
            if self.numbers.is_size(value):
                return self._sizes.integer(value) if isinstance(value, torch.SymInt) else self._sizes.real(value)
            with self:
                number = self.numbers.value(value, held if isinstance(value, torch.SymInt) else None)
            return self._number(number) if isinstance(number, torch.Tensor) else number
        if isinstance(value, torch.SymBool):
            raise NoKernel(f"the function computes with {value}, which depends on sizes", hint="decide with `if`")
        if isinstance(value, (tuple, list)):
            return [self._replace(member, held) for member in value]
        if isinstance(value, dict):
            return {key: self._replace(member, held) for key, member in value.items()}
        if type(value) is int and not FIRST_INTEGER <= value <= LAST_INTEGER:
            raise NoKernel(f"the function computes with {value}, which needs more than 64 bits", hint="use a float")
        return value

    def _number(self, tensor: torch.Tensor) -> Node:
        node = self.node_of(tensor)
        node.meta[NUMBER] = 1.0 if tensor.is_floating_point() else 1
        return node

    def _bind(self, tensor: torch.Tensor, node: Node) -> None:
        self._nodes[id(tensor)] = node
        self._dtypes[id(tensor)] = tensor.dtype
        self._kept.append(tensor)
        node.meta.setdefault("val", tensor)
