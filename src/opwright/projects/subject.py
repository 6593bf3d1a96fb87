"""What the files of an ejected project are written from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch

from opwright.operators.reference_text import ReferenceText
from opwright.projects.files.parameters import Parameters
from opwright.projects.kinds import Form, Kind, LeftOut

if TYPE_CHECKING:
    from opwright.operators.base import BaseOperator


@dataclass(frozen=True, slots=True)
class Subject:
    """An operator, as the files of its project are written from it.

    Attributes:
        name: Of the package.
        origin: Where it comes from, in a sentence.
        operator: The operator.
        parameters: What it takes.
        reference: Its text, with all that it uses.
        dtypes: Those that samples were made of.
        kinds: What there are kernels for.
        forms: The same, grouped.
        left_out: Samples without kernels.
    """

    name: str
    origin: str
    operator: BaseOperator
    parameters: Parameters
    reference: ReferenceText
    dtypes: tuple[torch.dtype, ...]
    kinds: tuple[Kind, ...]
    forms: tuple[Form, ...]
    left_out: tuple[LeftOut, ...]
