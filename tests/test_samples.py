import inspect

import pytest
import torch

import opwright
from opwright.cli.commands.build import build_command
from opwright.cli.commands.check import check_command
from opwright.cli.commands.eject import eject_command
from opwright.errors import SamplesMissing, ShapesUnreadable
from opwright.samples import DEFAULT_DTYPES, Sample, shapes


@pytest.mark.parametrize(
    "function", [opwright.check, opwright.build_wheel, opwright.Operator.check, opwright.Operator.eject]
)
def test_there_is_one_set_of_default_dtypes(function):
    assert inspect.signature(function).parameters["dtypes"].default == DEFAULT_DTYPES


@pytest.mark.parametrize("command", [check_command, build_command, eject_command])
def test_commands_have_the_same(command):
    default = inspect.signature(command).parameters["dtype"].default
    assert [getattr(torch, name) for name in default] == list(DEFAULT_DTYPES)


@pytest.mark.parametrize(
    ("spec", "sizes", "shape"),
    [
        ("", {}, ()),
        ("B", {"B": 2}, (2,)),
        ("B S", {"B": 2, "S": 3}, (2, 3)),
        ("B 3*S", {"B": 2, "S": 3}, (2, 9)),
        ("B+S", {"B": 2, "S": 3}, (5,)),
        ("4 B", {"B": 2}, (4, 2)),
        ("2*B+3*S+1 B*S", {"B": 2, "S": 3}, (14, 6)),
        ("batch", {"batch": 2}, (2,)),
    ],
)
def test_a_shape_is_evaluated_where_letters_have_sizes(spec, sizes, shape):
    (sample,) = shapes(spec, **sizes)("cpu", torch.float32)
    assert sample.args[0].shape == shape


def test_sizes_are_zipped_into_named_samples():
    samples = shapes("B 3*S", "B S", B=(16, 64), S=128)("cpu", torch.float64)
    assert [sample.name for sample in samples] == ["B=16 S=128", "B=64 S=128"]
    assert [tuple(tensor.shape) for tensor in samples[1].args] == [(64, 384), (64, 128)]
    assert {tensor.dtype for tensor in samples[1].args} == {torch.float64}


def test_without_sizes_letters_get_distinct_small_defaults():
    (sample,) = shapes("B S", "S")("cpu", torch.float32)
    assert sample.name == "B=16 S=32"


def test_samples_are_reproducible_and_alike_in_every_dtype():
    factory = shapes("B", "B", B=8)
    first, second = factory("cpu", torch.float64)[0], factory("cpu", torch.float32)[0]
    assert torch.equal(first.args[0].float(), second.args[0])
    assert not torch.equal(first.args[0], first.args[1])


def test_small_gives_primes_then_ones_then_zeros():
    names = [sample.name for sample in shapes("B S", B=64, S=64).small("cpu", torch.float32)]
    assert names == ["B=2 S=3", "B=1 S=1", "B=1 S=3", "B=2 S=1", "B=0 S=0", "B=0 S=3", "B=2 S=0"]


@pytest.mark.parametrize(
    ("specs", "sizes", "message"),
    [
        (("B 3S",), {}, "'3S' where a letter or an integer"),
        (("B *S",), {}, "'' where a letter or an integer"),
        (("B S-1",), {}, "'S-1' where a letter or an integer"),
        (("B S",), {"B": 2}, "no size is given for S"),
        (("B",), {"B": 2, "T": 3}, "a size is given for T"),
        (("B",), {"B": -2}, "B=-2 is not a size"),
        (("B",), {"B": ()}, r"B=\(\) is not a size"),
        (("B S",), {"B": (1, 2), "S": (1, 2, 3)}, "B has 2, S has 3"),
    ],
)
def test_what_cannot_be_read_is_refused_in_words(specs, sizes, message):
    with pytest.raises(ShapesUnreadable, match=message):
        shapes(*specs, **sizes)


def test_tensors_inside_containers_are_found_and_mapped_in_order():
    one, two, three = torch.ones(1), torch.ones(2), torch.ones(3)
    sample = Sample((one, 2.0, [two]), {"extra": {"deep": three}, "flag": True}, name="nested")
    assert [tensor.numel() for tensor in sample.tensors()] == [1, 2, 3]
    doubled = sample.map(lambda tensor: tensor * 2)
    assert doubled.kwargs["extra"]["deep"].tolist() == [2.0, 2.0, 2.0]
    assert doubled.args[1] == 2.0
    assert doubled.name == "nested"
    assert sample.with_tensors([three, one, two]).args[0] is three


def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2


@pytest.mark.parametrize(
    ("samples", "message"),
    [
        (lambda: [Sample((torch.ones(2),))], r"takes 0 positional arguments but 2 were given"),
        ([Sample((torch.ones(2),))], "'list' object is not callable"),
        (lambda device, dtype: None, "'NoneType' object is not iterable"),
        (lambda device, dtype: [(torch.ones(2),)], "tuple is no opwright.Sample"),
        (lambda device, dtype: 1 / 0, "ZeroDivisionError: division by zero"),
    ],
)
@pytest.mark.parametrize("command", ["check", "bench", "eject", "source"])
def test_samples_of_another_form_end_in_a_sentence(samples, message, command, tmp_path):
    operator = opwright.operator(twice, samples=samples, name="twice_of_wrong_samples")
    arguments = {"eject": (tmp_path / "out",), "source": ("cpp",)}.get(command, ())
    with pytest.raises(SamplesMissing, match=f"samples of .* cannot be made: .*{message}") as caught:
        getattr(operator, command)(*arguments)
    assert "a function of a device and a dtype" in (caught.value.hint or "")


def test_a_large_sample_is_made_when_it_is_asked_for():
    too_large = 2**60
    assert shapes("B", B=(2, too_large))("cpu", torch.float32)[0].name == "B=2"


def test_samples_can_be_read_as_often_as_a_list():
    samples = shapes("B", B=(2, 3, 5))("cpu", torch.float32)
    for _ in range(2):
        assert [sample.name for sample in samples] == ["B=2", "B=3", "B=5"]
    assert len(samples) == 3
    assert samples[-1].name == "B=5"
    assert [sample.name for sample in samples[:2]] == ["B=2", "B=3"]
    with pytest.raises(IndexError):
        samples[3]


def test_a_number_among_shapes_is_told_apart():
    with pytest.raises(ShapesUnreadable, match=r"2.0 is not the shape of a tensor") as refusal:
        shapes("B S", 2.0, B=4, S=8)
    assert "opwright.Sample((x, 2.0))" in refusal.value.hint


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (shapes("B S", B=4, S=8), r'the sample "B=4 S=8" is not a call that .* takes: TypeError'),
        (shapes("B S", "B T", B=4, S=8, T=9), r'"B=4 S=8 T=9" is not a call that .* takes: RuntimeError: The size of'),
    ],
    ids=["too few", "of other sizes"],
)
def test_a_check_or_a_race_of_what_the_function_does_not_take_is_refused(made, words):
    @opwright.operator(samples=made, name="samples::untaken")
    def untaken(x, y):
        return x * y

    for judge in (lambda: untaken.check(quick=True), untaken.check, lambda: untaken.bench(compile=False)):
        with pytest.raises(SamplesMissing, match=words):
            judge()
    if len(made.tensors) == 1:
        with pytest.raises(SamplesMissing, match=words):
            untaken.source()
