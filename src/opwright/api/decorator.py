"""`@opwright.operator`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol, overload

from opwright.api.operator import Operator, Parameters, Result
from opwright.binding.dispatcher.autocast import AutocastPolicy
from opwright.derivation.saving.save_policy import SavePolicy
from opwright.samples import SampleFactory


class Decorator(Protocol):
    """Turns a function into an operator of the same signature."""

    def __call__(self, reference: Callable[Parameters, Result], /) -> Operator[Parameters, Result]:
        """Make the operator."""


@overload
def operator(
    reference: Callable[Parameters, Result],
    /,
    *,
    name: str | None = None,
    samples: SampleFactory | None = None,
    save: SavePolicy = "auto",
    mutates: Sequence[str] = (),
    inline: bool = False,
    autocast: AutocastPolicy | None = None,
    freeze: Sequence[str] = (),
) -> Operator[Parameters, Result]: ...
@overload
def operator(
    *,
    name: str | None = None,
    samples: SampleFactory | None = None,
    save: SavePolicy = "auto",
    mutates: Sequence[str] = (),
    inline: bool = False,
    autocast: AutocastPolicy | None = None,
    freeze: Sequence[str] = (),
) -> Decorator: ...
def operator(
    reference: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    samples: SampleFactory | None = None,
    save: SavePolicy = "auto",
    mutates: Sequence[str] = (),
    inline: bool = False,
    autocast: AutocastPolicy | None = None,
    freeze: Sequence[str] = (),
) -> Any:
    """Turn a PyTorch function into an operator.

    Args:
        reference: A function of tensors, constants and containers of these that returns tensors, alone or in tuples,
            lists, dicts and named tuples. Annotations are optional: each call shows what a parameter is.
        name: "namespace::name" at torch's dispatcher; by default "opwright::" and the function's name.
        samples: `(device, dtype) -> iterable of Sample`, or `opwright.shapes(...)`: example arguments for `check`,
            `bench`, `source` and `explain`.
        save: What the backward pass may keep: "auto" chooses; "inputs" keeps nothing but arguments and recomputes
            everything else; "all" recomputes nothing. A budget keeps part of what "auto" keeps beside the arguments: a
            share of its bytes from 0.0 to 1.0, or the most bytes there may be, such as 65536 or "64 MiB". What is
            cheapest to recompute for its bytes goes first. The sizes of the call that a kernel is derived for decide;
            it serves other sizes too.
        mutates: Names of the tensors that the function changes, or of lists, tuples and dicts of these.
        inline: Let `torch.compile` and `torch.export` see the operations of the function; otherwise they see one,
            unless it draws random numbers.
        autocast: What floating arguments are cast to under autocast before the kernels run: "low", its own dtype;
            "fp32", float32; "promote", the widest among them. By default the function runs, operation by operation, in
            the dtypes that autocast has for each.
        freeze: Names of values that the function reads from outside, such as "SCALE" or "config.eps", to be taken for
            constants: kernels keep the value that they were derived with, and nothing looks whether it changes. By
            default all that is read is compared at every call.

    Raises:
        CallableUnsupported: If it is not a function.
        UnsupportedParameter: If `mutates` names something other than a parameter for tensors.
        UnsupportedReturn: If there is no tensor in the return annotation.
        SaveRefused: If `save` is none of these.
        AutocastRefused: If `autocast` is none of these, or there is something in `mutates`.
    """

    def make(function: Callable[..., Any], /) -> Operator:
        return Operator(
            function,
            name=name,
            samples=samples,
            save=save,
            mutates=mutates,
            inline=inline,
            autocast=autocast,
            freeze=freeze,
        )

    return make if reference is None else make(reference)
