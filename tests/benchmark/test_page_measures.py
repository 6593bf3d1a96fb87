"""What pages show beside times: memory that is kept, second derivatives, the work of a pass."""

import pytest
import torch

import opwright
from opwright.benchmark.saved import kept_by
from opwright.benchmark.second_order import second_order
from opwright.benchmark.stopwatch import Plan
from opwright.benchmark.work import Limits, Work, measured_limits, work_of
from opwright.ir.expressions.dtype import DType
from opwright.ir.program import Buffer, Call, Program, TensorOperand, size_symbol
from opwright.page.measured import works
from opwright.samples import Sample

SAMPLE = Sample((torch.ones(4, 8), torch.ones(8)), name="4 × 8")
QUICK = Plan(slice_ns=1000, fewest_rounds=2, most_rounds=2)


def gate(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    return torch.sigmoid(x * weight) * x


@pytest.fixture(scope="module")
def operator():
    return opwright.operator(samples=lambda device, dtype: [SAMPLE], name="page_measures::gate")(gate)


def test_kept_memory_is_counted_once_and_told_apart() -> None:
    def keeps_all(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        product = x * weight  # x and weight
        return (product * product).exp()  # the product, twice, and the result

    (kept,) = kept_by(SAMPLE, {"composed": keeps_all})
    assert (kept.arguments_bytes, kept.results_bytes, kept.extra_bytes) == (128 + 32, 128, 128)


def test_an_operator_keeps_what_it_says(operator) -> None:
    eager, own = kept_by(SAMPLE, {"composed": gate, "cpp": operator.on("cpp")})
    assert (own.arguments_bytes, own.results_bytes, own.extra_bytes) == (160, 0, 0)
    assert eager.extra_bytes == 128


def test_what_cannot_run_says_why() -> None:
    def breaks(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        raise RuntimeError("no such thing")

    (kept,), (second,) = kept_by(SAMPLE, {"a": breaks}), second_order(SAMPLE, {"a": breaks}, plan=QUICK)
    assert "no such thing" in kept.reason
    assert "no such thing" in second.reason
    assert second.timing is None


def test_second_derivatives_are_timed_where_there_are_any() -> None:
    curved, flat = second_order(SAMPLE, {"composed": gate, "flat": lambda x, weight: x + weight}, plan=QUICK)
    assert curved.timing is not None
    assert curved.timing.median_us > 0
    assert flat.timing is None
    assert "do not depend" in flat.reason


def test_the_work_of_a_pass_is_counted(operator) -> None:
    forward, training = works(operator, [SAMPLE])
    assert forward == {
        "sample": "4 × 8",
        "passage": "forward",
        "size_bytes": 4 * (32 + 8 + 32),  # x and weight are read, the result is written
        "operations": 3 * 32,
    }
    assert training["size_bytes"] > 2 * forward["size_bytes"]


def test_what_a_pass_reads_is_found_by_its_place_whatever_it_is_called() -> None:
    @opwright.operator(samples=opwright.shapes("B S", "B", B=4, S=8), name="page_measures::named")
    def named(x: torch.Tensor, weight: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        per_token, output_0 = x.sigmoid().sum(-1), x.exp().sum(-1)
        return (per_token * weight / output_0).sum(), output_0

    _, training = works(named, [*named.samples("cpu", torch.float32)])
    assert training["passage"] == "training"
    saved = 3 * 4 * 4  # the sums and the cotangent of one, of four numbers each
    assert training["size_bytes"] >= 4 * (32 + 4) * 2 + saved


def test_products_are_counted_and_other_calls_are_not_guessed() -> None:
    x, y = (Buffer(name, DType.FLOAT32, (size_symbol(name, 0), size_symbol(name, 1))) for name in "xy")
    made = Buffer("made", DType.FLOAT32, (x.shape[0], y.shape[1]))

    def program(function: str) -> Program:
        call = Call((made,), function, "default", (TensorOperand("x"), TensorOperand("y")))
        return Program("product", (x, y), (), (call,), ("made",), ())

    sizes = {"x_size_0": 3, "x_size_1": 4, "y_size_0": 4, "y_size_1": 5}
    assert work_of(program("aten::mm"), sizes) == Work(4 * (12 + 20 + 15), 2 * 3 * 4 * 5)
    assert work_of(program("aten::convolution"), sizes) is None


@pytest.mark.nightly
def test_the_machine_has_limits() -> None:
    limits = measured_limits()
    assert isinstance(limits, Limits)
    assert 1e8 < limits.bytes_per_second < 1e13
    assert 1e8 < limits.operations_per_second < 1e15
