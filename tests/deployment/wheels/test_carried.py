"""What a wheel carries needs torch and Python alone."""

import ast
import sys

import pytest

from opwright.deployment.wheels.carried import carried_modules

MODULES = carried_modules(with_optimizers=True)


@pytest.mark.parametrize("name", sorted(MODULES))
def test_a_carried_module_imports_torch_python_and_its_neighbours(name):
    for statement in ast.walk(ast.parse(MODULES[name], feature_version=(3, 10))):
        if isinstance(statement, ast.ImportFrom) and statement.level == 1:
            assert f"{statement.module}.py" in MODULES
        elif isinstance(statement, (ast.Import, ast.ImportFrom)):
            names = [statement.module] if isinstance(statement, ast.ImportFrom) else [a.name for a in statement.names]
            roots = {name.partition(".")[0] for name in names}
            assert roots <= {"torch", "annotationlib", *sys.stdlib_module_names}  # Python's own, from 3.14 on
