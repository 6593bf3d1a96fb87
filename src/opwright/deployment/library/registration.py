"""The operators of a library as one C++ source: kernels, and the choice between these and the reference."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from opwright.codegen.cpp.launcher import functions_of
from opwright.codegen.cpp.line_breaks import broken
from opwright.codegen.cpp.registration import NUMBER_TYPES, PackagedKernel, PackagedOperator, numbers_are
from opwright.toolchain.source import Source
from opwright.version import VERSION

_INCLUDE = re.compile(r"^#include .*$", re.MULTILINE)
_LAUNCHER = re.compile(r"^static bool (\w+)\(const Tensor\* given", re.MULTILINE)
_READ = {"float": "number({})", "int": "Size({})", "bool": "bool({} & 1)"}


@dataclass(frozen=True, slots=True)
class LibraryOperator:
    """An operator, its kernels, and where they come from.

    Attributes:
        packaged: What is registered; its kernels are tried in order.
        sources: The source of each of these.
    """

    packaged: PackagedOperator
    sources: tuple[Source, ...]


def emit_library(operators: Sequence[LibraryOperator], *, shims: bool) -> str:
    """Write it.

    Args:
        operators: What is in the library.
        shims: Whether programs may call operators as functions of C, without the dispatcher.
    """
    sources = {source.name: source for operator in operators for source in operator.sources}
    spaces = {name: f"kernel_{index}" for index, name in enumerate(sources)}
    includes = sorted({line for source in sources.values() for line in _INCLUDE.findall(source.text)})
    parts = [
        f"// Operators of a model, with their kernels. Written by opwright {VERSION}.",
        "\n".join(['#include "opwright/deployed.h"', *includes]),
        *(_kernel(spaces[name], source) for name, source in sources.items()),
        "namespace opwright {\n\nbool is_declared(const char* name);",
        *(_operator(index, operator, spaces, sources) for index, operator in enumerate(operators)),
        "}  // namespace opwright",
        *(_shim(index, operator.packaged) for index, operator in enumerate(operators) if shims),
    ]
    return broken("\n\n".join(parts)) + "\n"


def shim_name(operator: PackagedOperator) -> str:
    """The function of C that serves an operator."""
    return f"aoti_torch_cpu_{operator.short_name}"


def _launcher(source: Source) -> str:
    return str(_LAUNCHER.findall(source.text)[-1])


def _kernel(space: str, source: Source) -> str:
    launcher = _launcher(source)
    functions = functions_of(source.text[: source.text.index(f"static void {launcher}_on_stack(")], launcher)
    return f"namespace opwright::{space} {{\n\n{functions}\n\n}}  // namespace opwright::{space}"


def _operator(index: int, operator: LibraryOperator, spaces: dict[str, str], sources: dict[str, Source]) -> str:
    packaged = operator.packaged
    types = packaged.types
    tensors = [position for position, kind in enumerate(types) if kind == "Tensor"]
    numbers = [
        f"  const {NUMBER_TYPES[kind]} argument_{p} = {_READ[kind].format(f'given[{p}]')};"
        for p, kind in enumerate(types)
        if kind != "Tensor"
    ]
    attempts = zip(packaged.kernels, operator.sources, strict=True)
    positions = ", ".join(map(str, tensors))
    return "\n".join(
        [
            f"// {packaged.schema}",
            f"void reference_{index}(const StableIValue* given, StableIValue* made);",
            f"static bool kernels_{index}(const StableIValue* given, StableIValue* results) {{",
            *numbers,
            *_borrowed(tensors),
            *(line for kernel, source in attempts for line in _attempt(kernel, source, tensors, spaces, packaged)),
            "  return false;",
            "}",
            f"static void run_{index}(StableIValue* stack, uint64_t, uint64_t) {{",
            f"  const int tensors[] = {{{positions}}};",
            f"  const Arguments<{len(types)}, {len(tensors)}> arguments(stack, tensors);",
            f"  if (arguments.are_plain() && kernels_{index}(arguments.values(), stack)) return;",
            f"  reference_{index}(arguments.values(), stack);",
            "}",
            f"static void run_reference_{index}(StableIValue* stack, uint64_t, uint64_t) {{",
            f"  const int tensors[] = {{{positions}}};",
            f"  const Arguments<{len(types)}, {len(tensors)}> arguments(stack, tensors);",
            f"  reference_{index}(arguments.values(), stack);",
            "}",
            f"static const Deployed deployed_{index}(",
            f"    {json.dumps(packaged.namespace)}, {json.dumps(packaged.schema)},",
            f"    {json.dumps(packaged.short_name)}, is_declared({json.dumps(packaged.name)}),",
            f"    run_{index}, run_reference_{index});",
        ]
    )


def _borrowed(tensors: Sequence[int]) -> Sequence[str]:
    if not tensors:
        return ("  const Tensor tensors[] = {};",)
    handles = ", ".join(f"given[{position}]" for position in tensors)
    return (
        f"  const Borrowed<{len(tensors)}> borrowed({{{handles}}});",
        f"  const Tensor(&tensors)[{len(tensors)}] = borrowed.tensors;",
    )


def _attempt(
    kernel: PackagedKernel,
    source: Source,
    tensors: Sequence[int],
    spaces: dict[str, str],
    operator: PackagedOperator,
) -> Iterable[str]:
    layout = "are_row_major(tensors)" if kernel.needs_row_major else "lie_as_written(tensors)"
    yield f"  if ({' && '.join([*numbers_are(kernel), layout])}) {{"
    if kernel.tensors == tuple(tensors):
        yield "    const Tensor* const operands = tensors;"
    else:
        operands = ", ".join(
            f"as_tensor(argument_{position})" if position in kernel.numbers else f"again(given[{position}])"
            for position in kernel.tensors
        )
        yield f"    const Tensor operands[] = {{{operands}}};"
    yield "    const Size sizes[] = {0};"
    yield f"    Tensor made[{kernel.made}];"
    yield f"    if ({spaces[source.name]}::{_launcher(source)}(operands, sizes, made)) {{"
    yield f"      give(results, made, {operator.outputs});"
    yield "      return true;"
    yield "    }"
    yield "  }"


def _shim(index: int, operator: PackagedOperator) -> str:
    """The function of C for one operator, as AOTInductor calls them: arguments, then where the results go."""
    passed = ", ".join(_passed(position, kind) for position, kind in enumerate(operator.types))
    return "\n".join(
        [
            f'extern "C" OPWRIGHT_VISIBLE {shim_declaration(operator)} {{',
            "  using namespace opwright;",
            f"  const StableIValue given[] = {{{passed}}};",
            f"  StableIValue results[{operator.outputs}];",
            "  try {",
            f"    const StableIValue handles[] = {{{', '.join(f'given[{p}]' for p in _tensors(operator))}}};",
            f"    if (!are_plain(handles, {len(_tensors(operator))}) || !kernels_{index}(given, results))",
            f"      reference_{index}(given, results);",
            "  } catch (const std::exception& error) {",
            "    std::fputs(error.what(), stderr);",
            "    return 1;",
            "  }",
            *(f"  *made_{k} = reinterpret_cast<AtenTensorHandle>(results[{k}]);" for k in range(operator.outputs)),
            "  return 0;",
            "}",
        ]
    )


def _tensors(operator: PackagedOperator) -> list[int]:
    return [position for position, kind in enumerate(operator.types) if kind == "Tensor"]


def _passed(position: int, kind: str) -> str:
    return f"reinterpret_cast<StableIValue>(given_{position})" if kind == "Tensor" else f"pass(given_{position})"


_C_TYPES = {"Tensor": "AtenTensorHandle", "float": "double", "int": "int64_t", "bool": "int32_t"}


def shim_declaration(operator: PackagedOperator) -> str:
    """It as C++ declares it."""
    given = [f"{_C_TYPES[kind]} given_{position}" for position, kind in enumerate(operator.types)]
    made = [f"AtenTensorHandle* made_{k}" for k in range(operator.outputs)]
    return f"int32_t {shim_name(operator)}({', '.join([*given, *made])})"
