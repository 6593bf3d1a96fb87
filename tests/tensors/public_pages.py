"""Coverage of public tensor types as pages.

`python -m tests.tensors.public_pages [NAME …]` writes docs/coverage/NAME.md; all of them, if none is named.
Exit code 1 if something is wrong without a reason in `public_types.py`; what it is goes to stderr.
"""

from __future__ import annotations

import sys
from pathlib import Path

from opwright.tensors.covering.pages import unexplained
from tests.tensors.public_types import PUBLIC

FOLDER = Path(__file__).parents[2] / "docs" / "coverage"


def write(name: str, folder: Path = FOLDER) -> list[str]:
    """Write the page of a type; returns what has no reason."""
    public = PUBLIC[name]
    report = public.report()
    (folder / f"{name}.md").write_text(public.page(report), encoding="utf-8")
    return unexplained(report.to_dict(), public.why)


if __name__ == "__main__":
    faults = {name: write(name) for name in sys.argv[1:] or PUBLIC}
    for name, said in faults.items():
        print(*(f"{name}: {each}" for each in said), sep="\n", file=sys.stderr, end="\n" * bool(said))
    sys.exit(any(faults.values()))
