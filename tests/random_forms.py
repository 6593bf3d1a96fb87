"""Statements of random functions: what may stand right of `name = `, and for which operands.

The templates of `FORMS` are those of most random programs, and a seed means a program of these; `MORE_FORMS` are rarer.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch

Tensor = torch.Tensor

UNARY = (
    *("torch.sin({})", "torch.cos({})", "torch.tanh({})", "torch.sigmoid({})", "torch.exp(torch.tanh({}))"),
    *("torch.log1p({0} * {0})", "torch.sqrt({0} * {0} + 0.5)", "torch.erf({})", "torch.atan({})", "-{}", "2 - {}"),
    *("functional.elu({})", "functional.gelu({})", "functional.gelu({}, approximate='tanh')", "functional.silu({})"),
    *("functional.softplus({})", "{} ** 2", "{} ** 3", "torch.reciprocal({0} * {0} + 1)", "1 / ({0} * {0} + 1)"),
    *("torch.rsqrt({0} * {0} + 1)", "torch.expm1(torch.tanh({}))", "{} * 0.3", "{} / 3", "{}.double()", "{} + True"),
    *("torch.asinh({})", "functional.mish({})", "functional.hardswish({})", "torch.pow(2.0, torch.tanh({}))"),
)
# What jumps, and must be asked of values that have no rounding errors: eager's differ from ours.
UNARY_EXACT = (
    *("torch.abs({})", "torch.relu({})", "{}.clamp(-0.5, 0.75)", "{}.clamp(min=0.25)", "torch.sign({})"),
    *("torch.floor({})", "torch.round({})", "functional.leaky_relu({}, 0.1)", "-{}", "functional.hardtanh({})"),
    *("{}.to(torch.int64)", "torch.trunc({})", "{}.bool()", "functional.relu6({})"),
)
BINARY = ("{} + {}", "{} - {}", "{} * {}", "{0} / ({1} * {1} + 1)", "torch.atan2({}, {})", "torch.add({}, {}, alpha=2)")
BINARY_EXACT = ("torch.maximum({}, {})", "torch.minimum({}, {})")
COMPARISONS = ("{} < {}", "{} <= {}", "{} > {}", "{} >= {}", "{} == {}", "{} != {}")
LOGIC = ("{} & {}", "{} | {}", "{} ^ {}", "torch.logical_and({}, {})", "{} * {}", "{} + {}")
INTEGRAL = ("{} + {}", "{} - {}", "{} * {}", "torch.maximum({}, {})", "{} / ({} * 0 + 2)")
VIEWS = (
    *(
        "{}.mT",
        "{}.transpose(0, -1)",
        "{}[1:]",
        "{}[:-1]",
        "{}[..., ::2]",
        "{}[..., -2:]",
        "{}[0]",
        "{}.select(-1, -1)",
    ),
    *("{}.unsqueeze(0)", "{}.unsqueeze(-1)", "{0}.expand(2, *{0}.shape)", "{}.flatten()", "{}.flatten(0, 1)"),
    *(
        "{}.chunk(2, dim=-1)[0]",
        "{}.chunk(2, dim=0)[-1]",
        "{}.squeeze()",
        "{}.reshape(-1, 1)",
        "{}.flip(0)",
        "{}.flip(-1)",
    ),
    *(
        "{0}.reshape({0}.shape[0], -1)",
        "{}.contiguous()",
        "{0}.reshape(*{0}.shape[::-1])",
        "{0}.view({0}.shape[0], -1)",
    ),
    *("{}.movedim(0, -1)", "{0}.reshape(2, -1)", "{}.narrow(0, 1, 2)", "{}.diagonal()", "{}.unflatten(-1, (2, -1))"),
    *("torch.stack([{0}, {0}])", "{0}.repeat(2, *[1] * ({0}.ndim - 1))", "{}.split(2, dim=0)[0]"),
    *("torch.cat({}.chunk(2, dim=-1)[::-1], -1)", "torch.cat([{0}[{0}.shape[0] // 2 :], {0}[: {0}.shape[0] // 2]])"),
    "torch.stack((-{0}[..., 1::2], {0}[..., ::2]), -1).reshape({0}.shape)",
    "torch.stack(({0}[1::2], {0}[::2].sin()), 1).flatten(0, 1)",
)
REDUCTIONS = (
    "{}.sum(0)",
    "{}.sum(-1, keepdim=True)",
    "{}.mean(-1)",
    "{}.sum()",
    "torch.softmax({}, -1)",
    "{}.cumsum(0)",
    *(
        "{}.mean()",
        "{}.sum((0, -1))",
        "{}.mean(0, keepdim=True)",
        "{}.var(-1, correction=0)",
        "{}.var(0, correction=0)",
    ),
    *("torch.softmax({}, 0)", "torch.log_softmax({}, -1)", "{}.logsumexp(0)", "{}.logsumexp(-1, keepdim=True)"),
    *("functional.layer_norm({0}, {0}.shape[-1:])", "functional.normalize({}, dim=-1)", "(1 + 0.1 * {}).prod(-1)"),
)
REDUCTIONS_EXACT = ("{}.amax(-1)", "{}.amin(0)", "{}.amax()", "{}.amin((0, -1))", "{}.amax(0, keepdim=True)")
TRUTH_REDUCTIONS = ("{}.any(-1)", "{}.all(0)", "{}.any()", "{}.all(-1, keepdim=True)", "{}.sum(0)")
JOINS = ("torch.cat([{}, {}], dim=0)", "torch.cat([{}, {}], dim=-1)", "torch.stack([{}, {}], dim=0)")
CHOICES = ("torch.where({}, {}, {})", "torch.where({0}, {1}, 0.5)")
IN_PLACE = ("{0} * 1.5; {2}.mul_({1})", "{0} * 1.5; {2}.add_({1})", "{0}.exp().clamp(max=9); {2}.copy_({1})")
INDEXED = (
    # An index without dimensions is a Python int to torch, which is the reference's.
    *("{}[torch.atleast_1d({}.clamp(-2, 1))]", "{}[..., torch.atleast_1d({}.clamp(-2, 1))]"),
    "{}.index_select(-1, {}.flatten().clamp(0, 1))",
    *("functional.embedding({1}.clamp(0, 1), {0})", "{}.gather(-1, {}.clamp(0, 1))", "{}.gather(0, {} * 0 + 1)"),
    "torch.log_softmax({}, -1).gather(-1, {}.clamp(0, 1))",
)
PRODUCTS = ("{} @ {}", "{} @ {}.mT", "{}.mT @ {}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which variables an operand may be."""

    floating: bool = False
    exact: bool = False
    dtype: torch.dtype | None = None
    rank: int | None = None

    def accepts(self, value: Tensor, exact: bool) -> bool:
        return (
            (value.is_floating_point() or not self.floating)
            and (exact or not self.exact)
            and self.dtype in (None, value.dtype)
            and self.rank in (None, value.ndim)
        )


@dataclass(frozen=True, slots=True)
class Form:
    """Statements of one kind: what follows `name = `, its operands, and whether it is exact where they are."""

    templates: tuple[str, ...]
    operands: tuple[Wanted, ...]
    exact: bool = False


ANY, REAL, EXACT_REAL = Wanted(), Wanted(floating=True), Wanted(floating=True, exact=True)
EXACT, TRUTH, WHOLE = Wanted(exact=True), Wanted(dtype=torch.bool), Wanted(dtype=torch.int64)
MATRIX = Wanted(floating=True, rank=2)

FORMS = (
    *[Form(UNARY, (REAL,))] * 3,
    Form(UNARY_EXACT, (EXACT_REAL,), exact=True),
    *[Form(BINARY, (REAL, ANY))] * 2,
    Form(BINARY_EXACT, (EXACT_REAL, EXACT_REAL), exact=True),
    Form(COMPARISONS, (EXACT, EXACT), exact=True),
    Form(LOGIC, (TRUTH, TRUTH), exact=True),
    Form(INTEGRAL, (WHOLE, WHOLE), exact=True),
    Form(CHOICES, (TRUTH, ANY, ANY), exact=True),
    *[Form(VIEWS, (ANY,), exact=True)] * 4,
    Form(JOINS, (ANY, ANY), exact=True),
    Form(INDEXED, (REAL, WHOLE)),
    Form(PRODUCTS, (MATRIX, MATRIX)),
    *[Form(REDUCTIONS, (REAL,))] * 2,
    Form(REDUCTIONS_EXACT, (EXACT_REAL,), exact=True),
    Form(TRUTH_REDUCTIONS, (TRUTH,), exact=True),
    Form(IN_PLACE, (REAL, REAL)),
)

# Statements that most programs do not have: counted numbers, new tensors, shifts, scans, sorts, writes into parts.
COUNTED = (
    *(
        "{0} * torch.arange({0}.shape[-1])",
        "{0} + torch.arange(1, {0}.shape[-1] + 1)",
        "{0} - torch.arange({0}.numel()).view({0}.shape)",
    ),
    *(
        "{0} * torch.arange({0}.shape[0]).view(-1, *[1] * ({0}.ndim - 1))",
        "{0} + torch.arange({0}.shape[-1]).flip(0) % 3",
    ),
    *("{0} * (torch.arange({0}.shape[-1]) % 2 * 2 - 1)", "torch.where(torch.arange({0}.shape[-1]) > 1, {0}, 0)"),
)
MADE = (
    *(
        "torch.zeros_like({0})",
        "{0}.new_full({0}.shape, 2)",
        "torch.ones({0}.shape[-1])",
        "torch.eye({0}.shape[-1]) * {0}",
    ),
    *("torch.arange({0}.shape[-1])", "torch.full_like({0}, 0.25, dtype=torch.float32)", "torch.zeros({0}.shape[0], 1)"),
)
SHIFTED = (
    *("{0}.tril()", "{0}.triu(1)", "{0}.roll(1, -1)", "{0}.roll((1, -1), (0, -1))", "functional.pad({0}, (1, 2))"),
    *("functional.pad({0}, (-1, 1), value=0.5)", "{0}.rot90()", "{0}.diff(dim=-1)", "torch.diag_embed({0})"),
    *("{0}.unfold(-1, 2, 1)", "{0}.repeat_interleave(2, -1)", "{0}.tile((2,))", "{0}[..., None]", "{0}[..., [1, 0]]"),
    *("{0}[[0, -1]]", "{0}[..., 1:] - {0}[..., :-1]", "{0}[None].expand(3, *{0}.shape)", "{0}.unbind(-1)[-1]"),
    *(
        "torch.atleast_3d({0})",
        "{0}.swapaxes(0, -1)",
        "{0}.ravel()",
        "torch.hstack([{0}, {0}])",
        "torch.vstack([{0}, {0}])",
    ),
    *(
        "torch.dstack([{0}, {0}])",
        "{0}.tensor_split(2, -1)[0]",
        "torch.block_diag({0}, {0})",
        "{0}.clone().fill_diagonal_(0.5)",
    ),
    *(
        "{0}.masked_fill({0} > 0, -1)",
        "{0}.nan_to_num()",
        "torch.broadcast_to({0}, (2, *{0}.shape))",
        "{0}.mT.contiguous()",
    ),
    *(
        "torch.kron({0}, {0}[..., :1])",
        "torch.cartesian_prod({0}, {0})",
        "torch.combinations({0})",
        "{0}.view_as({0}) + 0",
    ),
)
SCANNED = (
    *(
        "{0}.cumsum(-1)",
        "{0}.cumsum(0).cumsum(-1)",
        "torch.logcumsumexp({0}, -1)",
        "torch.cumprod(torch.tanh({0}), -1)",
    ),
    *("{0}.flip(-1).cumsum(-1).flip(-1)", "({0} * torch.arange({0}.shape[-1])).cumsum(-1)"),
)
SCANNED_EXACT = ("{0}.cummax(-1).values", "{0}.cummin(0).values", "{0}.cummax(-1).indices")
SORTED = (
    *("{0}.sort(-1).values", "{0}.sort(0, descending=True).values", "{0}.topk(2, -1).values", "{0}.median(-1).values"),
    *(
        "{0}.kthvalue(1, -1).values",
        "{0}.argsort(-1, stable=True)",
        "{0}.argmax(-1)",
        "{0}.argmin(0)",
        "{0}.max(-1).indices",
    ),
    *(
        "{0}.max(-1).values",
        "{0}.min(0, keepdim=True).values",
        "{0}.aminmax(dim=-1).max",
        "{0}.sort(-1, stable=True).indices",
    ),
)
MORE_UNARY = (
    *("functional.selu({0})", "functional.celu({0}, 0.7)", "functional.logsigmoid({0})", "functional.tanhshrink({0})"),
    *(
        "functional.softsign({0})",
        "torch.sinc({0})",
        "torch.special.entr({0} * {0})",
        "torch.logit(torch.sigmoid({0}))",
    ),
    *("{0}.norm(dim=-1)", "torch.linalg.vector_norm({0}, 1, 0)", "torch.linalg.vector_norm({0}, 3, -1, keepdim=True)"),
    *(
        "{0}.std(-1)",
        "functional.softmin({0}, -1)",
        "functional.glu({0}, -1)",
        "functional.rms_norm({0}, {0}.shape[-1:])",
    ),
    *("torch.std_mean({0}, -1)[1]", "torch.var_mean({0}, 0)[0]", "{0}.sinh()", "{0}.erfc()", "{0}.square().lgamma()"),
    *("torch.polar({0}, {0}).real", "torch.complex({0}, {0}).abs()", "(({0} + 1j) * ({0} - 2j)).imag", "{0}.tan()"),
    *(
        "functional.avg_pool1d({0}, 2)",
        "functional.max_pool1d({0}, 2)",
        "functional.interpolate({0}[None], scale_factor=2)",
    ),
    *(
        "functional.dropout({0}, 0.5, training=False)",
        "torch.trapezoid({0}, dim=-1)",
        "functional.cosine_similarity({0}, {0} + 1, -1)",
    ),
)
MORE_BINARY = (
    *("torch.lerp({0}, {1}, 0.3)", "torch.addcmul({0}, {1}, {1}, value=0.5)", "torch.hypot({0}, {1} + 2)"),
    *(
        "torch.logaddexp({0}, {1})",
        "torch.einsum('...i,...i->...', {0}, {1})",
        "torch.outer({0}.flatten(), {1}.flatten())",
    ),
    *(
        "torch.inner({0}, {1})",
        "torch.dist({0}, {1} + 3)",
        "functional.mse_loss({0}, {1})",
        "functional.smooth_l1_loss({0}, {1})",
    ),
    *("functional.huber_loss({0}, {1}, reduction='none')", "{0} * {1}.detach()", "torch.tensordot({0}, {1}, dims=1)"),
    *(
        "torch.rsub({0}, {1}, alpha=2)",
        "torch.xlogy({0}, {1} * {1} + 1)",
        "{0}.float_power(2) + {1}",
        "{0}.ldexp({1}.sign())",
    ),
)
MORE_BINARY_EXACT = (
    *(
        "torch.where({0} > {1}, {0}, {1} * 2)",
        "torch.copysign({0}, {1})",
        "torch.heaviside({0}, {1})",
        "torch.fmax({0}, {1})",
    ),
    *("torch.clamp({0}, max={1})", "{0}.clamp_min({1})", "torch.fmin({0}, {1})"),
)
DIVIDED = (
    "torch.remainder({0}, 3)",
    "torch.fmod({0}, 2)",
    "{0} // 2",
    "{0} % 2",
    "torch.div({0}, 2, rounding_mode='trunc')",
)
WHOLE_UNARY = (
    "{0} << 1",
    "{0} >> 1",
    "~{0}",
    "{0} & 3",
    "{0} ** 2",
    "{0}.abs()",
    "-{0}",
    "{0}.gcd({0} * 2)",
    "{0}.float()",
)
WRITTEN = (  # into parts of a tensor of its own
    *(
        "{0} * 1.5; {1}[..., 1:] = {1}[..., :-1].clone()",
        "{0} * 1.5; {1}[0].mul_(2)",
        "{0} * 1.5; {1}[..., ::2].zero_()",
    ),
    *(
        "{0} * 1.5; {1}.diagonal().fill_(0.5)",
        "{0} * 1.5; {1}.masked_fill_({1} > 0, 0.25)",
        "{0} * 1.5; {1}[..., -1] += 1",
    ),
    *(
        "{0} * 1.5; {1}.transpose(0, -1)[0].add_(1)",
        "{0} * 1.5; {1}[{1} > 0.5] = 0",
        "{0} * 1.5; {1}[1:].sub_({1}[:1])",
    ),
    *(
        "{0} * 1.5; {1}.t_().mul_(2)",
        "{0} * 1.5; {1}.squeeze_().neg_()",
        "{0} * 1.5; {1}[:, [0, 1]] *= 2",
        "{0}.clone(); {1}[..., 0] = 7",
    ),
)
SCATTERED = (
    *(
        "{0}.scatter(-1, {1}.clamp(0, 1), 0.5)",
        "{0}.scatter_add(-1, {1}.clamp(0, 1), {0})",
        "{0}.take({1}.clamp(0, 1))",
    ),
    *("{0}.index_add(0, {1}.flatten().clamp(0, 1)[:1], {0}[:1])", "torch.take_along_dim({0}, {1}.clamp(0, 1), -1)"),
    *(
        "{0}.index_fill(0, {1}.flatten().clamp(0, 1), 0.5)",
        "{0}.index_copy(0, {1}.flatten().clamp(0, 1)[:1], {0}[1:2])",
    ),
    *(
        "({0} * torch.arange({0}.shape[-1])).gather(-1, {1}.clamp(0, 1))",
        "functional.one_hot({1}.clamp(0, 4), 5) * {0}[..., :1]",
    ),
    *(
        "({0} + torch.arange({0}.shape[0]).view(-1, *[1] * ({0}.ndim - 1)))[{1}.flatten().clamp(0, 1)]",
        "{0}[{1}.flatten().clamp(0, 1), ..., 0]",
    ),
    *(
        "{0}[torch.arange({0}.shape[0]), {1}.flatten().clamp(0, 1)[: {0}.shape[0]]]",
        "{0}.scatter_reduce(-1, {1}.clamp(0, 1), {0}, 'amax')",
    ),
    *(
        "({0}.cumsum(-1) / torch.arange(1, {0}.shape[-1] + 1)).gather(-1, {1}.clamp(0, 1)[..., :1])",
        "functional.embedding({1}.clamp(0, 1), {0} * torch.arange({0}.shape[-1]))",
    ),
)

MORE_FORMS = (
    *FORMS,
    *[Form(COUNTED, (ANY,), exact=True)] * 3,
    Form(MADE, (ANY,), exact=True),
    *[Form(SHIFTED, (ANY,), exact=True)] * 4,
    Form(SCANNED, (REAL,)),
    Form(SCANNED_EXACT, (EXACT_REAL,), exact=True),
    Form(SORTED, (EXACT_REAL,), exact=True),
    *[Form(MORE_UNARY, (REAL,))] * 3,
    *[Form(MORE_BINARY, (REAL, REAL))] * 2,
    Form(MORE_BINARY_EXACT, (EXACT_REAL, EXACT_REAL), exact=True),
    Form(DIVIDED, (EXACT,), exact=True),
    Form(WHOLE_UNARY, (WHOLE,), exact=True),
    *[Form(WRITTEN, (EXACT_REAL,), exact=True)] * 2,
    *[Form(SCATTERED, (EXACT_REAL, WHOLE), exact=True)] * 3,
)
