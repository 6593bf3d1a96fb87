"""The references of a library as one C++ source."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch.fx import Node

from opwright.codegen.cpp.line_breaks import broken
from opwright.deployment.library.graphs import ReferenceGraph, inputs_of
from opwright.deployment.library.spelled import is_several, spell_dtype, spell_float, spell_node
from opwright.errors import NoKernel
from opwright.toolchain.cpu_levels import CpuLevel
from opwright.version import VERSION

_READ = {
    "Tensor": "Value(reference::tensor_of({}))",
    "float": "Value(reference::float_of({}))",
    "int": "Value(static_cast<int64_t>({}))",
    "bool": "Value(({} & 1) != 0)",
}


def emit_references(operators: Sequence[tuple[str, tuple[str, ...], Sequence[ReferenceGraph]]], level: CpuLevel) -> str:
    """Write it: for each operator, a function of what is on the dispatcher's stack.

    Args:
        operators: For each, its name "namespace::name", the types of its parameters in the schema, and its graphs.
        level: What the kernels beside them need of a processor.
    """
    needs = " && ".join(f'__builtin_cpu_supports("{feature}")' for feature in level.features) or "true"
    parts = [
        f"// References of operators, in PyTorch's operations. Written by opwright {VERSION}.",
        '#include "opwright/reference.h"\n\n#include <cstdint>\n#include <limits>\n\nnamespace opwright {',
        "using reference::Value;\nusing reference::Values;",
        _plain(needs),
        *(_operator(f"reference_{index}", *each) for index, each in enumerate(operators)),
        "}  // namespace opwright\n",
    ]
    return broken("\n\n".join(parts))


def _plain(needs: str) -> str:
    return f"""\
// Whether kernels may see these tensors, and whether this processor has the instructions that kernels use.
bool are_plain(const uint64_t* handles, int count) {{
  static const bool can_run = {needs};
  for (int k = 0; k < count; ++k)
    if (!reference::is_plain(reference::tensor_of(handles[k]))) return false;
  return can_run;
}}

// Whether there is an operator of this name.
bool is_declared(const char* name) {{
  return c10::Dispatcher::singleton().findSchema({{name, ""}}).has_value();
}}"""


def _operator(function: str, name: str, types: Sequence[str], graphs: Sequence[ReferenceGraph]) -> str:
    written = list(_written(function, graphs))
    values = [f"  const Value argument_{p} = {_READ[kind].format(f'given[{p}]')};" for p, kind in enumerate(types)]
    tensors = [f"argument_{position}" for position, kind in enumerate(types) if kind == "Tensor"]
    tried = [f"  if ({_conditions(graph)}) return {called}({', '.join([*tensors, 'made'])});"
             for called, _, graph in written]  # fmt: skip
    every = ", ".join(f"argument_{position}" for position in range(len(types)))
    lines = [
        f"// {name}",
        f"void {function}(const uint64_t* given, uint64_t* made) {{",
        *values,
        *tried,
        f"  reference::refuse({json.dumps(name)}, {{{every}}});",
        "}",
    ]
    return "\n\n".join([*(text for _, text, _ in written), "\n".join(lines)])


def _written(function: str, graphs: Sequence[ReferenceGraph]) -> Iterable[tuple[str, str, ReferenceGraph]]:
    for index, graph in enumerate(graphs):
        name = f"{function}_{index}"
        try:
            yield name, _function(name, graph), graph
        except NoKernel:  # an operation that C++ cannot be written for: such calls end in a sentence
            continue


def _conditions(graph: ReferenceGraph) -> str:
    """Whether a call is of the kind that a graph was made for: dtypes, ranks, sizes, constants."""
    nodes = inputs_of(graph.program)
    count = len(nodes) + len(graph.constants)
    positions = [position for position in range(count) if position not in graph.constants]
    found = [
        " || ".join(
            "(" + " && ".join(
                f"reference::is(argument_{p}, {{{spell_dtype(d)}}}, {len(node.meta['val'].shape)})"
                for p, d, node in zip(positions, dtypes, nodes, strict=True)
            ) + ")"
            for dtypes in graph.dtypes
        )
    ]  # fmt: skip
    found = [f"({found[0]})"]
    first: dict[str, str] = {}
    for position, node in zip(positions, nodes, strict=True):
        for dimension, size in enumerate(node.meta["val"].shape):
            here = f"reference::size_of(argument_{position}, {dimension})"
            if isinstance(size, int):
                found.append(f"{here} == {size}")
            elif str(size) in first:
                found.append(f"{here} == {first[str(size)]}")
            else:
                first[str(size)] = here
                found += [f"{here} >= {graph.least}"] if graph.least else []
    found += [_equals(position, value) for position, value in graph.constants.items()]
    return " && ".join(found)


def _equals(position: int, value: Any) -> str:
    if isinstance(value, bool):
        return f"argument_{position}.toBool() == {'true' if value else 'false'}"
    if isinstance(value, int):
        return f"argument_{position}.toInt() == int64_t({value})"
    return f"argument_{position}.toDouble() == {spell_float(value)}"


def _function(name: str, graph: ReferenceGraph) -> str:
    program = graph.program
    if program.state_dict or program.constants:
        raise NoKernel("the reference has tensors of its own")
    names: dict[Node, str] = {node: f"input_{k}" for k, node in enumerate(inputs_of(program))}
    lines: list[str] = []
    results: Any = ()
    for node in program.graph.nodes:
        if node.op == "output":
            results = node.args[0]
        if node.op not in ("call_function", "get_attr", "call_module"):
            continue
        if node.op != "call_function":
            raise NoKernel("the reference has a graph inside")
        expression = spell_node(node, names)
        if expression is None:
            continue
        names[node] = f"v{len(lines)}"
        lines.append(f"  const {'Values' if is_several(node) else 'Value'} {names[node]} = {expression};")
    given = ", ".join([*(f"const Value& {names[node]}" for node in inputs_of(program)), "uint64_t* made"])
    for position, result in enumerate(results):
        if not isinstance(result, Node) or not isinstance(result.meta.get("val"), torch.Tensor):
            raise NoKernel("the reference returns something else than tensors")
        lines.append(f"  made[{position}] = reference::handed_over({names[result]});")
    return "\n".join([f"static void {name}({given}) {{", *lines, "}"])
