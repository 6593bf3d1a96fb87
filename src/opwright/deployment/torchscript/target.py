"""The target "torchscript"."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch

from opwright.deployment.library.build import build_library
from opwright.deployment.library.planned import plan_library
from opwright.deployment.library.renamed import renamed
from opwright.deployment.programs.exported import Exported
from opwright.deployment.programs.settled import with_settled_arguments
from opwright.deployment.programs.target import Checked, Options, Target
from opwright.deployment.runner.files import write_program
from opwright.deployment.runner.main_source import Model
from opwright.deployment.runner.running import build_and_run, needs_cmake
from opwright.deployment.torchscript.archive import write_archive
from opwright.deployment.torchscript.script import script_module
from opwright.settings import Settings

_MODEL = Model(
    "model.ts",
    ("torch/csrc/jit/api/module.h", "torch/csrc/jit/serialization/import.h"),
    """
class Model {
 public:
  explicit Model(const std::string& path) : module_(torch::jit::load(path)) { module_.eval(); }
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) {
    const c10::IValue made = module_.forward({inputs.begin(), inputs.end()});
    if (made.isTensor()) return {made.toTensor()};
    std::vector<at::Tensor> tensors;
    for (const c10::IValue& each : made.toTupleRef().elements()) tensors.push_back(each.toTensor());
    return tensors;
  }

 private:
  torch::jit::Module module_;
};
""",
)


def _write(exported: Exported, folder: Path, options: Options) -> dict[str, Any]:
    exported = with_settled_arguments(exported)
    planned = plan_library(exported)
    with renamed(exported, planned) as (program, _), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is deprecated, and still what many load
        if exported.script is None:
            torch.jit.save(script_module(program), folder / _MODEL.file)
        else:
            names = {name: operator.name for name, operator in planned.operators.items()}
            write_archive(exported.script, names, folder / _MODEL.file)
    library = build_library(planned, folder, options.settings) if planned.operators else None
    write_program(exported, _MODEL, folder, library=library)
    return {"operators": {name: operator.name for name, operator in planned.operators.items()}}


def _check(folder: Path, manifest: dict[str, Any], settings: Settings) -> Checked:
    return build_and_run(folder, settings)


TORCHSCRIPT = Target("torchscript", (), needs_cmake, _write, _check, keeps_scripts=True)
