"""The role of each parameter of a kernel, read from its name and its type.

const T* x            the elements of the argument x, of a saved tensor, or of a result that the backward pass reads
T* z                  forward: the elements of a result, in the order in which the reference returns them
T* saved_name         forward: memory for a tensor that `saved=` names and the backward pass gets
const T* grad_z       backward: the cotangent of the result z
T* grad_x             backward: the gradient of the argument x
int64_t x_size_0      a size of one of these; x_stride_0 a stride in elements, x_numel the number of its elements
int64_t n             the number of elements of the first result
double c              the argument c, if it is a number
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from opwright.errors import Place, WrongDeclaration
from opwright.handwritten.declaration import CppParameter, Declaration

GRADIENT = "grad_"
_MEASURE = re.compile(r"(\w+?)_(?:(size|stride)_(\d+)|(numel))")
_INTEGERS = frozenset({"int", "int32_t", "int64_t", "long", "long long", "size_t", "Size"})


@dataclass(frozen=True, slots=True)
class Elements:
    """A pointer to the first element of a tensor."""

    tensor: str


@dataclass(frozen=True, slots=True)
class Measure:
    """A size, a stride or the number of elements of a tensor.

    Attributes:
        tensor: Its name.
        what: Which of the three.
        dimension: The dimension; 0 for the number of elements.
    """

    tensor: str
    what: str
    dimension: int = 0


@dataclass(frozen=True, slots=True)
class Constant:
    """An argument that is a number."""

    argument: str


Role = Elements | Measure | Constant


@dataclass(frozen=True, slots=True)
class Contract:
    """The parameters of a kernel: what it reads and writes.

    Attributes:
        function: Its name, as it is called.
        declarations: Its definitions; overloads differ by their types alone.
        roles: The role of each parameter.
        reads: The tensors that it reads, in its order.
        writes: The tensors that it writes, in its order.
        strided: The tensors whose strides it takes: these may have any layout.
        tensors: All tensors that its parameters mention.
        constants: The arguments that it takes as numbers.
    """

    function: str
    declarations: tuple[Declaration, ...]
    roles: tuple[Role, ...]
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    strided: frozenset[str]
    tensors: frozenset[str]
    constants: frozenset[str]

    @property
    def is_cuda_kernel(self) -> bool:
        """Whether it is a `__global__` function."""
        return self.declarations[0].is_cuda_kernel

    @property
    def place(self) -> Place:
        """Where it is defined."""
        return self.declarations[0].place


def read_contract(
    function: str, declarations: Sequence[Declaration], tensors: Collection[str], constants: Collection[str]
) -> Contract:
    """Find the role of each parameter of a kernel.

    Args:
        function: Its name.
        declarations: Its definitions.
        tensors: Names of the tensors that it may read.
        constants: Names of the arguments that are numbers.

    Raises:
        WrongDeclaration: If a parameter has no role, it returns something, or overloads have different parameters.
    """
    first = declarations[0]
    _check_form(function, declarations)
    writes = tuple(p.name for p in first.parameters if p.is_pointer and not p.is_const)
    reads = tuple(p.name for p in first.parameters if p.is_pointer and p.is_const)
    for name in reads:
        if name not in tensors:
            raise _unknown(function, first, name, tensors, constants)
    roles = tuple(_role(function, first, parameter, {*tensors, *writes}, constants) for parameter in first.parameters)
    measures = [role for role in roles if isinstance(role, Measure)]
    return Contract(
        function,
        tuple(declarations),
        roles,
        reads,
        writes,
        strided=frozenset(measure.tensor for measure in measures if measure.what == "stride"),
        tensors=frozenset((*reads, *writes, *(measure.tensor for measure in measures))),
        constants=frozenset(role.argument for role in roles if isinstance(role, Constant)),
    )


def _check_form(function: str, declarations: Sequence[Declaration]) -> None:
    first = declarations[0]
    for declaration in declarations:
        if declaration.returns != "void":
            raise WrongDeclaration(
                f"{function} returns {declaration.returns}, but a kernel returns void",
                place=declaration.place,
                hint="write results through pointers, or return torch::Tensor from a function over torch::Tensor",
            )
        if _shape(declaration) != _shape(first):
            raise WrongDeclaration(
                f"the overloads of {function} differ in more than types",
                place=declaration.place,
                hint=f"name the parameters as at {first.place}",
            )


def _shape(declaration: Declaration) -> list[tuple[str, bool, bool]]:
    return [(p.name, p.is_pointer, p.is_const and p.is_pointer) for p in declaration.parameters]


def _role(
    function: str,
    declaration: Declaration,
    parameter: CppParameter,
    tensors: Collection[str],
    constants: Collection[str],
) -> Role:
    name = parameter.name
    if parameter.is_pointer:
        return Elements(name)
    if name in constants:
        return Constant(name)
    measured = _MEASURE.fullmatch(name)
    if parameter.type in _INTEGERS and measured and measured[1] in tensors:
        return Measure(measured[1], measured[2] or measured[4], int(measured[3] or 0))
    if parameter.type in _INTEGERS and name == "n":
        return Measure("", "numel")
    raise _unknown(function, declaration, name, tensors, constants)


def _unknown(
    function: str, declaration: Declaration, name: str, tensors: Collection[str], constants: Collection[str]
) -> WrongDeclaration:
    what = f"parameter '{name}'" if name else "a parameter without a name"
    tensor_names = sorted(tensors)
    known = [*tensor_names, *sorted(constants), *([f"{tensor_names[0]}_size_0"] if tensor_names else []), "n"]
    return WrongDeclaration(
        f"{function} has {what}, which matches nothing of its operator",
        place=declaration.place,
        hint=f"the name of a parameter says what it receives, here one of {', '.join(known)}, ...",
    )
