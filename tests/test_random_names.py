"""Operators whose parameters and variables are called like what emitted code has words of, against eager."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
import torch
from torch.nn import functional

from opwright.api.operator import Operator
from opwright.codegen.allocator import Language, Names
from opwright.codegen.cpp import program as cpp_program
from opwright.codegen.placeholders import PLACEHOLDER, plain
from opwright.operators.function_module import derive_function
from opwright.settings import Settings
from opwright.tracing.interface.specs import ArgumentSpec, ConstantSpec, TensorSpec
from tests.cuda_on_host import cuda_kernels, settings_on_host
from tests.quiet_settings import quiet_settings
from tests.random_names import SHAPES, NamedShape, named_shape, renamed_program, words
from tests.suite.nights import mostly_at_night
from tests.test_random_programs import assert_agrees

pytestmark = [  # what torch says of the functions themselves
    pytest.mark.filterwarnings("ignore:Tensor.mT is deprecated on 0-D tensors"),
    pytest.mark.filterwarnings("ignore:var.*degrees of freedom is <= 0"),
    pytest.mark.filterwarnings("ignore:invalid escape sequence"),
]
SIZES = {"B": 5, "N": 37, "M": 7, "2": 2, "3": 3, "4": 4}
NUMBERS = (0.75, -1.5, 0.3125)


def function_of(text: str) -> Callable[..., Any]:
    namespace: dict[str, Any] = {"torch": torch, "functional": functional}
    exec(compile(text, "<names>", "exec"), namespace)
    function: Callable[..., Any] = namespace["program"]
    return function


def results(function: Callable[..., Any], tensors: Sequence[torch.Tensor], numbers: Sequence[float]) -> list[Any]:
    """Outputs and gradients."""
    given = [tensor.detach().requires_grad_() for tensor in tensors]
    made = function(*given, *numbers)
    outputs = made if isinstance(made, tuple) else (made,)
    flowing = [output.sin().sum() for output in outputs if output.requires_grad]
    gradients = torch.autograd.grad(flowing, given, allow_unused=True)
    return [*(output.detach() for output in outputs), *gradients]


def tensors_of(shape: NamedShape) -> list[torch.Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [each.make(SIZES, generator) for each in shape.inputs]


def check_shape(kind: str, seed: int, settings: Settings) -> None:
    """As kernels, with numbers that change from call to call."""
    shape = named_shape(kind, seed)
    reference = function_of(shape.text)
    operator = Operator(reference, name=f"names_{kind}_{seed}", settings=settings)
    tensors = tensors_of(shape)
    try:
        for number in NUMBERS[: 3 if shape.numbers else 1]:
            numbers = [number] * shape.numbers
            torch.testing.assert_close(results(operator, tensors, numbers), results(reference, tensors, numbers))
            assert operator.last_rung == "cpp", "the reference serves it"
    except BaseException as error:
        error.add_note(f"{kind}, seed {seed}\n{shape.text}")
        raise


def check_program(seed: int, settings: Settings) -> None:
    """A random function with such names: as kernels, or as what serves it under its plain names."""
    program = renamed_program(seed)
    operator = Operator(program.function(), name=f"names_{seed}", settings=settings)
    try:
        assert_agrees(operator, program, program.sizes, seed)
        others = any(given.layout != "row-major" for given in program.inputs)
        assert operator.last_rung == "cpp" or (program.is_for_row_major and others)
    except BaseException as error:
        error.add_note(f"seed {seed}, sizes {program.sizes}, inputs {program.inputs}\n{program.text}")
        raise


def check_function(kind: str, seed: int) -> None:
    """As an `autograd.Function` in torch operations, of which gradients are asked for too."""
    shape = named_shape(kind, seed)
    reference = function_of(shape.text)
    tensors, numbers = tensors_of(shape), [NUMBERS[0]] * shape.numbers
    names = list(reference.__annotations__)
    specs: list[ArgumentSpec] = [
        TensorSpec(each.name, tensor.dtype, tuple(tensor.shape), True)
        for each, tensor in zip(shape.inputs, tensors, strict=True)
    ]
    specs += [ConstantSpec(name, number) for name, number in zip(names[len(tensors) :], numbers, strict=True)]
    module = derive_function(reference, specs, "program", "names.py:1")
    namespace: dict[str, Any] = {}
    try:
        exec(compile(module.text, "<emitted>", "exec"), namespace)
        torch.testing.assert_close(
            results(namespace["program"], tensors, numbers), results(reference, tensors, numbers)
        )
    except BaseException as error:
        error.add_note(f"{kind}, seed {seed}\n{shape.text}\n{module.text}")
        raise


@pytest.fixture(scope="module")
def host_settings() -> Settings:
    return settings_on_host()


@pytest.mark.parametrize("kind", mostly_at_night(SHAPES, by_day=[*SHAPES][::2]))
def test_kernels(kind: str) -> None:
    check_shape(kind, 0, quiet_settings(optimized=False))


@pytest.mark.falls_back  # where it is for row-major inputs alone, which is asked for above
@pytest.mark.parametrize("seed", [100, 101])
def test_random_programs(seed: int) -> None:
    check_program(seed, quiet_settings(optimized=False))


@pytest.mark.nightly
@pytest.mark.parametrize("kind", ["rows"])
def test_cuda_kernels(kind: str, host_settings: Settings) -> None:
    with cuda_kernels():
        check_shape(kind, 1, host_settings)


@pytest.mark.parametrize("kind", [kind for kind in SHAPES if kind != "looked_up"])
@pytest.mark.parametrize("seed", mostly_at_night(range(3), by_day=1))
def test_the_rung_in_torch_operations(kind: str, seed: int) -> None:
    check_function(kind, seed)


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(50))
def test_many_kernels(block: int) -> None:
    settings = quiet_settings(optimized=False)
    for seed in range(block * 20, block * 20 + 20):
        check_shape(Random(seed).choice(list(SHAPES)), seed, settings)


@pytest.mark.nightly
@pytest.mark.falls_back
@pytest.mark.parametrize("block", range(15))
def test_many_random_programs(block: int) -> None:
    for seed in range(block * 20 + 20_000, block * 20 + 20_020):
        check_program(seed, quiet_settings(optimized=False))


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(10))
def test_many_cuda_kernels(block: int) -> None:
    for seed in range(block * 20 + 5000, block * 20 + 5020):
        kind = Random(seed).choice([kind for kind in SHAPES if kind != "looked_up"])
        with cuda_kernels():
            check_shape(kind, seed, settings_on_host())


@pytest.mark.nightly
@pytest.mark.parametrize("block", range(10))
def test_many_modules_in_torch_operations(block: int) -> None:
    for seed in range(block * 50 + 7000, block * 50 + 7050):
        check_function(Random(seed).choice([kind for kind in SHAPES if kind != "looked_up"]), seed)


def test_words_are_found() -> None:
    found = words()
    assert all(len(each) > 20 for kind, each in found.by_kind.items() if kind != "letters")
    assert {"end", "row", "extents", "operands", "count"} <= set(found.by_kind["emitted"])
    assert {"_total", "_largest", "_kept_row", "_next", "_part", "_sizes", "_stack", "_offset", "_reductions"} <= set(
        found.behind
    )


def test_names_given_without_looking_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the comparison is for: names that are what they would like to be, whatever else is called so."""

    def careless(drafts: Sequence[str], _: Language) -> Names:
        return Names({each: plain(each) for draft in drafts for each in PLACEHOLDER.findall(draft)})

    monkeypatch.setattr(cpp_program, "allocate", careless)
    x, end = torch.randn(4, 200), torch.randn(4, 1)
    text = "def program(x: torch.Tensor, end: torch.Tensor):\n    return functional.softmax(x * end, -1)\n"
    reference = function_of(text)
    operator = Operator(reference, name="careless", settings=quiet_settings(optimized=False))
    made = results(operator, [x, end], [])
    assert operator.last_rung == "cpp"
    with pytest.raises(AssertionError, match="not close"):
        torch.testing.assert_close(made, results(reference, [x, end], []))
