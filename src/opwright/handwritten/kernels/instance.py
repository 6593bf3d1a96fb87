"""The instance of a kernel for the dtypes of a call: its overload, and its template arguments."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import torch

from opwright.errors import NoKernel
from opwright.handwritten.declaration import CppParameter, Declaration
from opwright.handwritten.kernels.roles import Contract

# Types of C++ and of CUDA, without namespaces → what torch calls them.
DTYPES: Mapping[str, torch.dtype] = {
    "float": torch.float32,
    "double": torch.float64,
    "BFloat16": torch.bfloat16,
    "__nv_bfloat16": torch.bfloat16,
    "Float16": torch.float16,
    "Half": torch.float16,
    "__half": torch.float16,
    "half": torch.float16,
    "complex<float>": torch.complex64,
    "Complex<float>": torch.complex64,
    "complex<double>": torch.complex128,
    "Complex<double>": torch.complex128,
    "uint8_t": torch.uint8,
    "unsigned char": torch.uint8,
    "int8_t": torch.int8,
    "int16_t": torch.int16,
    "int": torch.int32,
    "int32_t": torch.int32,
    "int64_t": torch.int64,
    "long": torch.int64,
    "long long": torch.int64,
    "bool": torch.bool,
}
# Templates are instantiated for these; other dtypes need an overload, because their arithmetic is spelled differently.
TEMPLATE_TYPES: Mapping[torch.dtype, str] = {
    torch.float32: "float",
    torch.float64: "double",
    torch.uint8: "uint8_t",
    torch.int8: "int8_t",
    torch.int16: "int16_t",
    torch.int32: "int32_t",
    torch.int64: "int64_t",
    torch.bool: "bool",
}


@dataclass(frozen=True, slots=True)
class Instance:
    """One definition of a kernel, with its template arguments.

    Attributes:
        declaration: The definition.
        types: Its template arguments, as C++ spells them.
    """

    declaration: Declaration
    types: Mapping[str, str]

    def type_of(self, parameter: CppParameter) -> str:
        """The type of a parameter without namespaces."""
        return self.types.get(parameter.type, parameter.type)

    def spelled(self, parameter: CppParameter) -> str:
        """The whole type of a parameter, as C++ spells it."""
        kind = self.types.get(parameter.type, parameter.spelling)
        return f"{'const ' if parameter.is_const else ''}{kind}*" if parameter.is_pointer else kind


def choose_instance(contract: Contract, dtypes: Mapping[str, torch.dtype]) -> Instance:
    """Find the definition for the dtypes of a call.

    Args:
        contract: What the kernel takes.
        dtypes: The dtype of each tensor that the kernel gets a pointer to; None for an argument that is None.

    Raises:
        NoKernel: If no definition takes them.
    """
    for declaration in contract.declarations:
        types = _match(declaration, dtypes)
        if types is not None:
            return Instance(declaration, types)
    given = ", ".join(f"{name} in {str(dtype).removeprefix('torch.')}" for name, dtype in dtypes.items())
    place = contract.declarations[0].place
    raise NoKernel(
        f"{contract.function} is not written for {given}",
        place=place,
        hint="add an overload for these dtypes, or make it a template",
    )


def _match(declaration: Declaration, dtypes: Mapping[str, torch.dtype]) -> Mapping[str, str] | None:
    """The template arguments; None if the definition is for other dtypes."""
    types: dict[str, str] = {}
    for parameter in declaration.parameters:
        dtype = dtypes.get(parameter.name)
        if dtype is None or not parameter.is_pointer:
            continue
        if parameter.type not in declaration.type_parameters:
            if DTYPES.get(parameter.type) != dtype:
                return None
            continue
        spelled = TEMPLATE_TYPES.get(dtype)
        if spelled is None or types.setdefault(parameter.type, spelled) != spelled:
            return None
    return types
