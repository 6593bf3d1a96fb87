"""The C++ of an ejected project: a source for each kind of arguments, and one that registers them.

csrc/float32.cpp    forward_float32, backward_float32
csrc/kernels.h      declares them
csrc/library.cpp    torch.ops.NAME.forward and torch.ops.NAME.backward, which call the first matching kernel
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from opwright.codegen.cpp.launcher import emit_launcher, launcher_signature
from opwright.codegen.cpp.program import takes_lists, too_many
from opwright.codegen.formula import formula_comment
from opwright.explain.format_cpp import format_cpp
from opwright.ir.program import Program
from opwright.projects.headers import headers_for, vendored
from opwright.projects.kinds import Form, Kind, describe_sample

FOLDER = "csrc"
NAMESPACE = "opwright::kernels"


@dataclass(frozen=True, slots=True)
class Passage:
    """The forward or the backward kernels of a form.

    Attributes:
        name: The operator at torch's dispatcher: "forward" or "backward", with the form's suffix.
        programs: A Program for each kind, with the launcher's name.
    """

    name: str
    programs: tuple[Program, ...]


def passages_of(form: Form) -> tuple[Passage, ...]:
    """Forward, and backward if there is one."""
    forward = tuple(_named(kind.derivation.forward, "forward", kind) for kind in form.kinds)
    backward = tuple(
        _named(kind.derivation.backward, "backward", kind) for kind in form.kinds if kind.derivation.backward
    )
    passages = (Passage(f"forward{form.suffix}", forward), Passage(f"backward{form.suffix}", backward))
    return tuple(passage for passage in passages if passage.programs)


def cpp_files(name: str, origin: str, forms: Sequence[Form]) -> Mapping[str, str]:
    """Write all sources, and the headers that they include, by path."""
    sources = {f"{kind.label}.cpp": _source(name, origin, kind) for form in forms for kind in form.kinds}
    sources["kernels.h"] = declarations(name, forms, "launch.h")
    sources["library.cpp"] = _library(name, forms)
    headers = vendored(tuple(sorted({header for text in sources.values() for header in headers_for(text)})))
    formatted = {path: format_cpp(text) for path, text in sources.items()}
    return {f"{FOLDER}/{path}": text for path, text in (formatted | dict(headers)).items()}


def _named(program: Program, way: str, kind: Kind) -> Program:
    return replace(program, name=f"{way}_{kind.label}")


def _source(name: str, origin: str, kind: Kind) -> str:
    programs = programs_of_kind(kind)
    body = "\n\n".join(emit_launcher(program, formula_comment) for program in programs)
    includes = "\n".join(f'#include "opwright/{header}"' for header in headers_for(body) if header != "launch.h")
    return (
        f"{opening(name, origin, kind)}\n"
        f'#include "kernels.h"\n\n{includes}\n\n'
        f"namespace {NAMESPACE} {{\n\n{body}\n\n}}  // namespace {NAMESPACE}\n"
    )


def opening(name: str, origin: str, kind: Kind) -> str:
    """The opening comment of the sources of a kind."""
    ways = " and ".join(way for way, _ in _ways(kind))
    return "\n".join(
        line
        for text in (f"{name}, {ways}, for arguments such as {describe_sample(kind.sample)}.", origin)
        for line in textwrap.wrap(text, 118, initial_indent="// ", subsequent_indent="//   ")
    )


def programs_of_kind(kind: Kind) -> list[Program]:
    """The emitted sources of a kind, with the names of the launchers."""
    return [_named(program, way, kind) for way, program in _ways(kind)]


def _ways(kind: Kind) -> Iterator[tuple[str, Program]]:
    yield "forward", kind.derivation.forward
    if kind.derivation.backward is not None:
        yield "backward", kind.derivation.backward


def declarations(name: str, forms: Sequence[Form], header: str) -> str:
    """The header that declares the launchers; `header` defines the tensors that they take."""
    launchers = [
        f"{launcher_signature(program.name)};"
        for form in forms
        for passage in passages_of(form)
        for program in passage.programs
    ]
    lines = "\n".join(launchers)
    return (
        f"// The kernels of {name}. Each reads tensors and sizes, and makes new tensors; it returns false, and does\n"
        "// nothing, if it does not support its arguments.\n"
        f'#pragma once\n\n#include "opwright/{header}"\n\nnamespace {NAMESPACE} {{\n\n{lines}\n\n'
        f"}}  // namespace {NAMESPACE}\n"
    )


def _library(name: str, forms: Sequence[Form]) -> str:
    passages = [passage for form in forms for passage in passages_of(form)]
    adapters = "\n\n".join(map(adapter, passages))
    definitions = "\n".join(f'  library.def("{schema(passage)}");' for passage in passages)
    implementations = "\n".join(f'  library.impl("{passage.name}", {passage.name});' for passage in passages)
    return (
        f"// torch.ops.{name}.forward and the others. Each calls the first kernel that supports the arguments; if\n"
        "// none does, the results are undefined tensors, which are None in Python.\n"
        f'#include "kernels.h"\n\n#include <torch/csrc/stable/library.h>\n\n'
        f"namespace {NAMESPACE} {{\n\n{adapters}\n\n"
        f"STABLE_TORCH_LIBRARY({name}, library) {{\n{definitions}\n}}\n\n"
        "// Registered for all devices: the kernels themselves test their arguments.\n"
        f"STABLE_TORCH_LIBRARY_IMPL({name}, CompositeExplicitAutograd, library) {{\n{implementations}\n}}\n\n"
        f"}}  // namespace {NAMESPACE}\n"
    )


def adapter(passage: Passage, entering: Sequence[str] = ()) -> str:
    """The function that torch calls with a stack of values; the lines `entering` follow once it has its tensors.

    Raises:
        NoKernel: If there are more than the dispatcher passes.
    """
    program = passage.programs[0]
    given, made = len(program.inputs), len(program.outputs)
    if takes_lists(program):
        raise too_many(given + len(program.sizes))
    tensors = ", ".join(f"take(stack[{position}])" for position in range(given))
    sizes = ", ".join(f"Size(stack[{given + position}])" for position in range(len(program.sizes)))
    tries = " || ".join(f"{each.name}(given, {'sizes' if sizes else 'nullptr'}, made)" for each in passage.programs)
    lines = [f"const Tensor given[] = {{{tensors}}};", *entering]
    lines += [f"const Size sizes[] = {{{sizes}}};"] if sizes else []
    lines += [f"Tensor made[{made}];", f"const bool done = {tries};", "finish(stack, done, made);"]
    body = "\n".join(f"  {line}" for line in lines)
    return f"static void {passage.name}(StableIValue* stack, uint64_t, uint64_t) {{\n{body}\n}}"


def schema(passage: Passage) -> str:
    """The schema of an operator of the library."""
    program = passage.programs[0]
    parameters = [f"Tensor {b.name}" for b in program.inputs] + [f"int {size}" for size in program.sizes]
    made = len(program.outputs)
    returns = "Tensor" if made == 1 else f"({', '.join(['Tensor'] * made)})"
    return f"{passage.name}({', '.join(parameters)}) -> {returns}"
