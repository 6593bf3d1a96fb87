"""The base of wrappers: how they are made, and how torch takes them apart, copies and shows them."""

from __future__ import annotations

import copy
from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from inspect import Signature
from typing import Any, ClassVar, Self

import torch
from torch.utils.data._utils.collate import default_collate_fn_map

from opwright.errors import WrapperRefused
from opwright.tensors.wrapper.dispatching import as_written, in_memory_of_its_own, is_lazy, knows, lazily_right, plan
from opwright.tensors.wrapper.gathering import Gathered
from opwright.tensors.wrapper.names import MISSING, Names, names_of, read_names
from opwright.tensors.wrapper.opening import Held
from opwright.tensors.wrapper.recording import Open, Wrap
from opwright.tensors.wrapper.rules import Rule, densify, without_rule
from opwright.tensors.wrapper.table import default_rule, keys_of, read_rule, rule_for

_make = torch.Tensor._make_wrapper_subclass


class Wrapper(Gathered, Held, torch.Tensor):
    """A tensor around tensors, with metadata that travels through every operation.

        class Meta(opwright.tensors.Wrapper, data=("elem",), meta=("owner",)): ...

        Meta(torch.ones(3), owner="me") + 1     # Meta(elem=tensor([2., 2., 2.]), owner='me')

    The class line names what it holds; these are attributes, and the parameters of its constructor. An attribute of the
    class is the default of metadata of the same name. The wrapper shows the shape, strides, layout and device of its
    first tensor, and the dtype of the one that `dtype=` names. A tensor that requires gradients can be wrapped if it is
    the only one: gradients flow to it.

    Operations of autograd, compilers and exporters see it as a tensor; below them `rule` says what runs.

    Attributes:
        names: What it holds.

    Raises:
        WrapperRefused: For names that cannot be used, and for operations without a rule.
    """

    names: ClassVar[Names]
    _signature: ClassVar[Signature]
    _metadata: ClassVar[Callable[..., Any]]
    _read: ClassVar[Callable[[Sequence[Any]], list[Any]]]
    _rules: ClassVar[dict[str, Rule]] = {}
    _plans: ClassVar[dict[Any, Rule]] = {}
    _known: ClassVar[dict[tuple[type, ...], bool]] = {}
    _merges: ClassVar[bool] = False
    _pair: ClassVar[tuple[str, ...] | None] = None  # the names of the one tensor and of the one metadatum
    _holds_lazy: ClassVar[bool] = False  # whether any wrapper ever held a tensor that is conjugated or negated lazily
    __torch_function__ = torch._C._disabled_torch_function_impl  # type: ignore[assignment]

    def __init_subclass__(
        cls,
        *,
        data: Sequence[str] = (),
        meta: Sequence[str] = (),
        dtype: str | None = None,
        **options: Any,
    ) -> None:
        """Read the class line; a subclass of a wrapper holds what that holds, and metadata of its own."""
        super().__init_subclass__(**options)
        inherited = names_of(cls)
        if inherited is None or data:
            cls.names = read_names(cls.__name__, data, meta, dtype)
        elif meta:
            names = read_names(cls.__name__, inherited.data, (*inherited.meta, *meta), None)
            cls.names = Names(names.data, names.meta, inherited.shown)
        cls._signature = cls.names.signature(cls)
        cls.__signature__ = cls._signature  # type: ignore[attr-defined]
        metadata = namedtuple(f"{cls.__name__}Metadata", cls.names.meta)  # type: ignore[misc]
        cls._metadata = staticmethod(metadata._make)
        cls._read = staticmethod(cls.names.reader(metadata))
        cls._rules, cls._plans, cls._known = {}, {}, {}
        cls._pair = cls.names.held if len(cls.names.data) == len(cls.names.meta) == 1 else None
        cls._merges = cls.merge is not Wrapper.merge
        torch.serialization.add_safe_globals([cls])
        default_collate_fn_map[cls] = lambda batch, *, collate_fn_map=None: torch.stack(batch)

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Wrap tensors.

        Raises:
            WrapperRefused: If what stands for a tensor is none, or one of several requires gradients.
        """
        if names_of(cls) is None:
            raise WrapperRefused(
                "opwright.tensors.Wrapper holds nothing itself",
                hint='make a class of your own: class Meta(opwright.tensors.Wrapper, data=("elem",))',
            )
        try:
            bound = cls._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{cls.__name__}: {error}\nhint: it is made by {cls.__name__}{cls._signature}") from None
        bound.apply_defaults()
        data = tuple(bound.arguments[name] for name in cls.names.data)
        metadata = cls._metadata(bound.arguments[name] for name in cls.names.meta)
        for name, tensor in zip(cls.names.data, data, strict=True):
            if not isinstance(tensor, torch.Tensor):
                raise WrapperRefused(f"{name} of {cls.__name__} is no tensor: {tensor!r}", hint="make a tensor of it")
        if torch.is_grad_enabled() and any(tensor.requires_grad for tensor in data):
            if len(data) > 1:
                raise WrapperRefused(
                    f"{cls.__name__} cannot be made of several tensors of which one requires gradients",
                    hint="detach them, and call requires_grad_() of the wrapper",
                )
            return Wrap.apply(cls, metadata, *data)  # type: ignore[no-untyped-call]
        return cls.made([tensor.detach() if tensor.requires_grad else tensor for tensor in data], metadata)

    @classmethod
    def made(cls, data: Sequence[torch.Tensor], metadata: Any) -> Any:
        """A wrapper around tensors that require no gradients, unchecked; `metadata` is in the order of its names."""
        first, names = data[0], cls.names
        if first.is_conj() or first.is_neg() or (len(data) > 1 and any(map(is_lazy, data))):
            Wrapper._holds_lazy = True
        layout = first.layout
        strided = layout is torch.strided and not first.is_nested
        self = _make(
            cls,
            first.size(),
            strides=first.stride() if strided else None,
            storage_offset=first.storage_offset() if strided else None,
            dtype=data[names.shown].dtype,
            layout=layout,
            device=first.device,
        )
        if cls._pair is not None:  # half a microsecond less than loops
            held, named = cls._pair
            (value,) = metadata
            setattr(self, held, first)
            setattr(self, named, value)
            return self
        for name, value in zip(names.held, (*data, *metadata), strict=True):
            setattr(self, name, value)
        return self

    # -- what the author of a type says ----------------------------------------------------------------------------

    @staticmethod
    def merge(metas: Sequence[Any]) -> Any:
        """The metadata of a result, from that of the arguments: one named tuple for each wrapper, from left to right.

        Override it in types whose metadata may differ.

        Raises:
            WrapperRefused: If they are not all equal.
        """
        first = metas[0]
        for other in metas[1:]:
            if other is not first and other != first:
                raise WrapperRefused(
                    f"two tensors with different metadata meet: {first} and {other}",
                    hint="define merge(metas) in the class, which says what the result has",
                )
        return first

    def densify(self) -> torch.Tensor:
        """A plain tensor of the same values; gradients flow through it. Override it in types around several tensors.

        Raises:
            WrapperRefused: If the wrapper holds several tensors.
        """
        if len(self.names.data) > 1:
            raise WrapperRefused(
                f"{type(self).__name__} holds several tensors, and does not say what they mean together",
                hint="define densify(self) in the class",
            )
        if torch.is_grad_enabled() and self.requires_grad:
            opened: torch.Tensor = Open.apply(self)  # type: ignore[no-untyped-call]
            return opened
        inside: torch.Tensor = getattr(self, self.names.data[0])
        return inside

    @classmethod
    def rule(cls, rule: Any, *operations: Any) -> None:
        """Say what operations do with this type and its subclasses.

        Args:
            rule: "rewrap" (run on what is inside, wrap the results), "element-wise" (the same, and results have one
                element for each of the arguments'), "reduction" (run on what is inside, results are plain tensors),
                "densify" (run on dense tensors, results are plain), "refuse" (an error), or a function or operator
                that takes the operation's own arguments, runs below autograd, and may return NotImplemented. For an
                operator that changes arguments it returns the result and a list of their new values.
            operations: Operations (`torch.ops.aten.mul`), single overloads of them (`torch.ops.aten.mul.Tensor`), whole
                namespaces (`torch.ops.aten`) and operators. The most special rule wins.

        Raises:
            WrapperRefused: If one of these is something else.
        """
        read = read_rule(rule)
        keys = [keys_of(operation)[0] for operation in operations]
        if not keys:
            raise WrapperRefused(f"a rule of {cls.__name__} is for no operation", hint="name some, or torch.ops.aten")
        cls._rules.update(dict.fromkeys(keys, read))
        kinds = [cls]
        for kind in kinds:
            kind._plans.clear()
            kinds += kind.__subclasses__()

    # -- dispatch --------------------------------------------------------------------------------------------------

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Run an operation by its rule; the rule is looked for once."""
        if len(types) > 1 and not cls._answers_for(tuple(types)):
            return NotImplemented
        found = cls._plans.get(func)
        if found is None:
            found = cls._plans[func] = plan(cls, cls._rule_for(keys_of(func)), func)
        if not Wrapper._holds_lazy:
            return found(cls, func, args, kwargs or {})
        with lazily_right():
            return found(cls, func, args, kwargs or {})

    @classmethod
    def run_inside(cls, operator: Callable[..., Any], name: str, args: Sequence[Any]) -> Any:
        """Run an operator by the rule for its name; a type that has none, not by default either, runs its operations.

        Raises:
            AsWritten: If these are to run.
            WrapperRefused: If the type refuses the operator.
        """
        if not cls._answers_for(tuple(type(arg) for arg in args if isinstance(arg, Held))):
            return NotImplemented
        found = cls._plans.get(name)
        if found is None:
            found = cls._plans[name] = cls._rule_for(keys_of(name), otherwise=as_written)
        return found(cls, in_memory_of_its_own(operator, name), args, {})

    @classmethod
    def _answers_for(cls, types: tuple[type, ...]) -> bool:
        if types not in cls._known:
            cls._known[types] = knows(cls, types)
        return cls._known[types]

    @classmethod
    def _rule_for(cls, keys: Sequence[str], otherwise: Rule = without_rule) -> Rule:
        tables = [kind._rules for kind in cls.__mro__ if issubclass(kind, Wrapper)]
        has_dense = cls.densify is not Wrapper.densify
        return rule_for(tables, keys) or default_rule(cls, densify if has_dense else otherwise, keys)

    @classmethod
    def metadata_of(cls, wrappers: Sequence[Any]) -> Any:
        """The metadata of a result that is made of wrappers.

        Raises:
            WrapperRefused: If one of them, of a superclass, has none of a name that this class has.
        """
        if not cls.names.meta:
            return ()
        try:
            metas = cls._read(wrappers)
        except AttributeError:  # of a superclass
            metas = [cls._metadata([cls._metadatum(wrapper, name) for name in cls.names.meta]) for wrapper in wrappers]
        return cls.merge(metas) if len(metas) > 1 or cls._merges else metas[0]

    @classmethod
    def _metadatum(cls, wrapper: Any, name: str) -> Any:
        value = getattr(wrapper, name, MISSING)
        if value is MISSING and (value := getattr(cls, name, MISSING)) is MISSING:
            raise WrapperRefused(
                f"{type(wrapper).__name__} has no {name}, which {cls.__name__} needs",
                hint=f"give the class an attribute {name} = …, which is the default",
            )
        return value

    # -- taking apart, copying, showing ----------------------------------------------------------------------------

    def __tensor_flatten__(self) -> tuple[list[str], Any]:
        """The names of its tensors, and its metadata, which compilers compare."""
        return list(self.names.data), tuple(getattr(self, name) for name in self.names.meta)

    @classmethod
    def __tensor_unflatten__(cls, inner: Mapping[str, torch.Tensor], metadata: Any, size: Any, stride: Any) -> Any:
        """The wrapper around other tensors."""
        return cls.made([inner[name] for name in cls.names.data], metadata)

    def _stable_hash_for_caching(self) -> str:
        """Keep a compiled function out of torch's cache on disk, which would not see that a rule changes.

        Raises:
            BypassAOTAutogradCache: Always. A type may return a text instead that changes with its metadata and rules.
        """
        from torch._functorch._aot_autograd.autograd_cache import BypassAOTAutogradCache  # takes seconds to import

        raise BypassAOTAutogradCache(f"the rules of {type(self).__name__} are no part of a key")

    @property
    def data(self) -> torch.Tensor:
        """The same without its history; what is assigned gives the wrapper other tensors and metadata.

        Raises:
            WrapperRefused: On assignment, if that is no wrapper of the same class.
        """
        return torch.Tensor.data.__get__(self)  # type: ignore[attr-defined, no-any-return]

    @data.setter
    def data(self, other: Any) -> None:
        if type(other) is not type(self):
            raise WrapperRefused(
                f"a {type(self).__name__} cannot have the data of a {type(other).__name__}",
                hint=f"assign a {type(self).__name__}, or copy the values: x.copy_(…)",
            )
        torch.Tensor.data.__set__(self, other)  # type: ignore[attr-defined]
        for name in self.names.data:
            getattr(self, name).data = getattr(other, name)
        for name in self.names.meta:
            setattr(self, name, getattr(other, name))

    def data_ptr(self) -> int:
        """0, for all memory is that of the tensors inside; of a view too, or pickling would look for its memory."""
        return 0

    def numpy(self, *, force: bool = False) -> Any:
        """The dense values as an array."""
        return self.densify().numpy(force=force)

    def tolist(self) -> Any:
        """The dense values as numbers in lists."""
        return self.densify().tolist()

    def share_memory_(self) -> Self:
        """Move what is inside to memory that processes share."""
        for name in self.names.data:
            getattr(self, name).share_memory_()
        return self

    def is_shared(self) -> bool:
        """Whether all that is inside lies in memory that processes share."""
        return all(getattr(self, name).is_shared() for name in self.names.data)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """A copy with copies of its tensors and of its metadata.

        Raises:
            RuntimeError: If it is no leaf, as for every tensor.
        """
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError("Only Tensors created explicitly by the user support the deepcopy protocol")
        data = [copy.deepcopy(getattr(self, name), memo) for name in self.names.data]
        twin = type(self).made(data, [None] * len(self.names.meta))
        memo[id(self)] = twin
        held = set(self.names.data)
        twin.__dict__.update({n: copy.deepcopy(value, memo) for n, value in self.__dict__.items() if n not in held})
        twin.requires_grad_(self.requires_grad)
        if self.grad is not None:
            twin.grad = copy.deepcopy(self.grad, memo)
        return twin

    def __repr__(self, *, tensor_contents: Any = None) -> str:  # type: ignore[override]
        """Its tensors and its metadata."""
        held = [f"{name}={getattr(self, name, None)!r}" for name in (*self.names.data, *self.names.meta)]
        if self.requires_grad:
            held.append(f"grad_fn={self.grad_fn!r}" if self.grad_fn is not None else "requires_grad=True")
        return f"{type(self).__name__}({', '.join(held)})"
