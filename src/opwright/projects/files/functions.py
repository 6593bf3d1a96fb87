"""The Python side of an ejected project: an `autograd.Function` for each form, and the public function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from opwright.codegen.placeholders import placeholder
from opwright.projects.files.function_class import (
    calls_otherwise,
    class_name,
    function_class,
    has_several_cotangents,
    may_be_none,
)
from opwright.projects.files.parameters import Parameters, spelled, with_own_names
from opwright.projects.files.wrapped import wrapped
from opwright.projects.kinds import Form
from opwright.projects.templates import code

_INDENT = "    "


def function_module(name: str, forms: Sequence[Form], parameters: Parameters) -> str:
    """Write the module.

    Args:
        name: The name of the operator, and of the package.
        forms: The forms that have kernels.
        parameters: The parameters of the reference.

    Raises:
        NotEjectable: If one of these has a name that the module needs.
    """
    drafted, drafts = parameters.drafted(), [_drafted(form) for form in forms]
    plans = [form.derivation.plan for form in forms]
    facts = {
        "name": name,
        "composed": [_written(_composed(form, drafted)) for form in drafts if calls_otherwise(form, drafted)],
        "fills": any(map(may_be_none, forms)),
        "parts": any(map(has_several_cotangents, forms)),
        "floats": any(set(plan.numbers) > set(plan.integers) for plan in plans),
        "integers": any(plan.integers for plan in plans),
        "classes": [function_class(name, form, parameters) for form in forms],
        "entry": _written(_entry(name, drafts, drafted)),
    }
    return str(code("ejected", "function.py", facts))


def _drafted(form: Form) -> Form:
    return replace(form, constants={placeholder(name): value for name, value in form.constants.items()})


def _written(draft: Iterable[str]) -> str:
    return "\n".join(map(wrapped, with_own_names("\n".join(draft)).split("\n")))


def _composed(form: Form, parameters: Parameters) -> Iterator[str]:
    inputs = ", ".join(parameters.names[position] for position in form.derivation.plan.tensors)
    given = ", ".join(f"{key}={spelled(value)}" for key, value in form.constants.items())
    yield f"def composed{form.suffix}({inputs}):"
    yield f'{_INDENT}"""The reference{f" where {given}" if given else ", by position"}."""'
    yield f"{_INDENT}return {parameters.call('reference', form.constants, {})}"


def _entry(name: str, forms: Sequence[Form], parameters: Parameters) -> Iterator[str]:
    """The public function."""
    outputs = forms[0].derivation.plan.outputs
    result = "torch.Tensor" if outputs == 1 else f"tuple[{', '.join(['torch.Tensor'] * outputs)}]"
    told = sorted({key for form in forms for key in form.constants}, key=parameters.names.index)
    yield f"def {name}({parameters.annotated()}) -> {result}:"
    yield f'{_INDENT}"""Compute {name}; arguments, results and errors are those of the reference."""'
    tensors = ", ".join(parameters.tensors)
    yield f"{_INDENT}if not _is_plain({tensors}):"
    yield f"{_INDENT * 2}return {parameters.call('reference', {}, {})}"
    for form in forms:
        yield from _attempt(name, form, parameters, told)
    yield f"{_INDENT}return {parameters.call('reference', {}, {})}"


def _attempt(name: str, form: Form, parameters: Parameters, told: Sequence[str]) -> Iterator[str]:
    plan = form.derivation.plan
    indent = _INDENT
    conditions = [_condition(parameter, form) for parameter in told]
    kinds = {position: "int" if position in plan.integers else "float" for position in plan.numbers}
    conditions += [f"type({parameters.names[position]}) is {kind}" for position, kind in kinds.items()]
    conditions = [condition for condition in conditions if condition]
    if conditions:
        comment = "  # repr tells 1, 1.0 and True apart" if any("repr" in each for each in conditions) else ""
        yield f"{indent}if {' and '.join(conditions)}:{comment}"
        indent += _INDENT
    inputs = ", ".join(parameters.names[position] for position in plan.tensors)
    chosen = "" if not plan.saved.intermediates else "[0]" if plan.outputs == 1 else f"[:{plan.outputs}]"
    yield f"{indent}try:"
    yield f"{indent}{_INDENT}return {class_name(name, form)}.apply({inputs}){chosen}"
    yield f"{indent}except Declined:"
    yield f"{indent}{_INDENT}pass"


def _condition(parameter: str, form: Form) -> str:
    """The test whether a parameter has the value that a form was derived for."""
    if parameter not in form.constants:
        return f"{parameter} is not None"
    value = form.constants[parameter]
    if value is None or isinstance(value, bool):
        return f"{parameter} is {value}"
    return f'repr({parameter}) == "{value!r}"' if not isinstance(value, str) else f"{parameter} == {value!r}"
