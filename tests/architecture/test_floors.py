"""The package keeps its floors and habits, and each check refuses a planted violation."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.architecture import floors, habits
from tests.architecture.source_tree import Module, read_package

REPOSITORY = Path(__file__).parents[2]
CHECKS = (*floors.FLOOR_CHECKS, *habits.HABIT_CHECKS)

Check = Callable[[dict[str, Module]], list[str]]


@dataclass(frozen=True, slots=True)
class Planted:
    """A small package and what a check says of it; nothing when it is allowed."""

    name: str
    check: Check
    files: dict[str, str]
    complaints: tuple[str, ...] = ()


REFUSED = (
    Planted(
        "unknown folder",
        floors.every_module_has_a_floor,
        {"attic/box.py": ""},
        ("opwright.attic.box has no floor",),
    ),
    Planted(
        "upward",
        floors.no_upward_import,
        {"ir/program.py": "\nfrom opwright.cli.main import main", "cli/main.py": "main = 1"},
        ("opwright.ir.program:2 imports opwright.cli.main",),
    ),
    Planted(
        "upward and relative",
        floors.no_upward_import,
        {"ir/program.py": "from ..passes.loops import fuse", "passes/loops/fuse.py": ""},
        ("opwright.ir.program:1 imports opwright.passes.loops.fuse",),
    ),
    Planted(
        "upward inside a function",
        floors.no_upward_import,
        {"ir/program.py": "class A:\n    def f(self):\n        import opwright.passes.loops.fuse"},
        ("opwright.ir.program:3 imports opwright.passes.loops.fuse",),
    ),
    Planted(
        "upward for typing",
        floors.no_upward_import,
        {"ir/program.py": "if TYPE_CHECKING:\n    from opwright.api.operator import Operator"},
        ("opwright.ir.program:2 imports opwright.api.operator",),
    ),
    Planted(
        "to the roof",
        floors.no_upward_import,
        {"cli/main.py": "from opwright import shapes"},
        ("opwright.cli.main:1 imports opwright",),
    ),
    Planted(
        "sideways",
        floors.no_upward_import,
        {"checking/verdict.py": "import opwright.benchmark.timer"},
        ("opwright.checking.verdict:1 imports opwright.benchmark.timer",),
    ),
    Planted(
        "sideways against the listed direction",
        floors.no_upward_import,
        {"tracing/trace.py": "import opwright.lowering.lower"},
        ("opwright.tracing.trace:1 imports opwright.lowering.lower",),
    ),
    Planted(
        "late import",
        floors.no_upward_import,
        {"operators/base.py": "def check():\n    import opwright.checking"},
        ("opwright.operators.base:2 imports opwright.checking",),
    ),
    Planted(
        "cycle",
        floors.no_cycle,
        {"ir/a.py": "from opwright.ir import b", "ir/b.py": "def f():\n    from opwright.ir.a import g"},
        ("opwright.ir.a imports opwright.ir.b imports opwright.ir.a",),
    ),
    Planted(
        "cycle through a package",
        floors.no_cycle,
        {"ir/__init__.py": "from opwright.ir.a import g", "ir/a.py": "from opwright.ir import f"},
        ("opwright.ir imports opwright.ir.a imports opwright.ir",),
    ),
    Planted(
        "circle of folders",
        floors.no_circle_of_folders,
        {
            "ir/left/a.py": "import opwright.ir.right.b",
            "ir/right/b.py": "",
            "ir/right/c.py": "def f():\n    from opwright.ir.left import d",
            "ir/left/d.py": "",
        },
        ("opwright.ir.left.a:1 imports opwright.ir.right.b, and opwright.ir.right.c:2 imports opwright.ir.left.d",),
    ),
    Planted(
        "torch",
        floors.torch_free_floors,
        {"passes/loops/fuse.py": "def f():\n    import torch.fx"},
        ("opwright.passes.loops.fuse imports torch through opwright.passes.loops.fuse:2",),
    ),
    Planted(
        "torch through another module",
        floors.torch_free_floors,
        {"codegen/emit.py": "import opwright.settings", "settings.py": "from torch import nn"},
        ("opwright.codegen.emit imports torch through opwright.settings:1",),
    ),
    Planted(
        "torch through a package",
        floors.torch_free_floors,
        {
            "codegen/emit.py": "import opwright.toolchain.flags",
            "toolchain/__init__.py": "import torch",
            "toolchain/flags.py": "",
        },
        ("opwright.codegen.emit imports torch through opwright.toolchain:1",),
    ),
    Planted(
        "vague names",
        habits.no_vague_name,
        {"ir/utils.py": "", "core/node.py": ""},
        ("opwright.core.node has a vague name", "opwright.ir.utils has a vague name"),
    ),
    Planted(
        "a trace function",
        habits.trace_functions_are_put_up_in_one_file,
        {"tracing/outside/a.py": "import sys\nsys.settrace(None)"},
        ("opwright.tracing.outside.a:2 puts up a trace function",),
    ),
    Planted(
        "environment",
        habits.environment_is_read_in_settings,
        {"toolchain/a.py": 'import os\nos.environ["A"]', "toolchain/b.py": "from os import getenv"},
        ("opwright.toolchain.a:2 reads the environment", "opwright.toolchain.b:1 reads the environment"),
    ),
    Planted(
        "unpickling",
        habits.nothing_is_unpickled,
        {"toolchain/a.py": "import pickle", "toolchain/b.py": 'import torch\ntorch.load("a.pt")'},
        ("opwright.toolchain.a:1 can unpickle", "opwright.toolchain.b:2 can unpickle"),
    ),
    Planted(
        "a change of torch",
        habits.torch_is_changed_in_hooks,
        {
            "tracing/a.py": 'sys.modules["torch._dynamo"] = None\ntorch.Tensor.sum = None',
            "binding/b.py": "del FakeTensor.x",
        },
        (
            "opwright.binding.b:1 changes what belongs to torch",
            "opwright.tracing.a:1 changes what belongs to torch",
            "opwright.tracing.a:2 changes what belongs to torch",
        ),
    ),
    Planted(
        "length",
        habits.no_module_is_long,
        {"ir/long.py": "\n" * (habits.MOST_LINES + 1), "ir/long_enough.py": "\n" * habits.MOST_LINES},
        (f"opwright.ir.long has {habits.MOST_LINES + 1} lines, {habits.MOST_LINES} are the most",),
    ),
    Planted(
        "a full folder",
        habits.no_folder_is_full,
        {
            **{f"ir/full/{number}.py": "" for number in range(habits.MOST_FILES + 1)},
            **{f"ir/{number}.py": "" for number in range(habits.MOST_FILES)},
        },
        (f"opwright.ir.full has {habits.MOST_FILES + 1} modules, {habits.MOST_FILES} are the most",),
    ),
    Planted(
        "a hidden module",
        habits.no_member_hides_a_module,
        {"api/__init__.py": "from opwright.api.check import check", "api/check.py": ""},
        ("opwright.api:1 hides opwright.api.check",),
    ),
)

ALLOWED = (
    Planted("downward", floors.no_upward_import, {"cli/main.py": "from opwright.ir.program import Program"}),
    Planted("inside a folder", floors.no_upward_import, {"ir/a.py": "from . import b", "ir/b.py": ""}),
    Planted("listed sideways", floors.no_upward_import, {"lowering/lower.py": "import opwright.tracing.trace"}),
    Planted("the roof", floors.no_upward_import, {"__init__.py": "from opwright.api.decorator import operator"}),
    Planted("torch on the roof", floors.torch_free_floors, {"__init__.py": "import torch", "ir/a.py": ""}),
    Planted(
        "a module itself", habits.no_member_hides_a_module, {"__init__.py": "from opwright import ir", "ir/a.py": ""}
    ),
    Planted("torch above", floors.torch_free_floors, {"tracing/trace.py": "import torch"}),
    Planted("settings", habits.environment_is_read_in_settings, {"settings.py": "import os\nos.environ"}),
    Planted(
        "its own pickle",
        habits.nothing_is_unpickled,
        {"auditing/families/copies.py": "import pickle"},
    ),
    Planted(
        "their own file",
        habits.trace_functions_are_put_up_in_one_file,
        {"tracing/trace_functions.py": "import sys\nsys.settrace(None)"},
    ),
    Planted("a hook", habits.torch_is_changed_in_hooks, {"tracing/torch_hooks/a.py": "FakeTensor.device = None"}),
    Planted("another load", habits.nothing_is_unpickled, {"report/read.py": "import json\njson.load(file)"}),
)


@pytest.fixture(scope="module")
def modules() -> dict[str, Module]:
    return read_package(REPOSITORY / "src" / floors.ROOT)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_package_keeps(check: Check, modules: dict[str, Module]) -> None:
    assert check(modules) == []


@pytest.mark.parametrize("planted", [*REFUSED, *ALLOWED], ids=lambda planted: planted.name)
def test_a_check_names_what_is_planted(planted: Planted, tmp_path: Path) -> None:
    root = tmp_path / floors.ROOT
    for name, text in planted.files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    assert tuple(planted.check(read_package(root))) == planted.complaints


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_every_check_has_a_planted_violation(check: Check) -> None:
    assert check in {planted.check for planted in REFUSED}


def test_the_architecture_page_shows_these_floors() -> None:
    page = (REPOSITORY / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| *(\d+) *\| *([^|]+?) *\|", page, flags=re.MULTILINE)
    shown = {int(floor): set(re.findall(r"`(\w+)(?:/|\.py)`", row)) for floor, row in rows}

    *below_the_roof, _ = floors.FLOORS
    assert shown == {floor: set(row) for floor, row in enumerate(below_the_roof)}
