"""README.md of an ejected project."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from opwright.codegen.formula import emit_formulas
from opwright.ir.relations.relations import relations
from opwright.projects.files.parameters import class_stem
from opwright.projects.kinds import Form, Kind, describe_sample
from opwright.projects.subject import Subject
from opwright.projects.templates import prose


def readme(subject: Subject) -> str:
    """Write the file from the derived kinds and forms."""
    first = subject.kinds[0].derivation
    facts: dict[str, Any] = {
        "name": subject.name,
        "module": class_stem(subject.name),
        "origin": subject.origin,
        "reference": subject.reference.functions[subject.operator.reference.__name__],
        "forward": "\n".join(emit_formulas(first.forward)),
        "backward": "\n".join(emit_formulas(first.backward)) if first.backward else "",
        "tangents": len(first.plan.tangents),
        "kept": _kept(subject.forms[0]),
        "files": list(_files(subject)),
        "kinds": [_kind(kind) for kind in subject.kinds],
        "sizes": _by_sizes(subject.kinds),
        "constants": ", ".join(sorted({name for form in subject.forms for name in form.constants})),
        "left": subject.left_out,
        "cuda": [kind.label for kind in subject.kinds if kind.cuda],
        "without_cuda": [(kind.label, kind.without_cuda) for kind in subject.kinds if not kind.cuda],
        "opwright": _plug(subject),
    }
    return prose("ejected", "README.md", facts)


def _files(subject: Subject) -> Iterator[tuple[str, str]]:
    name = subject.name
    for kind in subject.kinds:
        yield f"csrc/{kind.label}.cpp", "kernels, and the launchers that walk them over tensors"
    yield "csrc/library.cpp", f"puts them at `torch.ops.{name}`"
    if any(kind.cuda for kind in subject.kinds):
        yield "csrc/cuda/", "the same for GPUs: kernels (`.cu`), their arguments (`.h`), launchers (`_launch.cpp`)"
    yield "csrc/opwright/", "the headers of opwright, with their licence"
    yield f"{name}/function.py", f"the `autograd.Function`, and `{name}` itself"
    yield f"{name}/module.py", f"`{class_stem(name)}`, an `nn.Module` around it"
    yield f"{name}/reference.py", "the function of PyTorch operations that everything is derived from"
    yield "tests/", "values, gradients, second derivatives, layouts, empty tensors, refusals"


def _kind(kind: Kind) -> dict[str, str]:
    return {"label": kind.label, "arguments": describe_sample(kind.sample)}


def _by_sizes(kinds: Sequence[Kind]) -> list[tuple[str, str]]:
    """The conditions of kernels on sizes, each with the labels of the kernels that share them."""
    found: dict[str, list[str]] = {}
    for kind in kinds:
        found.setdefault(_sizes(kind), []).append(f"`{kind.label}`")
    return [(", ".join(labels), sizes) for sizes, labels in found.items() if sizes]


def _sizes(kind: Kind) -> str:
    """The conditions of the kernels on sizes, besides that sizes are at least two."""
    found = relations(kind.derivation.forward.guards)
    equal = [f"`{name}` = `{value}`" for name, value in found.equal.items()]
    return ", ".join([*equal, *(f"`{condition}`" for condition in found.beyond_least)])


def _kept(form: Form) -> str:
    plan, specs = form.derivation.plan, form.derivation.specs
    kept = [specs[position].name for position in plan.saved.arguments]
    kept += ["results"] if plan.saved.outputs else []
    kept += ["intermediates"] if plan.saved.intermediates else []
    return ", ".join(kept)


def _plug(subject: Subject) -> str:
    """The code with which an edited project serves the operator in opwright."""
    name, reference = subject.name, subject.operator.reference
    head = f"from {name} import {name} as edited\nfrom {reference.__module__} import {reference.__name__}\n\n"
    return head + f'{reference.__name__}.implement("function", edited)\n{reference.__name__}.check()'
