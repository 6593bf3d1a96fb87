"""The target "aoti"."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from opwright.deployment.aoti.package import write_package
from opwright.deployment.library.build import build_library
from opwright.deployment.library.planned import plan_library
from opwright.deployment.programs.exported import Exported
from opwright.deployment.programs.settled import with_settled_arguments
from opwright.deployment.programs.target import Checked, Options, Target
from opwright.deployment.runner.files import write_program
from opwright.deployment.runner.main_source import Model
from opwright.deployment.runner.running import build_and_run, needs_cmake
from opwright.settings import Settings
from opwright.toolchain.process.threads import done_meanwhile

_MODEL = Model(
    "model.pt2",
    ("torch/csrc/inductor/aoti_package/model_package_loader.h",),
    """
class Model {
 public:
  explicit Model(const std::string& path) : loader_(path, "model", /*run_single_threaded=*/true) {}
  std::vector<at::Tensor> run(const std::vector<at::Tensor>& inputs) { return loader_.run(inputs); }

 private:
  torch::inductor::AOTIModelPackageLoader loader_;
};
""",
)


def _write(exported: Exported, folder: Path, options: Options) -> dict[str, Any]:
    exported = with_settled_arguments(exported)
    planned = plan_library(exported, shims=options.direct)
    # AOTInductor runs one compiler at a time, and another core may be free.
    build = partial(build_library, planned, folder, options.settings)
    with done_meanwhile(build if planned.operators else _nothing, "opwright deployment") as built:
        write_package(exported, planned, folder / _MODEL.file, direct=options.direct)
        library = built()
    write_program(exported, replace(_MODEL, needs=planned.level.features), folder, library=library)
    return {
        "operators": {name: operator.name for name, operator in planned.operators.items()},
        "direct": options.direct,
    }


def _nothing() -> None:
    """Build no library: the model calls no operators."""


def _check(folder: Path, manifest: dict[str, Any], settings: Settings) -> Checked:
    return build_and_run(folder, settings)


AOTI = Target("aoti", ("direct",), needs_cmake, _write, _check)
