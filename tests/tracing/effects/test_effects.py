"""Functions that change what is made outside of them run as themselves; local work keeps its kernels."""

from __future__ import annotations

import copy
import decimal
import gc
import random
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor

from opwright.errors import SideEffect
from opwright.tracing.interface.specs import ArgumentSpec, TensorSpec
from opwright.tracing.torch_hooks.isolation import in_fresh_thread
from opwright.tracing.trace import trace
from tests.tracing.effects import outside
from tests.tracing.effects.outside import BOX, LATEST, LOG, LOGGER, NESTED, NUMBERS, ORDERED, SEEN, SLOTS, SPACE, STORE

pytestmark = pytest.mark.falls_back

X: tuple[ArgumentSpec, ...] = (TensorSpec("x", torch.float32, (3,)),)
COUNT = 0


def count(x: Tensor) -> Tensor:
    global COUNT
    COUNT += 1
    return x * 2


def define(x: Tensor) -> Tensor:
    global DEFINED
    DEFINED = x * 2  # type: ignore[name-defined]
    return DEFINED  # type: ignore[name-defined, no-any-return]


def counter() -> Callable[[Tensor], Tensor]:
    calls = 0

    def counted(x: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return x * 2

    return counted


def store(x: Tensor) -> Tensor:
    STORE["y"] = x * 2
    return x


def delete(x: Tensor) -> Tensor:
    del ORDERED["a"]
    return x * 2


def in_a_function_of_the_users(x: Tensor) -> Tensor:
    BOX.keep(x * 2)
    return x * 2


def alias(x: Tensor) -> Tensor:
    log = LOG
    log += [x]
    return x * 2


def deep(x: Tensor) -> Tensor:
    NESTED["deep"][0]["inside"].append(x.shape[0])
    return x * 2


def in_a_loop(x: Tensor) -> Tensor:
    for number in range(3):
        x = x + number
        if number == 2:
            LOG.append(number)
    return x


def caught(x: Tensor) -> Tensor:
    try:
        LOG.append(x)
        return x * 2
    except Exception:
        return x * 3


def attribute(x: Tensor) -> Tensor:
    BOX.last = x
    return x * 2


def of_an_argument(x: Tensor) -> Tensor:
    x.note = "seen"  # type: ignore[attr-defined]
    return x * 2


def by_setattr(x: Tensor) -> Tensor:
    setattr(BOX, "fresh", 1)  # noqa: B010
    return x * 2


def class_attribute(x: Tensor) -> Tensor:
    outside.Box.made += 1
    return x * 2


def module_attribute(x: Tensor) -> Tensor:
    outside.COUNT += 1
    return x * 2


def slot(x: Tensor) -> Tensor:
    SLOTS.value = 3
    return x * 2


def namespace(x: Tensor) -> Tensor:
    SPACE.value = 2.5
    return x * 2


def of_a_tensor(x: Tensor) -> Tensor:
    outside.WEIGHT.note = 1  # type: ignore[attr-defined]
    return x * 2


def cached_property(x: Tensor) -> Tensor:
    return x * BOX.scale


def cached_tensor(x: Tensor) -> Tensor:
    return x * outside.remembered(3)


def queue(x: Tensor) -> Tensor:
    LATEST.append(1)
    return x * 2


def members(x: Tensor) -> Tensor:
    SEEN.add(x.dim())
    return x * 2


def context_variable(x: Tensor) -> Tensor:
    outside.VARIABLE.set(3.0)
    return x * 2


def gradient_mode(x: Tensor) -> Tensor:
    torch.set_grad_enabled(False)
    return x * 2


def prints(x: Tensor) -> Tensor:
    print("seen")
    return x * 2


def logs(x: Tensor) -> Tensor:
    LOGGER.error("seen")
    return x * 2


def warns(x: Tensor) -> Tensor:
    warnings.warn("seen", stacklevel=1)
    return x * 2


def draws(x: Tensor) -> Tensor:
    return x * random.random()


def iterates(x: Tensor) -> Tensor:
    return x * next(NUMBERS)


def asks_for_the_time(x: Tensor) -> Tensor:
    return x * (time.time() % 2)


CHANGES = {
    function.__name__: (function, fact)
    for function, fact in (
        (count, "changes the global COUNT"),
        (define, "changes the global DEFINED"),
        (counter(), "changes calls"),
        (store, "changes STORE"),
        (delete, "changes ORDERED"),
        (in_a_function_of_the_users, "changes BOX"),
        (alias, "changes LOG"),
        (deep, "changes NESTED"),
        (in_a_loop, "changes LOG"),
        (caught, "changes LOG"),
        (attribute, "changes BOX"),
        (of_an_argument, "changes an argument"),
        (by_setattr, "changes BOX"),
        (class_attribute, "changes outside.Box"),
        (module_attribute, "changes outside"),
        (slot, "changes SLOTS"),
        (namespace, "changes SPACE"),
        (of_a_tensor, "changes outside.WEIGHT"),
        (cached_property, "changes BOX"),
        (cached_tensor, "changes outside.remembered"),
        (queue, "changes LATEST"),
        (members, "changes SEEN"),
        (context_variable, "changes the context variable VARIABLE"),
        (gradient_mode, "changes whether gradients are recorded"),
        (prints, "writes something out"),
        (logs, "logs"),
        (warns, "warns"),
        (draws, "draws random numbers that are not torch's"),
        (iterates, "takes from an iterator that is made outside of it"),
        (asks_for_the_time, "asks for the time"),
    )
}


def state() -> object:
    kept = (STORE, list(ORDERED), LOG, SEEN, LATEST, NESTED, COUNT, outside.COUNT, vars(BOX), vars(SPACE))
    held = (hasattr(SLOTS, "value"), dict(vars(outside.WEIGHT)), outside.Box.made, "DEFINED" in globals())
    return copy.deepcopy((kept, held, random.getstate(), outside.remembered.cache_info().currsize))


@pytest.mark.parametrize(("function", "fact"), CHANGES.values(), ids=CHANGES)
def test_a_change_is_refused_at_its_line_and_undone(
    function: Callable[..., Tensor], fact: str, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    before = state()
    with pytest.raises(SideEffect, match=fact) as refused:
        trace(function, X)
    assert refused.value.hint
    assert refused.value.place is not None
    assert state() == before
    assert "seen" not in capfd.readouterr().out + caplog.text
    assert not any(type(found) is FakeTensor for found in gc.get_referents(STORE))


@pytest.fixture(scope="module", autouse=True)
def _collected() -> Iterator[None]:
    """What refused traces leave behind can be collected."""
    yield
    assert gc.collect() >= 0


COLLECTIONS: list[float] = []


def tells_the_time(phase: str, _: dict[str, int]) -> None:
    """As debuggers, profilers and test tools do."""
    COLLECTIONS.append(time.perf_counter() if phase == "start" else now())


def now() -> float:
    return time.perf_counter()


def test_what_the_garbage_collector_calls_is_not_of_the_function() -> None:
    before = gc.get_threshold()
    gc.callbacks.append(tells_the_time)
    gc.set_threshold(1)
    try:
        trace(lambda x: [x * 2, [x, [x]]][0] * 3, X)
    finally:
        gc.set_threshold(*before)
        gc.callbacks.remove(tells_the_time)
    assert COLLECTIONS


@pytest.mark.parametrize("names", [100, 200, 300])
def test_what_code_with_many_names_does_is_seen(names: int, capfd: pytest.CaptureFixture[str]) -> None:
    """From 128 names on their numbers do not fit into one instruction."""
    lines = [f"    a{number} = g{number}\n" for number in range(names)]
    namespace: dict[str, Any] = {f"g{number}": 1.0 for number in range(names)}
    exec(compile(f"def many(x):\n{''.join(lines)}    print('seen')\n    return x * g0", "many.py", "exec"), namespace)
    with pytest.raises(SideEffect, match="writes something out"):
        trace(namespace["many"], X)
    assert "seen" not in capfd.readouterr().out


def test_a_module_is_not_loaded_by_a_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it makes at its import would be a tensor without data for the whole process."""
    (tmp_path / "loaded_late.py").write_text("import torch\nW = torch.arange(3.0)\n")
    monkeypatch.syspath_prepend(tmp_path)

    def imports(x: Tensor) -> Tensor:
        import loaded_late

        return x * loaded_late.W

    with pytest.raises(SideEffect, match="imports a module that is not loaded yet"):
        trace(imports, X)
    assert "loaded_late" not in sys.modules
    assert imports(torch.ones(3)).tolist() == [0.0, 1.0, 2.0]
    del sys.modules["loaded_late"]


def test_what_torch_imports_late_is_imported_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`torch.func.jvp` imports the compiler; the import ended halfway where torch's generated modules import others."""
    (tmp_path / "of_torch.py").write_text("import of_torch_inner\ndef half(x):\n    return x / 2\n")
    (tmp_path / "of_torch_inner.py").write_text("import logging\nlogging.getLogger('of torch').warning('seen')\n")
    monkeypatch.syspath_prepend(tmp_path)
    late = "def half(x):\n    import of_torch\n    return of_torch.half(x)\n"
    namespace: dict[str, Any] = {}
    exec(compile(late, str(Path(torch.__file__).parent / "late.py"), "exec"), namespace)
    half: Callable[[Tensor], Tensor] = namespace["half"]

    def halves_and_prints(x: Tensor) -> Tensor:
        y = half(x)
        print("seen")
        return y

    with pytest.raises(SideEffect, match="writes something out"):  # it is watched again after the import
        trace(halves_and_prints, X)
    assert {"of_torch", "of_torch_inner"} <= set(sys.modules)
    assert trace(lambda x: half(x), X)
    del sys.modules["of_torch"], sys.modules["of_torch_inner"]


def asks_with_a_default(x: Tensor) -> Tensor:
    return x * getattr(x, "scale", 1.0)


def asks_whether(x: Tensor) -> Tensor:
    return x * 2 if hasattr(x, "scale") else x


def asks_by_a_computed_name(x: Tensor, name: str = "scale") -> Tensor:
    return x * getattr(x, name, 1.0)


def tries(x: Tensor) -> Tensor:
    try:
        return x * x.scale  # type: ignore[attr-defined]
    except AttributeError:
        return x


@pytest.mark.parametrize("function", [asks_with_a_default, asks_whether, asks_by_a_computed_name, tries])
def test_attributes_of_a_user_s_on_a_tensor_are_not_looked_for(function: Callable[..., Tensor]) -> None:
    with pytest.raises(SideEffect, match="whether a tensor has an attribute"):
        trace(function, X)


def seeds_and_draws_nothing(x: Tensor) -> Tensor:
    torch.manual_seed(5)
    return x * 2


def seeds_the_generator_itself(x: Tensor) -> Tensor:
    torch.default_generator.manual_seed(5)
    return x * 2


def asks_for_the_seed(x: Tensor) -> Tensor:
    return x * torch.initial_seed()


SEEDING = {
    seeds_and_draws_nothing: "seeds the generator of random numbers",
    seeds_the_generator_itself: "uses a generator of random numbers that is made outside of it",
    asks_for_the_seed: "asks for the seed",
}


@pytest.mark.parametrize("function", SEEDING)
def test_seeds_are_not_set_by_traces(function: Callable[..., Tensor]) -> None:
    import torch._dynamo  # which puts a wrapper around `torch.manual_seed`

    before = torch.get_rng_state()
    with pytest.raises(SideEffect, match=SEEDING[function]):
        trace(function, X)
    assert torch.equal(torch.get_rng_state(), before)


def asks_for_the_type(x: Tensor) -> Tensor:
    return x * 2 if type(x) is Tensor else x


def asks_for_the_class(x: Tensor) -> Tensor:
    return x * 2 if x.__class__ is Tensor else x


def asks_for_a_parameter(x: Tensor) -> Tensor:
    return x * 2 if isinstance(x, torch.nn.Parameter) else x


@pytest.mark.parametrize("function", [asks_for_the_type, asks_for_the_class, asks_for_a_parameter])
def test_a_trace_does_not_tell_of_which_class_a_tensor_is(function: Callable[..., Tensor]) -> None:
    with pytest.raises(SideEffect, match="of which class a tensor is"):
        trace(function, X)


def asks_what_all_have(x: Tensor) -> Tensor:
    named = hasattr(x.dtype, "type") or hasattr(x.device, "type")  # as jaxtyping asks
    return x * getattr(x, "shape", 1.0)[0] if hasattr(x, "sin") and named else x


def test_the_place_is_the_line() -> None:
    with pytest.raises(SideEffect) as refused:
        trace(store, X)
    place = refused.value.place
    assert place is not None
    assert (place.file, place.line) == (__file__, store.__code__.co_firstlineno + 1)


def local_objects(x: Tensor) -> Tensor:
    out, table, box = [], {}, outside.Box()
    for number in range(3):
        out.append(x * number)
        table[number] = x + number
        box.keep(x)
        box.last = x
        setattr(box, "other", x)  # noqa: B010
    y = out[1] + table[2]
    y[0] = 1
    y += sum(box.items)
    return y


def local_cells(x: Tensor) -> Tensor:
    total = x

    def add(y: Tensor) -> None:
        nonlocal total
        total = total + y

    add(x * 2)
    return total


def local_iterators(x: Tensor) -> Tensor:
    numbers = iter([1, 2, 3])
    return x * next(numbers) * sum(number for number in numbers)


def is_silent(x: Tensor) -> Tensor:
    if STORE.get("verbose"):
        print("seen")
    LOGGER.debug("seen")
    return x * 2


def cached_number(x: Tensor) -> Tensor:
    return x * outside.next_of(3)


def without_gradients(x: Tensor) -> Tensor:
    with torch.no_grad():
        y = x * 2
    return y + x


def same_again(x: Tensor) -> Tensor:
    SPACE.value = 1
    return x * 2


LOCAL = (
    asks_what_all_have,
    local_objects,
    local_cells,
    local_iterators,
    is_silent,
    cached_number,
    without_gradients,
    same_again,
)


@pytest.mark.parametrize("function", LOCAL, ids=lambda function: function.__name__)
def test_local_work_is_traced(function: Callable[..., Tensor]) -> None:
    graph, result = trace(function, X)
    assert result.is_bare
    assert len(graph.outputs) == 1


def test_a_function_finds_the_modes_and_the_context_of_its_caller() -> None:
    found: list[object] = []

    def ask() -> tuple[bool, bool, float]:
        return torch.is_grad_enabled(), torch.is_inference_mode_enabled(), outside.VARIABLE.get()

    def reference(x: Tensor) -> Tensor:
        grad, inference, variable = ask()
        return x * (2 if grad else 3) * (5 if inference else 7) * variable

    token = outside.VARIABLE.set(11.0)
    try:
        for mode in (torch.no_grad, torch.inference_mode, torch.enable_grad):
            with mode():
                graph, _ = trace(reference, X)
                found.append(sorted(a for node in graph.fx.nodes for a in node.args if isinstance(a, (int, float))))
        assert found == [[3, 7, 11.0], [3, 5, 11.0], [2, 7, 11.0]]
        assert in_fresh_thread(ask) == (True, False, 11.0)
    finally:
        outside.VARIABLE.reset(token)


def flush(x: Tensor) -> Tensor:
    torch.set_flush_denormal(False)
    return x * 2


def cast(x: Tensor) -> Tensor:
    torch.set_autocast_cache_enabled(True)
    return x * 2


def make_precise(x: Tensor) -> Tensor:
    torch.set_float32_matmul_precision("highest")
    return x * 2


def round_decimals(x: Tensor) -> Tensor:
    decimal.setcontext(decimal.getcontext())
    return x * 2


@pytest.mark.parametrize("function", [flush, cast, make_precise, round_decimals])
def test_settings_are_not_changed(function: Callable[[Tensor], Tensor]) -> None:
    with pytest.raises(SideEffect, match=r"changes .* setting"):
        trace(function, X)


def test_no_tensor_of_a_trace_is_swapped_out_of_it() -> None:
    outside = torch.ones(3)

    def swap(x: Tensor) -> Tensor:
        torch.utils.swap_tensors(x, outside)
        return x * 2

    with pytest.raises(SideEffect, match="swaps tensors"):
        trace(swap, X)
    assert type(outside) is Tensor


def test_a_setting_for_a_block_is_no_reason() -> None:
    def halved(x: Tensor) -> Tensor:
        with torch.autocast("cpu", enabled=False), torch.no_grad():
            return x / 2

    assert trace(halved, X) is not None
