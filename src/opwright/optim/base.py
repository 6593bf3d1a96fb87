"""Optimizers of this process, whose kernels are derived when they are needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import torch

from opwright.checking.verdict import Verdict
from opwright.deployment.wheels.optimizers import PlannedOptimizer
from opwright.deployment.wheels.planned import Serving
from opwright.optim.hyper import by_name
from opwright.optim.serving.entries import Manner
from opwright.optim.serving.variants import Variants
from opwright.optim.shipping.planning import planned
from opwright.optim.stepping import SteppingOptimizer
from opwright.optim.telling.checked import checked
from opwright.optim.telling.explained import explained
from opwright.optim.telling.timed import COUNT, ROUNDS, StepTimes, sizes_between, timed
from opwright.report.shown import Page
from opwright.samples import DEFAULT_DTYPES

if TYPE_CHECKING:
    from opwright.optim.shipping.ejecting import EjectedOptimizer


class DerivedOptimizer(SteppingOptimizer):
    """An optimizer derived from a definition; see `opwright.optimizer`.

    Its states are in `state[param]` under their names, beside `step`. Hyper-parameters are read at every step.
    """

    variants: ClassVar[Variants]

    @classmethod
    def plan_for_wheel(
        cls, given: Sequence[Any], dtypes: Sequence[torch.dtype], servings: Sequence[Serving]
    ) -> PlannedOptimizer:
        """What `opwright.build_wheel` builds of this class, or of optimizers of it.

        Args:
            given: The class, or optimizers.
            dtypes: Of the parameters that the class is tried with.
            servings: The backends of the wheel.
        """
        return planned(cls, given, dtypes, servings)

    @classmethod
    def eject(
        cls,
        directory: str | Path,
        *,
        dtypes: Sequence[torch.dtype] = DEFAULT_DTYPES,
        force: bool = False,
        **hyper: Any,
    ) -> EjectedOptimizer:
        """Write a project that does not need opwright: the sources of its kernels, its definition, and tests.

        Args:
            directory: Where to write it: a new or empty directory.
            dtypes: Of the parameters that have kernels.
            force: Whether to overwrite files in a directory that is not empty.
            hyper: Hyper-parameters other than the defaults, of which flags and None decide what the kernels do.
        """
        from opwright.optim.shipping.ejecting import eject_optimizer  # and with it what writes projects

        by_name(cls.__name__, cls.definition, (), hyper)
        return eject_optimizer(cls, directory, tuple(dict.fromkeys(dtypes)), hyper, force=force)

    @classmethod
    def check(cls, *, dtypes: Sequence[torch.dtype] = DEFAULT_DTYPES, **hyper: Any) -> Verdict:
        """Test steps against the definition in float64, and the first and second derivatives of `functional`.

        Args:
            dtypes: Of the parameters.
            hyper: Hyper-parameters other than the defaults.
        """
        return checked(lambda params: cls(params, **hyper), cls.definition, cls._defaults(hyper), dtypes)

    @classmethod
    def bench(cls, *, sizes: Sequence[int] | None = None, rounds: int = ROUNDS, **hyper: Any) -> StepTimes:
        """Measure steps beside those of the definition, and of torch.optim's optimizer of the same name.

        Args:
            sizes: Of the parameters, in elements; by default 300 from 64 to 65,536.
            rounds: How often each is measured, in turn; medians are reported.
            hyper: Hyper-parameters other than the defaults.
        """
        sizes = sizes_between(COUNT) if sizes is None else sizes
        return timed(lambda params: cls(params, **hyper), cls.definition, cls._defaults(hyper), sizes, rounds)

    @classmethod
    def explain(cls, *, shape: Sequence[int] = (16, 16), dtype: torch.dtype = torch.float32, **hyper: Any) -> str:
        """Return the source of the kernel for parameters of a shape and dtype, with what it is and moves.

        Args:
            shape: Of a parameter.
            dtype: Of a parameter.
            hyper: Hyper-parameters other than the defaults.
        """
        param = torch.zeros(tuple(shape), dtype=dtype, requires_grad=True)
        param.grad = torch.zeros_like(param)
        optimizer = cls([param], **hyper)
        plan = optimizer._new_plan([param], [0], Manner(scaled=False, written=False, at_random=False))
        return Page(explained(cls.definition, cls.variants, plan.entries[0], cls._defaults(hyper)), "cpp")
