"""The floors as data, and what each refuses. A check takes the modules and returns one sentence per violation."""

from __future__ import annotations

from collections.abc import Mapping, Set
from graphlib import CycleError, TopologicalSorter

from tests.architecture.source_tree import Import, Module

Modules = Mapping[str, Module]

ROOT = "opwright"

# A module imports only from rows above its own in this table. The last row is the roof.
FLOORS = (
    ("errors", "introspection", "package", "settings", "version"),
    ("ir",),
    ("passes",),
    ("codegen",),
    ("toolchain",),
    ("tracing", "derivation", "lowering", "samples", "extensions"),
    ("binding", "handwritten"),
    ("operators", "report", "drawing"),
    ("checking", "auditing", "benchmark", "explain", "doctor", "projects", "deployment", "distribution", "sharding"),
    ("api", "page"),
    ("nn", "func", "optim", "tensors", "library"),
    ("cli",),
    ("__init__", "__main__"),
)
FLOOR_OF = {component: floor for floor, row in enumerate(FLOORS) for component in row}

TORCH_FREE_FLOORS = range(1, 4)
TORCH = frozenset({"torch", "functorch"})

# Imports between two components of one floor: importer, imported.
SIDEWAYS = frozenset(
    {
        ("derivation", "tracing"),
        ("derivation", "lowering"),  # what is an element-wise operation, and so cheap to compute again
        ("lowering", "tracing"),
        ("handwritten", "binding"),
        ("auditing", "checking"),
        ("func", "nn"),
        ("benchmark", "checking"),
        ("projects", "explain"),
        ("deployment", "checking"),  # how much a result may differ
        ("sharding", "checking"),
        ("api", "page"),  # a notebook shows an operator as its page
    }
)


def every_module_has_a_floor(modules: Modules) -> list[str]:
    """A new folder takes its place in the table first."""
    return [f"{name} has no floor" for name in modules if component(name) not in FLOOR_OF]


def no_upward_import(modules: Modules) -> list[str]:
    """Imports go to lower floors, or stay inside one component."""
    return [
        f"{module.name}:{imported.line} imports {imported.target}"
        for module in modules.values()
        for imported in _internal_imports(module)
        if not _may_import(component(module.name), component(imported.target))
    ]


def no_cycle(modules: Modules) -> list[str]:
    """No module reaches itself, not even through imports inside functions."""
    graph = {module.name: {imported.target for imported in _internal_imports(module)} for module in modules.values()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [" imports ".join(reversed(error.args[1]))]
    return []


def no_circle_of_folders(modules: Modules) -> list[str]:
    """Folders that stand beside each other in a component import in one direction."""
    between: dict[tuple[str, str], str] = {}
    packages = {name.rpartition(".")[0] for name in modules}
    for module in modules.values():
        for imported in _internal_imports(module):
            here, there = _folder(module.name, packages), _folder(imported.target, packages)
            if here != there and component(module.name) == component(imported.target):
                between.setdefault((here, there), f"{module.name}:{imported.line} imports {imported.target}")
    return [
        f"{fact}, and {between[there, here]}"
        for (here, there), fact in between.items()
        if here < there and (there, here) in between and not (there + ".").startswith(here + ".")
    ]


def torch_free_floors(modules: Modules) -> list[str]:
    """The torch-free floors import no torch, themselves or through what they import."""
    return [
        f"{name} imports torch through {reached}:{imported.line}"
        for name in modules
        if FLOOR_OF.get(component(name)) in TORCH_FREE_FLOORS
        for reached in sorted(_reachable(name, modules))
        for imported in modules[reached].imports
        if imported.target.split(".")[0] in TORCH
    ]


def component(name: str) -> str:
    """The folder or file directly below the root that a dotted name belongs to."""
    _, *below = name.split(".")
    return below[0] if below else "__init__"


def _internal_imports(module: Module) -> list[Import]:
    return [imported for imported in module.imports if imported.target.split(".")[0] == ROOT]


def _may_import(importer: str, imported: str) -> bool:
    if importer == imported or (importer, imported) in SIDEWAYS:
        return True
    top = len(FLOORS)
    return FLOOR_OF.get(imported, top) < FLOOR_OF.get(importer, top)


def _reachable(start: str, modules: Modules) -> set[str]:
    """Modules that importing `start` runs: its imports and their packages; not the root, which every import runs."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        name = waiting.pop()
        if name in reached or name == ROOT or name not in modules:
            continue
        reached.add(name)
        package, _, _ = name.rpartition(".")
        waiting += [package, *(imported.target for imported in modules[name].imports)]
    return reached


def _folder(name: str, packages: Set[str]) -> str:
    """The package that a module stands in; of a package itself."""
    return name if name in packages else name.rpartition(".")[0]


FLOOR_CHECKS = (every_module_has_a_floor, no_upward_import, no_cycle, no_circle_of_folders, torch_free_floors)
