"""docs/library.md, from the docstrings of the ready operators and the figures of benchmarks/library.py."""

from __future__ import annotations

import importlib
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import opwright.library
from opwright.library.samples import MEASURED

_START = """# Ready operators

`opwright.library` has {count} operators to call as they are. Each is an ordinary PyTorch function under
`@opwright.operator`: its kernels are derived and built at the first call, it is differentiable to any order; `check`,
`audit`, `explain` and `eject` work as for an operator of your own. The sources are short: copy one, and change it.

```python
import torch
import opwright

x, gate = torch.randn(512, 1024), torch.randn(512, 1024)
y = opwright.library.swiglu(x, gate)
```

The ratios say how many times faster an operator is than the better of eager PyTorch and `torch.compile(dynamic=False)`:
forward without gradients, and forward and backward together, in float32, at a small, a medium and a large size, whose
shapes are in [library.json](library.json) with the times. At the small size the peer is eager alone: there, a call of
what `torch.compile` compiles took 40 µs and more, and 270 µs with a backward pass. What is slower anywhere is not here.

Machine: {machine}. The machine was in use, so single ratios may be off by a fifth and more.
`python benchmarks/library.py --processor-time --record docs/library.json` measures them again, and
`pytest tests/library/test_page.py --update-golden` writes this page.
"""


def page(record: Mapping[str, Any]) -> str:
    """The page, for the figures of docs/library.json."""
    count = len(opwright.library.__all__)
    texts = [_START.format(count=count, machine=_machine(record))]
    for module in map(importlib.import_module, sorted({_module_of(name) for name in opwright.library.__all__})):
        names = [name for name in vars(module) if name in opwright.library.__all__]
        texts.append("\n".join([f"## {_line(module)}", "", *_rows(names, record), ""]))
    return "\n".join(texts).rstrip() + "\n"


def sections(name: str) -> tuple[str, str, str]:
    """What an operator does, its formula, and the source of the formula."""
    text = inspect.getdoc(getattr(opwright.library, name).reference) or ""
    summary, formula, *_ = text.split("\n\n")
    return summary, _joined(formula), _joined(text.partition("\nSource:\n")[2])


def _rows(names: list[str], record: Mapping[str, Any]) -> Iterator[str]:
    yield "| name | what it does | formula | forward × | both × | source |"
    yield "|---|---|---|---|---|---|"
    for name in names:
        summary, formula, source = sections(name)
        found = record[name]["sizes"]
        ratios = [" ".join(f"{found[size][f'{which} ×']:.2f}" for size in MEASURED) for which in ("forward", "both")]
        cells = (f"`{name}`", summary, f"`{formula}`", *ratios, source)
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _module_of(name: str) -> str:
    return str(getattr(opwright.library, name).reference.__module__)


def _machine(record: Mapping[str, Any]) -> str:
    machines = {json.dumps(each["machine"], sort_keys=True): each["machine"] for each in record.values()}
    facts = [", ".join(f"{key} {value}" for key, value in machine.items()) for machine in machines.values()]
    return "; or ".join(facts)


def _line(module: Any) -> str:
    return re.sub(r"[.:,].*", "", (module.__doc__ or "").partition("\n")[0])


def _joined(text: str) -> str:
    return " ".join(text.split())
