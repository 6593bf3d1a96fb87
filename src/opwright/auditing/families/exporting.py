"""torch.export: the exported program, its decompositions, AOTInductor packages and ONNX models."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch._ops import OpOverload

from opwright.auditing.case import Case, tensors_of
from opwright.auditing.families.compilation import forward, in_each_size
from opwright.auditing.judge import Judge
from opwright.auditing.modules import Calling
from opwright.auditing.witness import Seen
from opwright.checking.calls import fresh
from opwright.checking.finding import Fault, Skipped
from opwright.errors import CompilerMissing
from opwright.samples import Sample
from opwright.settings import Settings
from opwright.toolchain.compiler import find_compiler

_ONNX = ("onnx", "onnxscript", "onnxruntime")
_OF_TORCH = ("aten", "prim", "prims", "_operator", "higher_order")


def exported(case: Case) -> Seen:
    """Export a module that calls the function, and run the program."""
    _refuse_changes(case)
    return _run(_export(case).module(), case.sample)


def exported_in_each_size(case: Case) -> Seen:
    """Export with dynamic sizes, and run the program with other sizes."""
    _refuse_changes(case)
    if len(case.sizes) < 2:
        raise Skipped("the samples have one size only", hint="give samples= several sizes")
    first, *others = case.sizes
    also: Any = torch.export.AdditionalInputs()
    for sample in others:
        also.add(sample.args, dict(sample.kwargs))
    program = torch.export.export(Calling(case.function), first.args, dict(first.kwargs), dynamic_shapes=also)
    return {f"output with {sample.name}": _run(program.module(), sample)["output"] for sample in case.sizes}


def decomposed(case: Case) -> Seen:
    """Export, decompose to core ATen operations, and run the program."""
    _refuse_changes(case)
    return _run(_export(case).run_decompositions().module(), case.sample)


def decomposed_to_the_reference(case: Case) -> Seen:
    """Export, decompose the operator into its reference, and run the program of torch's own operations."""
    _refuse_changes(case)
    program = _export(case)
    if not _strangers(program):
        raise Skipped("the exported program has torch's own operations only")
    program = _by_the_reference(program, case)
    if left := _strangers(program):
        raise Fault(f"{', '.join(left)} is left in the program")
    return _run(program.module(), case.sample)


def packaged(case: Case) -> Seen:
    """Compile an AOTInductor package, load it and run it."""
    _refuse_changes(case)
    try:
        find_compiler(Settings.from_environment())
    except CompilerMissing as missing:
        raise Skipped(missing.fact, hint=missing.hint) from missing
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "audited.pt2")
        torch._inductor.aoti_compile_and_package(_export(case), package_path=path)
        return _run(torch._inductor.aoti_load_package(path), case.sample)


def run_by_onnx(case: Case) -> Seen:
    """Export to ONNX in float32, and run the model with onnxruntime."""
    _demand_onnx(case)
    import onnxruntime

    sample = _in_float32(case.sample)
    exported_program = torch.export.export(Calling(case.function), sample.args, dict(sample.kwargs))
    if _strangers(exported_program):
        exported_program = _by_the_reference(exported_program, case)
    with TemporaryDirectory() as folder:
        path = str(Path(folder) / "audited.onnx")
        program = torch.onnx.export(exported_program, dynamo=True, verbose=False)
        assert program is not None
        program.save(path)
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        names = [given.name for given in session.get_inputs()]
        values = [tensor.numpy() for tensor in sample.tensors()]
        found = session.run(None, dict(zip(names, values, strict=False)))
    return {"output": tuple(torch.from_numpy(value) for value in found)}


def in_float32(case: Case) -> Seen:
    """Call the function in float32."""
    _demand_onnx(case)
    sample = _in_float32(case.sample)
    return {"output": tensors_of(case.function(*sample.args, **sample.kwargs))}


def _export(case: Case) -> torch.export.ExportedProgram:
    sample = fresh(case.sample)
    return torch.export.export(Calling(case.function), sample.args, dict(sample.kwargs))


def _run(program: Any, sample: Sample) -> Seen:
    given = fresh(sample)
    return {"output": tensors_of(program(*given.args, **given.kwargs))}


def _by_the_reference(program: torch.export.ExportedProgram, case: Case) -> torch.export.ExportedProgram:
    if case.overload is None or case.reference is None:
        raise Skipped(f"no decomposition is known for {', '.join(_strangers(program))}")
    rewritten: torch.export.ExportedProgram = program.run_decompositions({case.overload: case.reference})
    return rewritten


def _strangers(program: torch.export.ExportedProgram) -> list[str]:
    """Operators in the program that are not torch's own."""
    targets = [node.target for node in program.graph.nodes if node.op == "call_function"]
    return [str(t) for t in targets if isinstance(t, OpOverload) and t.namespace not in _OF_TORCH]


def _refuse_changes(case: Case) -> None:
    if case.changed:
        raise Skipped("it changes its arguments, so the program would run with other values than it was exported with")


def _demand_onnx(case: Case) -> None:
    _refuse_changes(case)
    if missing := [name for name in _ONNX if find_spec(name) is None]:
        raise Skipped(f"{_and(missing)} cannot be imported here", hint=f"pip install {' '.join(missing)}")


def _in_float32(sample: Sample) -> Sample:
    return sample.map(lambda tensor: tensor.detach().float() if tensor.is_floating_point() else tensor.detach())


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


JUDGES = (
    Judge("export", exported, expected=forward, differentiates=False),
    Judge("export, sizes not fixed", exported_in_each_size, expected=in_each_size, differentiates=False),
    Judge("export, decomposed", decomposed, expected=forward, differentiates=False),
    Judge("export, decomposed to the reference", decomposed_to_the_reference, expected=forward, differentiates=False),
    Judge("AOTInductor package", packaged, expected=forward, differentiates=False, slow=True),
    Judge("ONNX", run_by_onnx, expected=in_float32, differentiates=False, slow=True),
)
