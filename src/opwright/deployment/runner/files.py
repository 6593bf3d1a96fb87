"""The files beside the program: how it is built, the examples, what to read first."""

from __future__ import annotations

from pathlib import Path

import torch

from opwright.deployment.programs.exported import Exported
from opwright.deployment.runner.main_source import Model, main_source
from opwright.version import VERSION


def write_program(exported: Exported, model: Model, folder: Path, *, library: Path | None) -> None:
    """Write main.cpp, CMakeLists.txt, inputs.pt, expected.pt and README.md.

    Args:
        exported: The model.
        model: How C++ runs it.
        folder: Where they go.
        library: The library of the operators; None if the model calls none.
    """
    (folder / "main.cpp").write_text(main_source(exported, model), encoding="utf-8")
    (folder / "CMakeLists.txt").write_text(_cmake(exported.name, library), encoding="utf-8")
    (folder / "README.md").write_text(_readme(exported, model, library), encoding="utf-8")
    torch.save([tensor.detach() for tensor in exported.inputs], folder / "inputs.pt")
    torch.save(list(exported.expected), folder / "expected.pt")


def _cmake(name: str, library: Path | None) -> str:
    beside = f' "${{CMAKE_CURRENT_SOURCE_DIR}}/{library.name}" -Wl,--as-needed' if library else " -Wl,--as-needed"
    return f"""\
# Builds ./main. Written by opwright {VERSION}.
#   cmake -S . -B build -DCMAKE_PREFIX_PATH=<the folder of torch>/share/cmake && cmake --build build
cmake_minimum_required(VERSION 3.18)
project({name} CXX)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O1")  # all work is done in the model
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${{CMAKE_CURRENT_SOURCE_DIR}}")
set(CMAKE_BUILD_RPATH "$ORIGIN")

find_package(Torch REQUIRED)
add_executable(main main.cpp)
# The library registers the operators when it is loaded: nothing in main.cpp names it.
target_link_libraries(main PRIVATE "${{TORCH_LIBRARIES}}" -Wl,--no-as-needed{beside})
"""


def _readme(exported: Exported, model: Model, library: Path | None) -> str:
    names = ", ".join(operator.name for operator in exported.operators)
    holds = (
        f"| `{library.name}` | the operators {names}: kernels, and references in PyTorch's operations |\n"
        if library
        else ""
    )
    return f"""\
# {exported.name}

A model as a program that needs libtorch and no Python. Written by opwright {VERSION} with torch {torch.__version__}.

| file | is |
|---|---|
| `{model.file}` | the model, with its weights |
{holds}| `main.cpp`, `CMakeLists.txt` | a program that runs it |
| `inputs.pt`, `expected.pt` | example inputs, and what eager returned for them |

```
cmake -S . -B build -DCMAKE_PREFIX_PATH=$(python -c "import torch; print(torch.utils.cmake_prefix_path)")
cmake --build build
./main                         # the example: the largest difference to eager, and a timing
./main INPUTS.pt OUTPUTS.pt    # torch.save([x, ...], "INPUTS.pt") before, torch.load("OUTPUTS.pt") after
```

Load the library before the model. The files are for this version of libtorch, and for processors like the one they
were made on: the library computes in PyTorch's operations on lesser ones, which the model itself may not run on.
"""
