"""Habits that hold on every floor. A check takes the modules and returns one sentence per violation."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Mapping

from tests.architecture.source_tree import Module

Modules = Mapping[str, Module]

VAGUE_NAMES = frozenset({"utils", "util", "helpers", "helper", "common", "misc", "core", "manager"})
ENVIRONMENT_READER = "opwright.settings"
ENVIRONMENT = frozenset({"environ", "environb", "getenv", "getenvb"})
PICKLING_MODULES = frozenset({"pickle", "_pickle", "cPickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"})
TORCH_LOADERS = frozenset({"load"})
UNPICKLES_WHAT_IT_PICKLED = frozenset({"opwright.auditing.families.copies"})
# A user's tensors, and an example that was written beside a program, with weights_only=True.
LOADS_WEIGHTS_ONLY = frozenset({"opwright.cli.commands.deploy", "opwright.deployment.executorch.program"})
TRACE_FUNCTIONS = "opwright.tracing.trace_functions"
MOST_LINES = 400
MOST_FILES = 15
TORCH_HOOKS = ("opwright.tracing.torch_hooks", "opwright.binding.environment")
REPLACED_ELSEWHERE = frozenset({"opwright.toolchain.modules"})  # puts the user's own file there
TORCH_CLASSES = frozenset({"FakeTensor", "FakeTensorMode", "ShapeEnv", "Tensor"})


def no_vague_name(modules: Modules) -> list[str]:
    """A module is called after its idea."""
    return [f"{name} has a vague name" for name in modules if VAGUE_NAMES & set(name.split("."))]


def environment_is_read_in_settings(modules: Modules) -> list[str]:
    """Environment variables are read in one file."""
    return [
        f"{module.name}:{line} reads the environment"
        for module in modules.values()
        if module.name != ENVIRONMENT_READER
        for line in sorted(_lines_that_name(module, "os", ENVIRONMENT))
    ]


def nothing_is_unpickled(modules: Modules) -> list[str]:
    """A cache or a file never runs code when it is read."""
    return [
        f"{module.name}:{line} can unpickle"
        for module in modules.values()
        if module.name not in UNPICKLES_WHAT_IT_PICKLED | LOADS_WEIGHTS_ONLY
        for line in sorted(_pickling_imports(module) | _lines_that_name(module, "torch", TORCH_LOADERS))
    ]


def trace_functions_are_put_up_in_one_file(modules: Modules) -> list[str]:
    """A trace function that hides another one, of which it does not tell, would make a trace blind."""
    return [
        f"{module.name}:{line} puts up a trace function"
        for module in modules.values()
        if module.name != TRACE_FUNCTIONS
        for line in sorted(_lines_that_name(module, "sys", frozenset({"settrace"})))
    ]


def torch_is_changed_in_hooks(modules: Modules) -> list[str]:
    """What is put into `sys.modules`, or in the place of a member of torch's classes, is put there in one folder."""
    return [
        f"{module.name}:{line} changes what belongs to torch"
        for module in modules.values()
        if not module.name.startswith(TORCH_HOOKS) and module.name not in REPLACED_ELSEWHERE
        for line in sorted(_lines_that_change_torch(module))
    ]


def no_module_is_long(modules: Modules) -> list[str]:
    """A long module holds more than one idea."""
    return [
        f"{module.name} has {module.line_count} lines, {MOST_LINES} are the most"
        for module in modules.values()
        if module.line_count > MOST_LINES
    ]


def no_folder_is_full(modules: Modules) -> list[str]:
    """A folder with many modules holds more than one idea."""
    folders = Counter(name.rpartition(".")[0] for name, module in modules.items() if module.path.name != "__init__.py")
    return [
        f"{folder} has {count} modules, {MOST_FILES} are the most"
        for folder, count in folders.items()
        if count > MOST_FILES
    ]


def no_member_hides_a_module(modules: Modules) -> list[str]:
    """What a package takes from its modules is not called like one of them, which could not be imported any more."""
    return [
        f"{name}:{node.lineno} hides {name}.{alias.asname or alias.name}"
        for name, module in modules.items()
        if module.path.name == "__init__.py"
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.module != name
        for alias in node.names
        if f"{name}.{alias.asname or alias.name}" in modules
    ]


def _lines_that_change_torch(module: Module) -> set[int]:
    """Lines that assign to `sys.modules[…]`, `torch.….name` or an attribute of one of torch's classes."""
    targets = [
        target for node in ast.walk(module.tree) if isinstance(node, ast.Assign | ast.Delete) for target in node.targets
    ]
    return {target.lineno for target in targets if _belongs_to_torch(target)}


def _belongs_to_torch(target: ast.expr) -> bool:
    match target:
        case ast.Subscript(value=ast.Attribute(value=ast.Name(id="sys"), attr="modules")):
            return True
        case ast.Attribute(value=ast.Name(id=name)):
            return name == "torch" or name in TORCH_CLASSES
        case ast.Attribute(value=ast.Attribute() as owner):
            return _belongs_to_torch(owner)
    return False


def _pickling_imports(module: Module) -> set[int]:
    return {imported.line for imported in module.imports if imported.target.split(".")[0] in PICKLING_MODULES}


def _lines_that_name(module: Module, owner: str, attributes: frozenset[str]) -> set[int]:
    """Lines that say `owner.attribute`, or import an attribute from the owner."""
    lines = set()
    for node in ast.walk(module.tree):
        match node:
            case ast.Attribute(value=ast.Name(id=name), attr=attribute) if name == owner and attribute in attributes:
                lines.add(node.lineno)
            case ast.ImportFrom(module=name, names=aliases) if name == owner:
                lines |= {node.lineno for alias in aliases if alias.name in attributes}
    return lines


HABIT_CHECKS = (
    no_vague_name,
    environment_is_read_in_settings,
    nothing_is_unpickled,
    trace_functions_are_put_up_in_one_file,
    torch_is_changed_in_hooks,
    no_module_is_long,
    no_folder_is_full,
    no_member_hides_a_module,
)
