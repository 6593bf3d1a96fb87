"""`explain` of an optimizer: what a step reads and writes, and the source of its kernel."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opwright.optim.definition import STEP, Definition
from opwright.optim.kinds import result_names, split_numbers
from opwright.optim.serving.entries import Entry
from opwright.optim.serving.kernels import Wanted
from opwright.optim.serving.variants import Variants


def explained(definition: Definition, variants: Variants, entry: Entry, hyper: Mapping[str, Any]) -> str:
    """The page for one parameter."""
    kind, tensors = entry.kind, entry.tensors
    numbers = split_numbers(definition, hyper)[0]
    of_shape = {name: t for name, t in tensors.items() if t.shape == tensors["param"].shape}
    read = sum(tensor.element_size() for tensor in of_shape.values())
    written = sum(of_shape[name].element_size() for name in result_names(definition, kind) if name in of_shape)
    lines = [
        f"// {definition.name}: states {', '.join(definition.states) or 'none'}; given at run time: "
        f"{', '.join((STEP, *numbers))}.",
        f"// A step reads {read} bytes and writes {written} bytes for each element of a parameter.",
    ]
    text = variants.text(Wanted(kind, hyper, tensors, {**numbers, STEP: 1.0}))
    return "\n".join([*lines, text])
