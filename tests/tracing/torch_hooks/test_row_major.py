"""Short cuts of fake tensors: what they give is what torch gives, which needs no guard for it."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Any

import pytest
import torch
from torch._ops import OpOverload
from torch._subclasses.fake_tensor import FakeTensor

from opwright.tracing.scalars.sizes import SizeTable
from opwright.tracing.torch_hooks.fake_mode import LeanFakeTensorMode, QuickFakeTensorMode, fake_mode
from opwright.tracing.torch_hooks.layouts.row_major import COMPARING, OF_ONE, OF_TWO, RowMajor

aten = torch.ops.aten
COPY = aten.clone.default

TAKES_NUMBERS = {aten.add.Tensor, aten.div.Tensor, aten.mul.Tensor, aten.sub.Tensor}  # in place of a tensor


class Situation:
    """Tensors of a fake-tensor mode with symbolic sizes."""

    def __init__(self, sizes: Sequence[int] = (3, 4, 5)) -> None:
        mode, self.environment = fake_mode()
        assert isinstance(mode, QuickFakeTensorMode)
        self.mode, self.quick = mode, RowMajor(mode)
        self.sizes = SizeTable(self.environment).new_shape("x", sizes)

    def tensor(self, chooser: random.Random, dtype: torch.dtype = torch.float32) -> torch.Tensor:
        """A tensor of up to three dimensions, in some layout."""
        shape = [chooser.choice((size, size, 1)) for size in self.sizes[chooser.randrange(4) :]]
        with self.mode:
            made = torch.empty(shape, dtype=dtype)
            match chooser.randrange(6):
                case 0 if shape:
                    return made.transpose(0, len(shape) - 1)
                case 4 if shape:
                    return torch.empty([*shape[:-1], 3 * shape[-1]], dtype=dtype)[..., : shape[-1]]
                case 5 if shape:
                    return torch.empty([*shape, 2], dtype=dtype)[..., 1]
                case 1:
                    return made.expand([*self.sizes[: 3 - len(shape)], *shape])
                case 2 if shape:
                    return made[..., :1].expand([*shape])
                case _:
                    return made

    def slowly(self, operation: OpOverload, args: Sequence[Any]) -> Any:
        """What torch gives, and how many guards it needs."""
        before = len(self.environment.guards)
        result = LeanFakeTensorMode.__torch_dispatch__(self.mode, operation, (), tuple(args), {})
        return result, len(self.environment.guards) - before

    def told_as_by_torch(self, operation: OpOverload, args: Sequence[Any]) -> Any:
        """What the short cut tells, which is what torch gives without a guard; None if torch must tell."""
        quick = self.quick.result(operation, args, {})
        if quick is not None:
            torchs, guards = self.slowly(operation, args)
            assert alike(quick, torchs, args), (operation, args)
            assert guards == 0, (operation, args)
        return quick


def alike(quick: Any, torchs: Any, args: Sequence[Any]) -> bool:
    """Whether both are such tensors, in the memory of an argument or not; or both the argument itself."""
    if quick is args[0] or torchs is args[0]:
        return quick is torchs
    tensors = [each for each in args if isinstance(each, torch.Tensor)]
    places = [[memory(each) == memory(result) for each in tensors] for result in (quick, torchs)]
    return described(quick) == described(torchs) and places[0] == places[1]


def memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata


def described(result: Any) -> tuple[Any, ...]:
    """What is known of a tensor."""
    assert type(result) is FakeTensor
    sizes = [size.node.expr if isinstance(size, torch.SymInt) else size for size in (*result.shape, *result.stride())]
    begin = result.storage_offset()
    offset = begin.node.expr if isinstance(begin, torch.SymInt) else begin
    return result.dtype, result.device, sizes, offset, result.requires_grad


def operands(situation: Situation, chooser: random.Random, operation: OpOverload) -> list[Any]:
    weighed = {torch.float32: 9, torch.float64: 2, torch.int64: 1, torch.bool: 1, torch.complex64: 1, torch.float16: 1}
    dtypes = chooser.choices([*weighed], [*weighed.values()], k=1)
    made: list[Any] = []
    for argument in operation._schema.arguments:
        if argument.kwarg_only:
            continue
        is_number = operation in TAKES_NUMBERS and made and chooser.random() < 0.2
        if str(argument.type) == "Tensor" and not is_number:
            made.append(situation.tensor(chooser, chooser.choice((*dtypes, *dtypes, torch.float32))))
        elif not argument.has_default_value():
            made.append(chooser.choice((2, 0.5, True, situation.sizes[0])))
    return made


def all_of(names: str, *overloads: str) -> list[OpOverload]:
    packets = [getattr(aten, name) for name in names.split()]
    return [getattr(packet, name) for packet in packets for name in overloads if name in packet.overloads()]


CHOOSING = all_of("where", "self", "ScalarSelf", "ScalarOther")
ELEMENT_WISE = [
    *CHOOSING,
    *all_of(OF_ONE, "default"),
    *all_of(OF_TWO, "Tensor", "default"),
    *all_of(COMPARING, "Tensor", "Scalar"),
]


@pytest.mark.parametrize("seed", range(4))
def test_element_wise_operations(seed: int) -> None:
    chooser, found = random.Random(seed), 0
    situation = Situation()
    for operation in chooser.choices(ELEMENT_WISE, k=120):
        given = operands(situation, chooser, operation)
        if operation in CHOOSING:
            given[0] = situation.tensor(chooser, torch.bool)
        found += situation.told_as_by_torch(operation, given) is not None
    assert found > 10


@pytest.mark.parametrize("seed", range(2))
def test_copies_and_reductions(seed: int) -> None:
    chooser, found = random.Random(seed), 0
    situation = Situation()
    for operation in chooser.choices((aten.sum.dim_IntList, aten.amax.default, aten.amin.default, COPY), k=80):
        given: list[Any] = [situation.tensor(chooser, chooser.choice((torch.float32, torch.float64, torch.int32)))]
        if operation is not COPY:
            dims = range(-given[0].dim(), given[0].dim())
            given += [chooser.sample(dims, chooser.randrange(min(len(dims), 3) + 1)), chooser.random() < 0.5]
        found += situation.told_as_by_torch(operation, given) is not None
    assert found > 10


@pytest.mark.parametrize("seed", range(2))
def test_other_orders(seed: int) -> None:
    chooser, found = random.Random(seed), 0
    situation = Situation()
    for operation in chooser.choices((aten.alias.default, aten.permute.default, aten.as_strided.default), k=60):
        tensor = situation.tensor(chooser, chooser.choice((torch.float32, torch.int64)))
        rank, given = tensor.dim(), [tensor]
        if operation is aten.permute.default:
            given.append(chooser.sample([chooser.choice((dim, dim - rank)) for dim in range(rank)], rank))
        if operation is aten.as_strided.default:
            given += [[*tensor.shape, 2], [*tensor.stride(), chooser.choice((0, 3))], *chooser.choice(((), (1,)))]
        found += situation.told_as_by_torch(operation, given) is not None
    assert found > 40


@pytest.mark.parametrize("operation", [aten.mm.default, aten.bmm.default], ids=str)
def test_products_of_matrices(operation: OpOverload) -> None:
    chooser, found = random.Random(operation.name()), 0
    situation = Situation()
    *batch, rows, inner = situation.sizes[-3:] if operation is aten.bmm.default else situation.sizes[-2:]
    for _ in range(20):
        dtypes = chooser.choices((torch.float32, torch.complex64, torch.int64), (8, 1, 1), k=2)
        with situation.mode:
            left = torch.empty([*batch, rows, inner], dtype=dtypes[0])
            right = torch.empty([*batch, *chooser.choice(((inner, 1), (rows, inner), (inner, rows)))], dtype=dtypes[1])
            given = [left, right.mT if chooser.random() < 0.5 else right]
        quick = situation.quick.result(operation, given, {})
        fits = (
            given[1].shape[-2].node.expr == inner.node.expr if isinstance(given[1].shape[-2], torch.SymInt) else False
        )
        assert (quick is not None) is (fits and len({*dtypes}) == 1 and dtypes[0] is not torch.int64)
        if quick is not None:
            found += 1
            torchs, guards = situation.slowly(operation, given)
            assert alike(quick, torchs, given)
            assert guards == 0
    assert found > 3


def test_conversions_that_change_nothing() -> None:
    situation = Situation()
    for dtype in (torch.float32, torch.complex64, torch.int64):
        with situation.mode:
            x = torch.empty(situation.sizes, dtype=dtype)
        assert situation.told_as_by_torch(aten.to.dtype, (x, dtype)) is x
        assert situation.quick.result(aten.to.dtype, (x, torch.float64), {}) is None
        is_same = situation.told_as_by_torch(aten.conj_physical.default, (x,)) is x
        assert is_same is not dtype.is_complex


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.complex64, torch.bool])
def test_new_tensors(dtype: torch.dtype) -> None:
    situation = Situation()
    for shape in ((), (3, 0), situation.sizes, (situation.sizes[0] + 1, 1, situation.sizes[1])):
        options = {"dtype": dtype, "device": torch.device("cpu"), "pin_memory": False}
        quick = situation.quick.result(aten.empty.memory_format, [shape], options)
        torchs = LeanFakeTensorMode.__torch_dispatch__(situation.mode, aten.empty.memory_format, (), [shape], options)
        assert described(quick) == described(torchs)


@pytest.mark.parametrize("seed", range(2))
def test_views(seed: int) -> None:
    chooser, found = random.Random(seed), 0
    situation = Situation()
    for _ in range(40):
        tensor = situation.tensor(chooser)
        shape: list[Any] = list(tensor.shape)
        for _ in range(chooser.randrange(3)):
            shape.insert(chooser.randrange(len(shape) + 1), 1)
        if len(shape) > 1 and chooser.random() < 0.7:
            place = chooser.randrange(len(shape) - 1)
            shape[place : place + 2] = [shape[place] * shape[place + 1]]
        if shape and chooser.random() < 0.4:
            shape[chooser.randrange(len(shape))] = -1
        if (quick := situation.told_as_by_torch(aten.view.default, (tensor, shape))) is not None:
            found += 1
            assert quick.untyped_storage()._cdata == tensor.untyped_storage()._cdata
    assert found > 5


@pytest.mark.parametrize("seed", range(3))
def test_guards_of_views_are_what_eager_needs(seed: int) -> None:
    chooser, others = random.Random(seed), 0
    for _ in range(8):
        sizes = [chooser.choice((4, 8, 12)) for _ in range(chooser.randint(1, 2))]
        situation = Situation(sizes)
        shape = [part for size in situation.sizes for part in divided(size, chooser)]
        if len(shape) > 1 and chooser.random() < 0.4:
            place = chooser.randrange(len(shape) - 1)
            shape[place : place + 2] = [shape[place] * shape[place + 1]]
        if chooser.random() < 0.4:
            shape[chooser.randrange(len(shape))] = -1
        with situation.mode:
            x = torch.empty(situation.sizes)
        quick = situation.quick.result(aten.view.default, (x, shape), {})
        assert quick is not None
        expected = [*quick.shape, *quick.stride()]
        symbols = [size.node.expr for size in situation.sizes]
        guards = [guard.expr for guard in situation.environment.guards]
        for values in itertools.product(range(2, 14), repeat=len(sizes)):
            at = dict(zip(symbols, values, strict=True))
            if all(holds(guard, at) for guard in guards):
                others += values != (*sizes,)
                eager = torch.empty(values).view([evaluated(size, at) for size in shape])
                assert [*eager.shape, *eager.stride()] == [evaluated(size, at) for size in expected]
            else:
                assert values != (*sizes,)
    assert others > 20


def divided(size: torch.SymInt, chooser: random.Random) -> list[Any]:
    """A size, or two whose product is that size for some."""
    number = chooser.choice((2, 4))
    return chooser.choice(([size], [size // number, number], [number, size // number], [1, size]))


def holds(guard: Any, at: Any) -> bool:
    try:
        return bool(guard.subs(at))
    except ZeroDivisionError:  # such as of `view(n // 4, -1)`, which eager refuses too; in kernels the quotient is 0
        return False


def evaluated(size: Any, at: Any) -> int:
    return int(size.node.expr.subs(at)) if isinstance(size, torch.SymInt) else size


def test_torch_tells_of_all_else() -> None:
    situation = Situation()
    with situation.mode:
        x, y = torch.empty(situation.sizes), torch.empty(situation.sizes, dtype=torch.float64)
        known = torch.ops.aten.lift_fresh_copy.default(torch.tensor(2.0))
    for operation, given in (
        (aten.sub.Tensor, (x, y)),
        (aten.mul.Tensor, (x, 1j)),
        (aten.sum.dim_IntList, (x, [0, 0])),
        (aten.sum.dim_IntList, (x, [3])),
        (aten.sum.dim_IntList, (x.transpose(0, 1), [0])),
        (aten.clone.default, (x.transpose(0, 1),)),
        (aten.exp.default, (x.to(torch.int64),)),
        (aten.mul.Tensor, (x.transpose(0, 1), x.transpose(0, 1))),
        (aten.mul.Tensor, (x[:, :1], x[:1])),
        (aten.mul.Tensor, (x[..., 1:], x[..., 1:])),  # whose size may be one
        (aten.mm.default, (x[0], x[0])),
        (aten.permute.default, (x, [0, 0, 1])),
        (aten.sum.default, (x,)),
        (aten.exp.default, (known,)),
        (aten.view.default, (x.transpose(0, 1), [-1])),
        (aten.view.default, (x, [7, -1])),
        (aten.view.default, (x, [0, -1])),
        (aten.view.default, (x, [-1, -1])),
        (aten.view.default, (x, [3, -2])),
    ):
        assert situation.quick.result(operation, given, {}) is None, operation
    assert situation.quick.result(aten.add.Tensor, (x, x), {"alpha": 2}) is None
    assert situation.quick.result(aten.sum.dim_IntList, (x, [0]), {"dtype": torch.float64}) is None
    for options in ({"pin_memory": True}, {"device": torch.device("meta")}, {"memory_format": torch.channels_last}, {}):
        assert situation.quick.result(aten.empty.memory_format, (x.shape,), {"dtype": None, **options}) is None
