"""audit: test an operator under PyTorch's transforms, modes and tools."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any

from opwright.auditing.cases import cases_of
from opwright.auditing.options import Options
from opwright.auditing.scorecard import Scorecard, together
from opwright.checking.parts import in_parts, part_of
from opwright.checking.subject import subject_of
from opwright.errors import CheckUnknown
from opwright.operators.base import BaseOperator
from opwright.samples import Progress, SampleFactory


def audit(
    subject: BaseOperator | Callable[..., Any],
    reference: Callable[..., Any] | None = None,
    samples: SampleFactory | None = None,
    *,
    progress: Progress | None = None,
    part: str = "",
    executor: Executor | None = None,
    parts: int = 8,
    **options: Any,
) -> Scorecard:
    """Test derivatives, transforms, compilers, modes and processes against the reference, row by row.

    Every row does the same thing to the subject and to the reference, and compares the results. It clears what
    `torch.compile` has compiled in this process.

    Args:
        subject: An operator of opwright or of `torch.ops`, a subclass of `torch.autograd.Function`, or any callable.
        reference: A function of PyTorch operations that defines what is right; an operator of opwright has its own.
        samples: Makes the test calls, of which the smallest is used; an operator of opwright may have its own.
        progress: Called before each row.
        part: "i/n" runs one of n parts of the rows; all together are the whole audit.
        executor: Of `concurrent.futures`: runs all parts, perhaps in other processes or on other machines, which must
            be able to import the subject.
        parts: How many parts an executor is given.
        options: `dtype=`, `device=`, `steps=`, `quick=` and `only=`; see `Options`.

    Raises:
        ReferenceMissing: The subject is not an operator of opwright and no reference is given.
        SamplesMissing: There are no samples, or the reference does not take them.
        CheckUnknown: No row has a name that `only` asks for.
        ValueError: `part` is not written as "i/n".
    """
    if executor is not None:
        return together(in_parts(executor, parts, audit, subject, reference, samples, **options))
    from opwright.auditing.families.table import FAMILIES  # imports torch's compilers, which nothing else needs

    chosen = Options(**options)
    judged = subject_of(subject, reference, samples, "it cannot be audited")
    mine, theirs = cases_of(judged, chosen)
    wanted = [(family, judge) for family, judges in FAMILIES.items() for judge in judges]
    wanted = [(family, judge) for family, judge in wanted if chosen.wants(family, judge.name)]
    if not wanted:
        raise CheckUnknown(
            f"no row is called {' or '.join(chosen.only)}", hint=f"the families are {', '.join(FAMILIES)}"
        )
    wanted = list(part_of(wanted, part))
    rows = []
    for done, (family, judge) in enumerate(wanted):
        if progress:
            progress(f"{family}: {judge.name}", done, len(wanted))
        rows.append(judge.row(family, mine, theirs))
    return Scorecard(judged.name, tuple(rows), part)
