"""Base: `Like`, a type that acts like a tensor and is none.

function ─→ table of the class (one lookup) ─→ its handler, a rule that derives the spelling from one, or the fallback
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Sequence
from reprlib import recursive_repr
from types import MethodType
from typing import Any, ClassVar, Literal, TypeVar

import torch

from opwright.api.operator import Operator
from opwright.errors import AttributeUnhandled, HandlerRefused, Unhandled
from opwright.tensors.like.dense import dense_all, dense_in, densified, run_dense
from opwright.tensors.like.entry import Entry, entry_of, entry_of_fallback
from opwright.tensors.like.handler import Handler, handler_of
from opwright.tensors.like.operators import Operators, ask, break_graph
from opwright.tensors.spellings.table import Spelling, spelling_of, spellings

FALLBACKS = ("densify", "refuse")
QUESTIONS = frozenset({"dim", "numel", "size"})
"""Functions that every object answers by the method of that name."""

_METHODS: dict[str, Callable[..., Any]] = {}
"""Methods of tensors that objects have been asked for by their names."""

_Call = TypeVar("_Call", bound=Callable[..., Any])


class Like(Operators):
    """A type that acts like a tensor: PyTorch's functions, operators and attributes work on it, by handlers.

    Define `densify(self)`, which returns the tensor that an object stands for, and register handlers with
    `implements`; `fallback` chooses what happens to all other functions. Subclasses inherit both. A call whose
    handler returns NotImplemented, or that has another overriding type among its arguments which is neither a
    tensor, nor of this family, nor named by `accepts=`, is passed on to the next type, as PyTorch defines it.

    Args:
        accepts: Other overriding types that handlers take as arguments; given to the class statement.
    """

    accepts: ClassVar[tuple[type, ...]] = ()
    _own: ClassVar[dict[tuple[str, tuple[bool, bool], bool], Handler]] = {}
    _own_fallback: ClassVar[str | None] = "refuse"
    _entries: ClassVar[dict[Any, Entry]] = {}

    def __init_subclass__(cls, *, accepts: Sequence[type] = (), **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not isinstance(accepts, Iterable) or not all(isinstance(each, type) for each in accepts):
            raise HandlerRefused(
                f"accepts= of {cls.__name__} is a tuple of types", hint="write accepts=(Other,) in the class line"
            )
        cls.accepts = (*cls.accepts, *accepts)
        cls._own = {}
        cls._own_fallback = None
        cls._entries = {}

    @classmethod
    def implements(cls, *functions: Callable[..., Any], partial: bool = False) -> Callable[[_Call], _Call]:
        """Register the handler of a function, for all its spellings: aliases, methods, operators, `out=`.

        The handler takes the arguments of the function, with objects of this type among them. Operators with
        reflected and in-place spellings are derived: with arguments in the function's own order, and with the result
        written into the first argument. A handler of one of those spellings serves those of its form alone. A handler
        that is an operator of opwright is given dense tensors.

        Args:
            functions: Overridable functions of PyTorch; of a property, its getter (`torch.Tensor.is_cuda.__get__`).
            partial: The handler may take fewer arguments than the function; calls that give more go to the fallback.

        Raises:
            HandlerRefused: There is no function, one is not overridable, or its arguments are not those of the handler.
        """
        cls._check(functions)

        def register(call: _Call) -> _Call:
            for function in functions:
                cls._register(function, call, partial=partial)
            return call

        return register

    @classmethod
    def fallback(cls, how: Literal["densify", "refuse"]) -> None:
        """Choose what happens to functions without a handler.

        Args:
            how: "densify" runs them on dense tensors, except for those that would write into one; "refuse", the
                default, raises `TypeError` with the names of the function and the type.

        Raises:
            HandlerRefused: `how` is another word.
        """
        if how not in FALLBACKS:
            raise HandlerRefused(f"{how!r} is no fallback", hint=f"one of {', '.join(map(repr, FALLBACKS))}")
        cls._own_fallback = how
        cls._forget()

    @classmethod
    def __torch_function__(
        cls, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Serve a function of PyTorch; NotImplemented leaves it to the next type."""
        entry = cls._entries.get(func)
        if entry is None:
            entry = cls._entry(func)
        if types not in entry.accepted and not entry.accepts(types):
            return NotImplemented
        if not kwargs:
            return entry.call(*args)
        return entry.call(*args, **kwargs) if kwargs.keys() <= entry.keywords else entry.named(args, kwargs)

    @classmethod
    def served_by(cls, function: Callable[..., Any]) -> Literal["handled", "by rule", "fallback"]:
        """Whether a function has a handler, is derived from one by a rule, or is left to the fallback."""
        entry = cls._entries.get(function) or cls._entry(function)
        return entry.how

    @classmethod
    def lacking(cls, function: Callable[..., Any]) -> tuple[str, ...]:
        """The parameters of a function that its handler does not take."""
        handler = cls._handler(spelling_of(function))
        return handler.lacks if handler is not None else ()

    def adopt(self, other: Any) -> None:
        """Take over the state of an object of the same type, for in-place functions; override it for `__slots__`."""
        self.__dict__.clear()
        self.__dict__.update(other.__dict__)

    @property
    def shape(self) -> torch.Size:
        """The shape of the dense tensor."""
        size: torch.Size = self._answered("shape")
        return size

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the dense tensor."""
        dtype: torch.dtype = self._answered("dtype")
        return dtype

    @property
    def device(self) -> torch.device:
        """The device of the dense tensor."""
        device: torch.device = self._answered("device", on_meta=False)
        return device

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def dim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def numel(self) -> int:
        """The number of elements."""
        return self.shape.numel()

    ndimension, nelement = dim, numel

    def size(self, dim: int | None = None) -> Any:
        """The shape, or one size of it."""
        return self.shape if dim is None else self.shape[dim]

    def __getattr__(self, name: str) -> Any:
        """A method or attribute of tensors, by the handler of the function that it spells."""
        if (method := _METHODS.get(name)) is not None and not torch.compiler.is_compiling():
            return MethodType(method, self)
        break_graph(f"{name} of a {type(self).__name__} is found by its name; call torch's function instead")
        found = None if name.startswith("__") else getattr(torch.Tensor, name, None)
        getter: Any = getattr(found, "__get__", None) if found is not None and not callable(found) else None
        if getter in spellings():
            try:
                return ask(getter, self)
            except Unhandled as refusal:
                raise AttributeUnhandled(refusal.fact, hint=refusal.hint) from None
        if callable(found) and found in spellings():
            return MethodType(_METHODS.setdefault(name, functools.partial(ask, found)), self)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @recursive_repr()
    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={value!r}" for name, value in vars(self).items())
        return f"{type(self).__name__}({fields})"

    def _answered(self, name: str, *, on_meta: bool = True) -> Any:
        """What a shape question is answered: by a handler of the attribute, else by the dense tensor."""
        break_graph(f"the {name} of a {type(self).__name__} is that of its dense tensor")
        getter = getattr(torch.Tensor, name).__get__
        if (handler := type(self)._handler(spelling_of(getter))) is not None:
            return handler.call(self)
        if on_meta:
            try:
                with torch.device("meta"):  # without memory, where densify only makes new tensors
                    return getattr(densified(self), name)
            except (NotImplementedError, RuntimeError):
                pass  # it mixes them with tensors, or reads values
        return getattr(densified(self), name)

    @classmethod
    def _check(cls, functions: Sequence[Any]) -> None:
        if cls is Like:
            raise HandlerRefused("handlers of Like would be those of every type", hint="make a subclass of it")
        if not functions:
            raise HandlerRefused(
                f"a handler of {cls.__name__} is for no function", hint=f"write @{cls.__name__}.implements(torch.add)"
            )
        for function in functions:
            if not isinstance(function, Hashable) or function not in spellings():
                name = getattr(function, "__name__", str(function))
                raise HandlerRefused(
                    f"{name} is not a function of PyTorch that types can override",
                    hint=f"write @{cls.__name__}.implements(torch.add); of a property, give its __get__. "
                    "torch.overrides.get_overridable_functions() lists all",
                )

    @classmethod
    def _register(cls, function: Any, call: Callable[..., Any], *, partial: bool) -> None:
        spelling = spelling_of(function)
        if isinstance(call, Operator):
            call = _of_dense(cls, call)
        handler = handler_of(call, cls, spelling, partial=partial)
        cls._own[spelling.family, spelling.form, spelling.is_attribute] = handler
        cls._forget()

    @classmethod
    def _forget(cls) -> None:
        cls._entries.clear()
        for below in cls.__subclasses__():
            below._forget()

    @classmethod
    def _entry(cls, function: Any) -> Entry:
        break_graph(f"{cls.__name__} looks up how it serves a function; call it once before it is compiled")
        spelling = spelling_of(function)
        handler = cls._handler(spelling)
        if handler is not None:
            made = entry_of(handler, spelling, cls._fall_back)
        elif spelling.family in QUESTIONS:
            answer = functools.partial(_answer, spelling.family)
            made = Entry(answer, lambda args, kwargs: answer(*args, **kwargs), "handled")
        else:
            made = entry_of_fallback(spelling, cls._fall_back)
            if cls._chosen_fallback() == "refuse":
                made.accepts = cls._are_related  # others may serve what this type does not
        cls._entries[function] = made
        return made

    @classmethod
    def _handler(cls, spelling: Spelling) -> Handler | None:
        """The nearest class's handler of the form itself, or of the plain function that it is derived from."""
        swapped, in_place = spelling.form
        forms = dict.fromkeys([(swapped, in_place), (not swapped and in_place, in_place), (False, False)])
        if in_place:
            forms = dict.fromkeys([(swapped, True), (swapped, False), (False, False)])
        for base in cls.__mro__:
            own = vars(base).get("_own", {})
            for form in forms:
                if found := own.get((spelling.family, form, spelling.is_attribute)):
                    return found if isinstance(found, Handler) else None
        return None

    @classmethod
    def _are_related(cls, types: Sequence[type]) -> bool:
        return all(issubclass(each, cls) or issubclass(cls, each) for each in types)

    @classmethod
    def _chosen_fallback(cls) -> str:
        chosen: str = next(how for base in cls.__mro__ if (how := vars(base).get("_own_fallback")))
        return chosen

    @classmethod
    def _fall_back(cls, spelling: Spelling, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if cls._chosen_fallback() == "densify":
            return run_dense(cls, spelling, args, kwargs)
        raise Unhandled(
            f"{spelling.name} is not handled by {cls.__name__}",
            hint=f"write @{cls.__name__}.implements({spelling.name}), or say {cls.__name__}.fallback('densify')",
        )


def _answer(name: str, value: Any, *args: Any, **kwargs: Any) -> Any:
    return getattr(value, name)(*args, **kwargs)


def _of_dense(cls: type, operator: Operator) -> Callable[..., Any]:
    """An operator of opwright as a handler: it is given dense tensors."""

    @functools.wraps(operator.reference)
    def call(*args: Any, **kwargs: Any) -> Any:
        return operator(*dense_all(cls, args), **dense_in(cls, kwargs))

    return call
