"""Compare the declarations of handwritten functions with the operator, before anything is compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opwright.errors import ImplementationRefused, Place, WrongDeclaration
from opwright.handwritten.expected import Expected
from opwright.handwritten.kernels.layout import LAYOUTS
from opwright.handwritten.kernels.roles import GRADIENT, Contract, read_contract
from opwright.handwritten.sources import Sources
from opwright.settings import Settings
from opwright.tracing.interface.signature import Kind, Signature, place_of


@dataclass(frozen=True, slots=True)
class Subject:
    """The operator of a handwritten rung.

    Attributes:
        name: Its name, without namespace.
        reference: The function as written, taking every argument by position.
        signature: Its parameters.
        expected: What the reference returns.
        settings: Where to build.
    """

    name: str
    reference: Callable[..., Any]
    signature: Signature
    expected: Expected
    settings: Settings

    @property
    def arguments(self) -> tuple[str, ...]:
        """The names of its arguments."""
        return tuple(parameter.name for parameter in self.signature.parameters)

    def named(self, kind: Kind) -> tuple[str, ...]:
        """The names of its tensors or of its constants."""
        return tuple(parameter.name for parameter in self.signature.parameters if parameter.kind is kind)

    @property
    def place(self) -> Place:
        """Where its reference is defined."""
        return place_of(self.reference)


def kernel_contracts(
    subject: Subject, sources: Sources, forward: str, backward: str | None, saved: Sequence[str]
) -> tuple[Contract, ...]:
    """The contracts of an operator's kernels: forward, and backward if there is one.

    Raises:
        FunctionMissing: If one is not in the sources.
        WrongDeclaration: If one does not match the operator.
    """
    tensors, constants = subject.named(Kind.TENSOR), subject.named(Kind.CONSTANT)
    first = read_contract(forward, sources.find(forward), tensors, constants)
    _check_arguments(first, subject)
    _check_results(first, saved, subject)
    if backward is None:
        return (first,)
    results = first.writes[: len(first.writes) - len(saved)]
    known = (*tensors, *first.writes, *(GRADIENT + name for name in results))
    second = read_contract(backward, sources.find(backward), known, constants)
    _check_gradients(second, tensors, subject)
    return first, second


def check_layouts(subject: Subject, layouts: Mapping[str, str], contracts: Sequence[Contract]) -> None:
    """Demand that `layouts=` gives known layouts for tensors that the kernels use.

    Raises:
        ImplementationRefused: If one is not.
    """
    tensors = {name for contract in contracts for name in (*contract.reads, *contract.writes)}
    for name, layout in layouts.items():
        if name not in tensors or layout not in LAYOUTS:
            raise ImplementationRefused(
                f"layouts= gives {layout!r} for '{name}' of {subject.name}",
                place=subject.place,
                hint=f"the tensors are {', '.join(sorted(tensors))}, the layouts {', '.join(LAYOUTS)}",
            )


def _check_arguments(contract: Contract, subject: Subject) -> None:
    taken = contract.tensors | contract.constants
    missing = [name for name in subject.arguments if name not in taken]
    if missing:
        raise WrongDeclaration(
            f"{contract.function} takes {len(subject.arguments) - len(missing)} of the {len(subject.arguments)} "
            f"arguments of {subject.name}; '{missing[0]}' is not among its parameters",
            place=contract.place,
            hint="give each parameter of the kernel the name of the argument that it receives",
        )


def _check_results(contract: Contract, saved: Sequence[str], subject: Subject) -> None:
    own = contract.writes[len(contract.writes) - len(saved) :] if saved else ()
    if tuple(own) != tuple(saved):
        raise WrongDeclaration(
            f"{contract.function} writes {_listed(contract.writes)}, but saved= names {', '.join(saved)}",
            place=contract.place,
            hint="put the saved tensors after the results, in the order of saved=",
        )
    count, outputs = len(contract.writes) - len(own), subject.signature.outputs
    if count == 0 or outputs not in (None, count):
        raise WrongDeclaration(
            f"{contract.function} writes {count or 'no'} results, but {subject.name} returns {outputs or 'some'}",
            place=contract.place,
            hint="a pointer that is not const is a result that the kernel writes",
        )


def _check_gradients(contract: Contract, tensors: Sequence[str], subject: Subject) -> None:
    wrong = [name for name in contract.writes if name.removeprefix(GRADIENT) not in tensors or GRADIENT not in name]
    if wrong or not contract.writes:
        what = f"'{wrong[0]}', which is not a gradient of {subject.name}" if wrong else "nothing"
        raise WrongDeclaration(
            f"{contract.function} writes {what}",
            place=contract.place,
            hint=f"a backward kernel writes {', '.join(GRADIENT + name for name in tensors)}, or some of them",
        )


def _listed(names: Sequence[str]) -> str:
    return f"{len(names)} tensors ({', '.join(names)})" if names else "nothing"
