import pytest

from opwright.cli.load import load_operators, load_shipped
from opwright.errors import FileUnloadable, OperatorNotFound

OPERATORS = """
from tests.fake_operator import FakeOperator, scale
first = FakeOperator(scale)
second = FakeOperator(scale)
again = first
"""


def test_all_operators_of_a_file_are_found_once(write_file):
    assert len(load_operators(write_file(OPERATORS))) == 2


@pytest.mark.parametrize("name", ["first", "second"])
def test_a_name_gathers_one(write_file, name):
    (gathered,) = load_operators(f"{write_file(OPERATORS)}:{name}")
    assert gathered.name == "scale"


def test_the_folder_of_the_file_is_on_the_path_of_imports(write_file):
    write_file("from tests.fake_operator import FakeOperator, scale\n", "beside_the_operators.py")
    assert load_operators(write_file("from beside_the_operators import *\nop = FakeOperator(scale)\n"))


def test_a_file_may_be_called_like_a_module_that_is_loaded(write_file):
    import json

    assert load_operators(write_file(OPERATORS, "json.py"))
    assert json.loads("[1]") == [1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import torch\n\nimport no_such_module_at_all\n", r":3: ModuleNotFoundError: No module named 'no_such_mod"),
        ("def f():\n    return 1 / 0\n\nf()\n", ":2: ZeroDivisionError: division by zero"),
        ("x = 1\ny = = 2\n", ":2: SyntaxError: invalid syntax"),
        ("import sys\nsys.exit(3)\n", ":2: SystemExit: 3"),
        (
            "import opwright.samples as s\ns.shapes('B 3S')\n",
            r":2: the shape 'B 3S' has '3S' where .*\nhint: write dimensions",
        ),
    ],
)
def test_what_the_file_raises_is_said_with_its_line(write_file, text, message):
    with pytest.raises(FileUnloadable, match=f"operators.py{message}"):
        load_operators(write_file(text))


@pytest.mark.parametrize(
    ("text", "suffix", "message"),
    [
        ("x = 1\n", "", "there is no operator in .*operators.py\nhint: put @opwright.operator"),
        (OPERATORS, ":third", "there is no operator third in .*\nhint: it has again, first, second"),
        (OPERATORS, "c", "there is no file .*operators.pyc"),
    ],
)
def test_what_is_not_there_is_said(write_file, text, suffix, message):
    with pytest.raises(OperatorNotFound, match=message):
        load_operators(write_file(text) + suffix)


@pytest.fixture
def write_package(write_file, tmp_path, monkeypatch):
    """Write a package of operators into the current folder."""
    monkeypatch.chdir(tmp_path)

    def write(text):
        (tmp_path / "some_operators").mkdir()
        write_file("", "some_operators/__init__.py")
        write_file(text, "some_operators/gates.py")

    return write


@pytest.mark.parametrize(("suffix", "count"), [("", 2), (":first", 1)])
def test_a_module_is_named_as_python_names_it(write_package, suffix, count):
    write_package(OPERATORS)
    assert len(load_operators(f"some_operators.gates{suffix}")) == count


def test_what_a_module_raises_is_said_with_its_line(write_package):
    write_package("import torch\n\nimport no_such_module_at_all\n")
    with pytest.raises(FileUnloadable, match=r"^some_operators/gates.py:3: ModuleNotFoundError: No module named 'no_s"):
        load_operators("some_operators.gates")


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("some_operators.gates:third", "there is no operator third in some_operators.gates"),
        ("some_operators.doors", "there is no module some_operators.doors"),
        ("some_operators", "there is no operator in some_operators"),
        ("no_such_operators.gates", "there is no file and no module no_such_operators.gates\nhint: "),
        ("no/such/operators", "there is no file no/such/operators"),
    ],
)
def test_a_module_that_is_not_there_is_said(write_package, target, message):
    write_package(OPERATORS)
    with pytest.raises(OperatorNotFound, match=message):
        load_operators(target)


def test_a_file_of_another_kind_is_refused(write_file):
    with pytest.raises(OperatorNotFound, match=r"notes\.txt is not a Python file"):
        load_operators(write_file("hello", "notes.txt"))


OPTIMIZERS = """
import opwright, torch
from opwright.optim import AdamW

@opwright.optimizer()
def Descent(param, grad, step, *, lr=0.1):
    return (param - lr * grad,)

@opwright.operator
def doubled(x: torch.Tensor) -> torch.Tensor:
    return x * 2

made = AdamW([torch.zeros(2, requires_grad=True)])
"""


def test_optimizers_are_shipped_where_they_are_defined_or_named(write_file):
    file = write_file(OPTIMIZERS)
    assert [each.__name__ for each in load_shipped(file)] == ["Descent", "doubled"]
    assert [each.__name__ for each in load_shipped(f"{file}:AdamW")] == ["AdamW"]
    assert [type(each).__name__ for each in load_shipped(f"{file}:made")] == ["AdamW"]
    with pytest.raises(OperatorNotFound, match="there is no operator nothing"):
        load_shipped(f"{file}:nothing")
