"""The input of the writers of an ejected project's files."""

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
    """An operator, with everything that the files of its project need.

    Attributes:
        name: The name of the package.
        origin: A sentence that says where it comes from.
        operator: The operator.
        parameters: The parameters of the reference.
        reference: The text of the reference, with everything that it uses.
        dtypes: The dtypes of the samples.
        kinds: The kinds of arguments that have kernels.
        forms: The kinds, grouped by `autograd.Function`.
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
