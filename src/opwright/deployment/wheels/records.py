"""What the runtime of a wheel reads of an operator, as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from opwright.deployment.wheels.planned import PlannedOperator, PlannedVariant


def operator_record(planned: PlannedOperator) -> dict[str, Any]:
    """Write an operator down; `deployment/wheels/runtime/package.py` reads it."""
    return {
        "name": planned.name,
        "attribute": planned.short_name,
        "reference": planned.operator.reference.__name__,
        "schema": planned.registered().schema,
        "gradients_schema": _gradients_schema(planned),
        "variants": [_variant_record(variant) for variant in planned.variants],
    }


def _variant_record(variant: PlannedVariant) -> dict[str, Any]:
    plan, saved = variant.plan, variant.plan.saved
    intermediates = range(plan.outputs, plan.outputs + saved.intermediates)
    return {
        "rung": variant.serving.backend,
        "device": variant.serving.device,
        "forward": plan.forward.name,
        "backward": plan.backward.name if plan.backward else None,
        "constants": {position: (type(value).__name__, repr(value)) for position, value in variant.constants.items()},
        "tensors": plan.tensors,
        "numbers": plan.numbers,
        "integers": plan.integers,
        "number_guards": [(position, asdict(guard)) for position, guard in plan.number_guards],
        "outputs": plan.outputs,
        "tangents": plan.tangents,
        "reach": plan.reach,
        "gradients": plan.gradients,
        "arguments": saved.arguments,
        "contributing": [position for position in saved.contributing if position not in plan.numbers],
        "checked": saved.checked,
        "kept": (*saved.outputs, *intermediates),
        "sizes": saved.sizes,
        "is_random": plan.is_random,
        "orders": plan.orders,
        "needs_row_major": plan.needs_row_major,
        "needs_whole_memory": plan.needs_whole_memory,
    }


def _gradients_schema(planned: PlannedOperator) -> str | None:
    """The operation (arguments…, cotangents…) → gradients; None if there are none, or there are several."""
    plans = [variant.plan for variant in planned.variants if variant.plan.backward is not None]
    if len({(plan.gradients, plan.tangents) for plan in plans}) != 1 or any(plan.is_random for plan in plans):
        return None
    arguments = [f"{parameter.type} {parameter.name}" for parameter in planned.signature.parameters]
    cotangents = [f"Tensor cotangent_{position}" for position in plans[0].tangents]
    count = len(plans[0].gradients)
    returns = "Tensor" if count == 1 else f"({', '.join(['Tensor'] * count)})"
    return f"{planned.short_name}_gradients({', '.join([*arguments, *cotangents])}) -> {returns}"
