"""Every refusal that a user can do something about says what: each has a hint, or a reason here why there is none."""

import ast
import functools
from pathlib import Path

import pytest
import torch

import opwright
from opwright import errors
from opwright.package import PACKAGE

_FAMILY = {
    "AutocastRefused", "CallableUnsupported", "CaptureRefused", "ChangesItself", "Fault", "HidesFromGradients",
    "ImportedMeanwhile", "LeftToFunction",
    "ModuleUnsupported", "NotElementwise", "OutsideTensor",
    "NoKernel", "NotEjectable", "NumberNeeded", "OutsideMoved", "OutsideUnknown", "PartsRefused", "RanMore",
    "ReferenceMissing",
    "RungMissing", "SamplesMissing", "SaveRefused", "SideEffect", "Skipped", "StillBuilding", "TracingFailed",
    "UndeclaredMutation",
    "UnsupportedParameter", "UnsupportedReturn", "UntraceableReference", "WheelUnsupported",
}  # fmt: skip
_NO_REMEDY = {
    "auditing/: can have a gradient": "the row does not apply to such a function",
    "auditing/: can have a tangent": "the row does not apply to such a function",
    "auditing/: changes its arguments": "the row does not apply to such a function",
    "auditing/: draws random numbers": "the row does not apply to such a function",
    "auditing/: exported program has": "there is nothing to decompose",
    "auditing/: no result": "the row does not apply to such a function",
    "auditing/: no two inputs": "the row does not apply to such a function",
    "auditing/: no input is of": "the row does not apply to such a function",
    "auditing/: an input has no axis": "the row does not apply to such a function",
    "auditing/: no decomposition is known": "only an operator with a reference can be decomposed",
    "auditing/: the reference itself gives": "the row cannot compare results that vary",
    "auditing/: there is one": "the row does not apply to such a function",
    "auditing/: what it saves": "the row does not apply to such a function",
    "codegen/: NotElementwise": "a kernel for each tensor serves",
    "benchmark/: the gradients do not depend": "such a function has no second derivatives",
    "checking/: no input is": "the check does not apply to such a function",
    "checking/: inputs": "the check does not apply to such a function",
    "checking/: output": "the check does not apply to such a function",
    "checking/: the reference accepts": "every call is right",
    "checking/: your function serves": "the function raises its own error, as it should",
    "binding/autograd/kernels.py: a guard of its new kernel fails": "the reference then says what is wrong with them",
    "binding/variants/backends.py: kernels are linked as Linux does it": "another system is needed",
    "codegen/cpp/loops/access.py: is indexed by": "the user wrote no such index: passes store it first",
    "deployment/library/": "calls that need such a reference end in a sentence of the library",
    "codegen/python/": "the function rung cannot spell it; kernels serve the operator",
    "deployment/onnx/runnable.py: ": "the body of the ONNX function is then made for the value of the number",
    "handwritten/kernels/cuda_kernel.py: compiles for": "another machine is needed",
    "handwritten/kernels/cuda_kernel.py: failed:": "the driver's own words are all that is known",
    "lowering/lower.py: needs the value of a number that changes": "kernels are then built for the value",
    "operators/base.py: an emitted autograd.Function does not": "the function rung only; kernels serve the operator",
    "operators/function_module.py: ": "the function rung only; kernels serve the operator",
    "optim/shipping/packaged_optimizers.py: its kernels": "the operations of the definition serve",
    "toolchain/cpu_levels.py: wheels are built for": "another machine is needed",
    "binding/variants/states.py: RanMore(": "it is never told: the call is made again",
    "tracing/outside/ran.py: RanMore(": "it is never told: the call is made again",
    "tracing/guarded.py: tracing it failed with": "the user's own error, in its own words",
    "tracing/recording/faults.py: its kernels failed with": "the machine's own error, in its own words",
    "tracing/scalars/numbers.py: ": "kernels are then built for the value of the number",
    "tracing/scalars/rounding.py: ": "kernels are then built for the value of the number",
    "tracing/scalars/sizes.py: tracing assumed": "the user may have written no such condition: torch assumes some",
}


@functools.cache
def _refusals(package):
    """Where a refusal is made without a hint, as `file: text of the call`; and how many are made in all."""
    bare, count = [], 0
    for path in sorted(package.rglob("*.py")):
        names = _names_in(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in names:
                count += 1
                if not any(keyword.arg == "hint" for keyword in node.keywords):
                    bare.append(f"{path.relative_to(package).as_posix()}: {ast.unparse(node)}")
    return bare, count


def _names_in(path):
    """The family, without a class of the same name that judges use: what is wrong with an answer has no remedy."""
    judges = path.relative_to(PACKAGE).parts[0] in ("checking", "auditing") if path.is_relative_to(PACKAGE) else False
    return _FAMILY - {"Fault"} if judges else _FAMILY


def _allowed(refusal):
    file, _, text = refusal.partition(": ")
    places = (entry.partition(": ") for entry in _NO_REMEDY)
    return any(file.startswith(where) and part in text for where, _, part in places)


def test_every_refusal_has_a_hint_or_a_reason():
    bare, count = _refusals(PACKAGE)
    assert count > 100
    assert [refusal for refusal in bare if not _allowed(refusal)] == []


def test_no_reason_is_left_behind():
    bare, _ = _refusals(PACKAGE)
    for entry in _NO_REMEDY:
        where, _, part = entry.partition(": ")
        assert any(refusal.startswith(where) and part in refusal for refusal in bare), entry


def test_the_family_is_complete():
    """Whatever ends in a FallbackWarning is a NoKernel or an UntraceableReference."""

    def below(kind):
        return {kind.__name__}.union(*(below(child) for child in kind.__subclasses__()))

    ours = below(errors.NoKernel) | below(errors.UntraceableReference)
    assert ours <= _FAMILY


@pytest.mark.parametrize(
    ("call", "found"), [("NoKernel('x')", 1), ("NoKernel('x', hint='y')", 0), ("ValueError('x')", 0)]
)
def test_a_refusal_without_a_hint_is_found(call, found, tmp_path):
    (tmp_path / "module.py").write_text(f"raise {call}\n")
    bare, _ = _refusals(Path(tmp_path))
    assert len(bare) == found


_MANY = [torch.ones(3) for _ in range(65)]


def branches(x: torch.Tensor) -> torch.Tensor:
    return x if x.sum() > 0 else -x


def returns_a_view(x: torch.Tensor) -> torch.Tensor:
    return x[1:]


def uses_one_of_many(x: torch.Tensor) -> torch.Tensor:
    return x * _MANY[0]


def looks_for_unique(x: torch.Tensor) -> torch.Tensor:
    return torch.unique(x) + 1


def doubles(x: torch.Tensor) -> torch.Tensor:
    return x * 2


_WARNINGS = {
    branches: ("looks at the values of a tensor", "choose with torch.where"),
    returns_a_view: ("returns a view of one of its arguments", "return a copy (.clone())"),
    uses_one_of_many: ("of 65 members, which may be another at each call", "make it a parameter"),
    looks_for_unique: ("depend on the values of a tensor", "keep this operation outside of the operator"),
}


@pytest.mark.falls_back
@pytest.mark.parametrize("function", _WARNINGS, ids=lambda function: function.__name__)
def test_a_warning_names_the_fact_the_line_and_the_hint(function, told):
    fact, hint = _WARNINGS[function]
    x = torch.ones(3)
    assert torch.equal(opwright.operator(function)(x), function(x))
    (said,) = told()
    first = function.__code__.co_firstlineno  # where the fault is in what is returned, that is all that is known
    assert any(f"test_hints.py:{line}: " in said for line in (first, first + 1))
    assert fact in said
    assert f"(hint: {hint}" in said


@pytest.mark.falls_back
def test_a_layout_that_kernels_do_not_take_has_a_hint(told):
    opwright.operator(doubles)(torch.eye(2).to_sparse())
    (said,) = told()
    assert said.endswith("torch.sparse_coo tensors on cpu yet (hint: convert it with .to_dense())")
