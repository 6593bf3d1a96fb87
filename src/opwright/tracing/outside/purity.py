"""Which functions of Python, torch and NumPy are pure, and which read state."""

from __future__ import annotations

import builtins
import os
import re
import sys
import sysconfig
import types
from collections.abc import Callable
from typing import Any

from opwright.tracing.outside.plain import is_plain

# Python modules with pure functions, or whose state does not affect results.
_PURE = frozenset({
    "abc", "array", "bisect", "builtins", "cmath", "collections", "contextlib", "copy", "copyreg", "dataclasses",
    "decimal", "enum", "fractions", "functools", "heapq", "inspect", "itertools", "keyword", "math", "numbers",
    "operator", "posixpath", "re", "reprlib", "statistics", "string", "struct", "textwrap", "types", "typing",
    "typing_extensions", "warnings", "weakref", "__future__", "traceback", "annotationlib",
})  # fmt: skip
_IMPURE_BUILTINS = frozenset({"open", "input", "eval", "exec", "globals", "locals", "__import__", "breakpoint", "dir"})
# Libraries that change only with their version. Their members are constant, except for settings.
_LIBRARIES = frozenset({"torch", "numpy", "sympy", "mpmath", "networkx", "opwright"})
_STANDARD = tuple({os.path.dirname(os.__file__), sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")})
# Exceptions: functions of NumPy and of otherwise pure modules.
_IMPURE = frozenset({
    "abspath", "currentframe", "expanduser", "expandvars", "fromfile", "get_printoptions", "getcontext", "geterr",
    "geterrcall", "islink", "ismount", "lexists", "load", "loadtxt", "memmap", "realpath", "relpath", "stack",
})  # fmt: skip
_GETTER = re.compile(r"(is|are|has|get)_\w+|current_\w+|\w+_count|\w+_enabled|(is|was)\w*")
_OF_DEVICES = frozenset({"get_autocast_dtype", "is_autocast_enabled"})  # which are asked for a kind of device
# Modules that make classes for others; torch.fx makes one for each graph.
_MAKING_CLASSES = frozenset({"abc", "builtins", "dataclasses", "enum", "torch.fx.graph_module", "types", "typing"})
_members_of = type.__dict__["__dict__"].__get__
_flags_of = type.__dict__["__flags__"].__get__
_MADE_AT_RUN_TIME = 1 << 9  # Py_TPFLAGS_HEAPTYPE
_KINDS_OF_DEVICES = ("cpu", "cuda")
_STATEFUL = frozenset({"initial_seed", "seed", "get_rng_state", "get_rng_state_all", "default_generator"})
_SEEING_TRACES = frozenset({  # functions of torch that may answer otherwise in a trace
    "_has_torch_function", "_has_torch_function_unary", "_has_torch_function_variadic",  # torch.overrides has them
    "is_fake", "detect_fake_mode", "is_concrete_int", "is_concrete_float", "is_concrete_bool",
    "_get_current_dispatch_mode", "_get_current_dispatch_mode_stack", "is_in_torch_dispatch_mode",
    "_get_current_function_mode", "_get_current_function_mode_stack", "_len_torch_function_stack",
    "_len_torch_dispatch_stack",
})  # fmt: skip
_FOLDERS_OF_PACKAGES = ("site-packages", "dist-packages")
LIBRARIES = tuple(  # also those of other environments that this one includes
    f"{folder}{os.sep}"
    for folder in dict.fromkeys(
        (
            *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
            *(folder for folder in sys.path if folder.endswith(_FOLDERS_OF_PACKAGES)),
        )
    )
)
_PACKAGE = __name__.partition(".")[0]
_CONSTANTS = frozenset({"torch", "numpy", "math", "cmath", "string", "torch.nn.functional"})


def module_of(kind: type) -> str | None:
    """The module that defines a class; None for a class of the user's that names another one.

    One that is made by `types.new_class`, `dataclasses.make_dataclass` or a metaclass says that it is of the module
    that made it, and one that `exec` makes in a namespace without a name, of `builtins`. Those of C, such as that of
    functions, are where they say, although not all have a name there.
    """
    module: str | None = kind.__module__
    is_class = issubclass(type(kind), type)
    if module not in _MAKING_CLASSES or not is_class or not _flags_of(kind) & _MADE_AT_RUN_TIME:
        return module
    if "__module__" not in _members_of(kind):
        return module
    return module if getattr(sys.modules[module], kind.__name__, None) is kind else None


def is_installed(module: str | None) -> bool:
    """Whether a module belongs to Python, torch or NumPy, which change only with their version."""
    root = (module or "").partition(".")[0]
    if root in _LIBRARIES or root == builtins.__name__:
        return True
    return root in sys.stdlib_module_names and not _hides_one_of_python(root)


def _hides_one_of_python(name: str) -> bool:
    """Whether a module with the name of one of Python's is the user's, such as a `profile.py` beside a script."""
    file = getattr(sys.modules.get(name), "__file__", None) or ""
    is_frozen = getattr(sys, "frozen", False)  # an application with modules anywhere
    return bool(file) and not is_frozen and not file.startswith(_STANDARD) and not _is_in_packages(file)


def _is_in_packages(file: str) -> bool:
    return any(folder in file for folder in _FOLDERS_OF_PACKAGES)


def is_third_party(module: str | None, own: frozenset[str]) -> bool:
    """Whether a module is third-party; `own` are the packages of what is served."""
    root = (module or "").partition(".")[0]
    if is_installed(root) or root in own:
        return False
    file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return _is_in_packages(file)


def is_library(module: str | None) -> bool:
    """Whether a module belongs to Python or is installed, so that it holds no user state."""
    file = getattr(sys.modules.get(module or ""), "__file__", None) or ""
    return is_installed(module) or file.startswith(LIBRARIES)


def is_own(module: str | None) -> bool:
    """Whether a module is of this package."""
    return (module or "").partition(".")[0] == _PACKAGE


def holds_constants(module: str) -> bool:
    """Whether the plain values in a module are constants such as `math.pi`."""
    return module in _CONSTANTS


def answers_otherwise(value: Any) -> bool:
    """Whether a function of Python, torch or NumPy may return something else at the next call."""
    module, name = _home(value), getattr(value, "__name__", "")
    root = module.partition(".")[0]
    if root == builtins.__name__:
        return name in _IMPURE_BUILTINS
    if root == "torch":
        return name in _STATEFUL or name in _SEEING_TRACES
    if root == "numpy":
        return name in _IMPURE or ".random" in module or module == "numpy.random"
    if root in sys.stdlib_module_names and name in _IMPURE:
        return True
    return root in sys.stdlib_module_names and root.removeprefix("_") not in _PURE and root not in _PURE


def asks_torch_of_devices(value: Any) -> bool:
    """Whether a torch function returns a mode or default for a kind of device."""
    return _home(value).startswith("torch") and getattr(value, "__name__", "") in _OF_DEVICES


def answers_of_devices(value: Callable[[str], Any]) -> tuple[Any, ...]:
    """The answers of such a function."""
    return tuple(value(kind) for kind in _KINDS_OF_DEVICES)


def asks_torch(value: Any) -> bool:
    """Whether a torch function returns one of its modes or defaults, such as `torch.is_grad_enabled`."""
    if asks_torch_of_devices(value):
        return True
    if not callable(value) or isinstance(value, type) or not _home(value).startswith("torch"):
        return False
    if not _GETTER.fullmatch(getattr(value, "__name__", "")):
        return False
    try:
        return is_plain(value())
    except Exception:  # it needs arguments, or a missing device
        return False


def needs_gradients_recorded(value: Any) -> bool:
    """Whether a torch function raises unless gradients are recorded around it, as `torch.autograd.grad` does."""
    return isinstance(value, types.FunctionType) and value.__module__ in ("torch.autograd", "torch.autograd.functional")


def _home(value: Any) -> str:
    """The module of a function; a built-in method's is that of the object it belongs to."""
    owner = getattr(value, "__self__", None)
    if isinstance(owner, types.ModuleType):
        return owner.__name__
    if owner is not None and not isinstance(value, types.MethodType):
        return type(owner).__module__ if not isinstance(owner, type) else owner.__module__
    return getattr(value, "__module__", None) or ""
