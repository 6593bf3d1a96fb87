"""Right and wrong ways to write one small operator. Each wrong one has a single fault."""

import time

import torch
from torch.autograd.function import once_differentiable
from torch.utils._python_dispatch import _disable_current_modes

import opwright


def cell(x, y):
    return torch.sin(x) * y, x * torch.sigmoid(y)


def rewritten(x, y):
    """The same, in other operations."""
    return y * torch.sin(x), x / (1 + torch.exp(-y))


def off(x, y):
    """Wrong by a little, in every derivative."""
    first, second = cell(x, y)
    return first + 1e-5 * x**3 * y, second


class Cell(torch.autograd.Function):
    """Right to the first order and beyond, by hand, without forward mode and vmap."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return cell(x, y)

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        s = torch.sigmoid(y)
        return g * torch.cos(x) * y + h * s, g * torch.sin(x) + h * x * s * (1 - s)


class WithTangents(Cell):
    """Right in forward mode too, but not where it is nested: torch's own trap."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return cell(x, y)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def jvp(ctx, dx, dy):
        x, y = ctx.saved_tensors
        s = torch.sigmoid(y)
        return dx * torch.cos(x) * y + dy * torch.sin(x), dx * s + dy * x * s * (1 - s)


class ZeroTangents(WithTangents):
    @staticmethod
    def jvp(ctx, dx, dy):
        return torch.zeros_like(dx), torch.zeros_like(dy)


class _Times(torch.autograd.Function):
    """A product whose tangents are lost."""

    generate_vmap_rule = True

    @staticmethod
    def forward(a, b):
        return a * b

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx, g):
        a, b = ctx.saved_tensors
        return g * b, g * a

    @staticmethod
    def jvp(ctx, da, db):
        return torch.zeros_like(da if da is not None else db)


class TangentsLostInBackward(WithTangents):
    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        s = torch.sigmoid(y)
        return _Times.apply(g, torch.cos(x) * y) + h * s, g * torch.sin(x) + h * x * s * (1 - s)


class WrongBatchAxis(WithTangents):
    """Takes for granted that batches are along the first axis."""

    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, x, y):
        return WrongBatchAxis.apply(x, y), 0


class OnceDifferentiable(Cell):
    backward = staticmethod(once_differentiable(Cell.backward))


class SavedIntermediate(Cell):
    """The second derivative misses the path through what was saved."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.s = torch.sigmoid(y)
        return Cell.forward(ctx, x, y)

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.saved_tensors
        return g * torch.cos(x) * y + h * ctx.s, g * torch.sin(x) + h * x * ctx.s * (1 - ctx.s)


class NumericallyWrong(Cell):
    @staticmethod
    def backward(ctx, g, h):
        first, second = Cell.backward(ctx, g, h)
        return first * 1.01, second


class SwappedWhenPartial(Cell):
    @staticmethod
    def backward(ctx, g, h):
        first, second = Cell.backward(ctx, g, h)
        return (None, first) if not ctx.needs_input_grad[0] else (first, second)


class NoneForUnused(Cell):
    @staticmethod
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return Cell.forward(ctx, x, y)

    @staticmethod
    def backward(ctx, g, h):
        return (None, None) if g is None or h is None else Cell.backward(ctx, g, h)


class SpoiltByBackward(Cell):
    """Backward overwrites what it will need again."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.x = x.detach().clone()
        return Cell.forward(ctx, x, y)

    @staticmethod
    def backward(ctx, g, h):
        _, y = ctx.saved_tensors
        x, s = ctx.x.clone(), torch.sigmoid(y)
        ctx.x.zero_()
        return g * torch.cos(x) * y + h * s, g * torch.sin(x) + h * x * s * (1 - s)


class SecondStepDoubled(Cell):
    steps = 0

    @staticmethod
    def backward(ctx, g, h):
        SecondStepDoubled.steps += 1
        return tuple(gradient * SecondStepDoubled.steps for gradient in Cell.backward(ctx, g, h))


class KeptAside(Cell):
    """Keeps its inputs where autograd does not see them."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.kept = x, y
        return cell(x, y)

    @staticmethod
    def backward(ctx, g, h):
        x, y = ctx.kept
        s = torch.sigmoid(y)
        return g * torch.cos(x) * y + h * s, g * torch.sin(x) + h * x * s * (1 - s)


class SpoiltAside(KeptAside):
    @staticmethod
    def backward(ctx, g, h):
        found = KeptAside.backward(ctx, g, h)
        ctx.kept = torch.zeros_like(g), torch.zeros_like(h)
        return found


class BlindToStrideZero(Cell):
    @staticmethod
    def backward(ctx, g, h):
        return Cell.backward(ctx, torch.zeros_like(g) if 0 in g.stride() else g, h)


class AddsToGrad(torch.autograd.Function):
    """Adds to `.grad` by itself, as some fused kernels do, so that nothing that listens hears it."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.leaves = x, y
        return cell(x, y)

    @staticmethod
    def backward(ctx, g, h):
        x, y = (leaf.detach() for leaf in ctx.leaves)
        s = torch.sigmoid(y)
        found = g * torch.cos(x) * y + h * s, g * torch.sin(x) + h * x * s * (1 - s)
        for leaf, gradient in zip(ctx.leaves, found, strict=True):
            leaf.grad = gradient if leaf.grad is None else leaf.grad + gradient
        return None, None


class _NanToZero(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return torch.nan_to_num(g, nan=0.0)


def nan_on_the_way(x, y):
    """A gradient that is NaN, and put right before anybody sees it."""
    zero = _NanToZero.apply(x) * 0
    return cell(x, y)[0] + torch.sqrt(zero) * 0, cell(x, y)[1]


_BUFFER = {}


def shared_buffer(x, y):
    _BUFFER["x"] = x
    time.sleep(1e-4)
    return cell(_BUFFER["x"], y)


class SharedBuffer(Cell):
    @staticmethod
    def backward(ctx, g, h):
        _BUFFER["saved"] = ctx.saved_tensors
        time.sleep(1e-4)
        x, y = _BUFFER["saved"]
        s = torch.sigmoid(y)
        return g * torch.cos(x) * y + h * s, g * torch.sin(x) + h * x * s * (1 - s)


def other_when_compiled(x, y):
    return off(x, y) if torch.compiler.is_compiling() else cell(x, y)


def breaks_the_graph(x, y):
    return cell(x, y) if float(x.detach().sum()) > 0 else rewritten(x, y)


def compiled_for_each_size(x, y):
    extra = sum(0 * index for index in range(x.shape[0]))
    return cell(x + extra, y)


LEFT = []


def keeps_every_result(x, y):
    LEFT.append(x * 1)
    return cell(x, y)


def keeps_memory(x, y):
    LEFT.append(bytearray(b"x" * 400_000))
    return cell(x, y)


class KeepsEveryGradient(Cell):
    @staticmethod
    def backward(ctx, g, h):
        LEFT.append(g * 1)
        return Cell.backward(ctx, g, h)


_CALLS = [0]


def other_every_second_time(x, y):
    _CALLS[0] += 1
    return cell(x * 1.01, y) if _CALLS[0] % 2 == 0 else cell(x, y)


def other_without_gradients(x, y):
    return cell(x, y) if torch.is_grad_enabled() else off(x, y)


def by_numpy(x, y):
    plain = (torch.from_numpy(tensor.detach().numpy().copy()) for tensor in (x, y))
    return cell(*plain)


def forgets_the_type(x, y):
    return cell(x.as_subclass(torch.Tensor), y.as_subclass(torch.Tensor))


def unheard_functions(x, y):
    with torch._C.DisableTorchFunction():
        return cell(x, y)


def unheard_operations(x, y):
    with _disable_current_modes():
        return cell(x, y)


class UnheardBackward(Cell):
    @staticmethod
    def backward(ctx, g, h):
        with _disable_current_modes():
            return Cell.backward(ctx, g, h)


def records_always(x, y):
    with torch.enable_grad():
        return cell(x, y)


def leaves_inference_mode(x, y):
    with torch.inference_mode(False):
        return tuple(result.clone() for result in cell(x.clone(), y.clone()))


def other_in_workers(x, y):
    return off(x, y) if torch.utils.data.get_worker_info() else cell(x, y)


class Scratch:
    """A callable whose copy forgets what it needs."""

    def __init__(self):
        self.scale = 1.0

    def __call__(self, x, y):
        first, second = cell(x, y)
        return first * self.scale, second

    def __reduce__(self):
        return _forgetful, ()


def _forgetful():
    copied = Scratch()
    copied.scale = 1.01
    return copied


def confused_by_one_tensor(x, y):
    return cell(x, y + 1e-3 if x is y else y)


def product(x, y):
    return (x @ y.mT,)


def product_without_autocast(x, y):
    with torch.autocast("cpu", enabled=False):
        return (x @ y.mT,)


@torch.library.custom_op("opwright_planted::liar", mutates_args=())
def liar(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Its fake implementation has other strides than its results."""
    return (x * y).t().contiguous().t()


@liar.register_fake
def _(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.shape)


@torch.library.custom_op("opwright_planted::fixed", mutates_args=())
def fixed(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Its fake implementation makes numbers of symbols."""
    return (x * y).contiguous()


@fixed.register_fake
def _(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.new_empty([int(size) for size in x.shape])


@torch.library.custom_op("opwright_planted::plain", mutates_args=())
def plain(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """It has no derivative, and a fake implementation that is right."""
    return (x * y).contiguous()


@plain.register_fake
def _(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.shape)


@torch.library.custom_op("opwright_planted::contiguous", mutates_args=())
def contiguous(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return (x * y).contiguous()


@contiguous.register_fake
def _(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.shape)


def plain_by_name(x, y):
    """Right, but not composed of torch's own operations."""
    return torch.ops.opwright_planted.plain(x, y)


def multiply(x, y):
    return x * y


def compared(x, y):
    return x > y


def gathered(x, index):
    return x.index_select(0, index)


def gathered_wrongly(x, index):
    return gathered(x, index) * (1.01 if torch._C._functorch.is_batchedtensor(index) else 1)


def gathers(device, dtype):
    generator = torch.Generator().manual_seed(0)
    yield opwright.Sample((torch.randn(5, 3, generator=generator, dtype=dtype), torch.tensor([4, 0, 2])))


def single(x, y):
    """It takes float32 only."""
    return cell(x @ torch.eye(x.shape[-1]), y)


def drawn(x, y):
    return torch.nn.functional.dropout(x, 0.5) * y, x


def steep(x, w):
    """Rounding of the sums is as large as the sums, where the results are small."""
    return torch.sigmoid(x @ w) * torch.cos(x @ w)


def in_another_order(x, w):
    order = torch.randperm(x.shape[1], generator=torch.Generator().manual_seed(0))
    total = x.index_select(1, order) @ w.index_select(0, order)
    return torch.sigmoid(total) * torch.cos(total)


def steep_and_off(x, w):
    return in_another_order(x, w) * (1 + 1e-7)
