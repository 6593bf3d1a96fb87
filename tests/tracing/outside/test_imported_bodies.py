"""Bodies of modules that run in a trace are the library's if that imports them, and the user's otherwise."""

import importlib
import sys

import pytest

from opwright.tracing.outside import ran


@pytest.mark.parametrize(("importer", "is_of_user"), [("torch.distributed.nn.jit.instantiator", False), ("mine", True)])
def test_a_module_belongs_to_who_imports_it(tmp_path, monkeypatch, importer, is_of_user):
    name = f"written_by_{importer.replace('.', '_')}"
    (tmp_path / f"{name}.py").write_text("VALUE = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    names = {"__name__": importer, "importlib": importlib, "wanted": name}
    exec("def load():\n    return importlib.import_module(wanted)", names)
    with ran._functions_run() as run:
        names["load"]()
    del sys.modules[name]
    assert (f"{tmp_path}/{name}.py" in [code.co_filename for code in run.values()]) == is_of_user
