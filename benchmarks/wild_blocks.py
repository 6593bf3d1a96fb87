"""Blocks of models that others wrote, with random weights: attention, feed-forward and residual blocks, activations.

python benchmarks/wild_blocks.py [--without-compile] [--processor-time] [--json FILE]

Forward and backward through `opwright.module` against the block itself, one thread. It needs the extra `wild`.
OPWRIGHT_BENCH_NAMES names some of the blocks, separated by semicolons.
"""

from __future__ import annotations

import copy
import importlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import torch
from scorecard import Options, Row, Scorecard, Target, geometric_mean, medians_us, run_script
from torch import nn
from wild_models import Subject, floats, load, make

import opwright
from opwright.benchmark.stopwatch import Thunk

LEAST_MEAN, LEAST_OF_ONE, LEAST_SERVED = 1.2, 0.95, 0.95

_TOKENS, _IMAGE = (4, 64, 64), (4, 32, 28, 28)


def _of(library: str, name: str, *args: Any, **kwargs: Any) -> nn.Module:
    made: nn.Module = getattr(importlib.import_module(library), name)(*args, **kwargs)
    return made


def _inside(model: str, path: str) -> nn.Module:
    return make(model).model.get_submodule(path)


def _on(block: nn.Module, *shapes: tuple[int, ...], **kwargs: Any) -> Subject:
    return Subject(block, tuple(floats(*shape) for shape in shapes), kwargs)


def _activation(name: str) -> Callable[[], Subject]:
    return lambda: _on(_of("timm.layers", name), _TOKENS)


_TIMM, _RESNET, _VISION = "timm.layers", "torchvision.models.resnet", "torchvision.ops.misc"
BLOCKS: Mapping[str, Callable[[], Subject]] = {
    # torch.nn
    "nn encoder layer": lambda: _on(nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True), _TOKENS),
    "nn encoder layer, norm first": lambda: _on(
        nn.TransformerEncoderLayer(64, 4, 128, 0.0, "gelu", batch_first=True, norm_first=True), _TOKENS
    ),
    "nn decoder layer": lambda: _on(
        nn.TransformerDecoderLayer(64, 4, 128, dropout=0.0, batch_first=True), _TOKENS, _TOKENS
    ),
    "nn attention": lambda: _on(nn.MultiheadAttention(64, 4, batch_first=True), _TOKENS, _TOKENS, _TOKENS),
    "nn GRU cell": lambda: _on(nn.GRUCell(64, 64), (32, 64), (32, 64)),
    "nn LSTM cell": lambda: _on(nn.LSTMCell(64, 64), (32, 64)),
    # timm
    "timm attention": lambda: _on(_of(_TIMM, "Attention", 64, num_heads=4), _TOKENS),
    "timm Mlp": lambda: _on(_of(_TIMM, "Mlp", 64, 128), _TOKENS),
    "timm GluMlp": lambda: _on(_of(_TIMM, "GluMlp", 64, 128), _TOKENS),
    "timm SwiGLU": lambda: _on(_of(_TIMM, "SwiGLU", 64, 128), _TOKENS),
    "timm GatedMlp": lambda: _on(_of(_TIMM, "GatedMlp", 64, 128), _TOKENS),
    "timm ConvMlp": lambda: _on(_of(_TIMM, "ConvMlp", 32, 64), _IMAGE),
    "timm GlobalResponseNormMlp": lambda: _on(_of(_TIMM, "GlobalResponseNormMlp", 64, 128), (4, 8, 8, 64)),
    "timm SEModule": lambda: _on(_of(_TIMM, "SEModule", 32), _IMAGE),
    "timm EffectiveSEModule": lambda: _on(_of(_TIMM, "EffectiveSEModule", 32), _IMAGE),
    "timm BlurPool2d": lambda: _on(_of(_TIMM, "BlurPool2d", 32), _IMAGE),
    "timm LayerNorm2d": lambda: _on(_of(_TIMM, "LayerNorm2d", 32), _IMAGE),
    "timm RmsNorm": lambda: _on(_of(_TIMM, "RmsNorm", 64), _TOKENS),
    **{f"timm {name}": _activation(name) for name in ("Swish", "Mish", "HardSwish", "GELUTanh", "QuickGELU")},
    "timm transformer block": lambda: _on(_of("timm.models.vision_transformer", "Block", 64, 4), _TOKENS),
    "timm mixer block": lambda: _on(_of("timm.models.mlp_mixer", "MixerBlock", 64, 64), _TOKENS),
    "timm ConvNeXt block": lambda: _on(_of("timm.models.convnext", "ConvNeXtBlock", 32), _IMAGE),
    # torchvision
    "torchvision BasicBlock": lambda: _on(_of(_RESNET, "BasicBlock", 32, 32), _IMAGE),
    "torchvision Bottleneck": lambda: _on(_of(_RESNET, "Bottleneck", 32, 8), _IMAGE),
    "torchvision SqueezeExcitation": lambda: _on(_of(_VISION, "SqueezeExcitation", 32, 8), _IMAGE),
    "torchvision Conv2dNormActivation": lambda: _on(_of(_VISION, "Conv2dNormActivation", 32, 32), _IMAGE),
    # transformers and diffusers
    "BERT layer": lambda: _on(_inside("transformers/bert", "bert.encoder.layer.0"), (2, 64, 32)),
    "BERT output": lambda: _on(_inside("transformers/bert", "bert.encoder.layer.0.output"), (2, 64, 64), (2, 64, 32)),
    "GPT-2 MLP": lambda: _on(_inside("transformers/gpt2", "transformer.h.0.mlp"), (2, 64, 32)),
    "Llama MLP": lambda: _on(_inside("transformers/llama", "model.layers.0.mlp"), (2, 64, 32)),
    "Llama norm": lambda: _on(_inside("transformers/llama", "model.norm"), (2, 64, 32)),
    "T5 feed-forward": lambda: _on(_inside("transformers/t5", "encoder.block.0.layer.1"), (2, 64, 32)),
    "diffusers FeedForward": lambda: _on(_of("diffusers.models.attention", "FeedForward", 64), _TOKENS),
    "diffusers transformer block": lambda: _on(
        _of("diffusers.models.attention", "BasicTransformerBlock", 64, 4, 16), _TOKENS
    ),
    "diffusers ResnetBlock2D": lambda: _on(
        _of("diffusers.models.resnet", "ResnetBlock2D", in_channels=32, temb_channels=16, groups=8), _IMAGE, (4, 16)
    ),
}


def make_block(name: str) -> Subject:
    """Make a block, in training mode, with the same weights each time."""
    torch.manual_seed(0)
    load("torchvision")  # whose operators are declared then, for the libraries that import it
    subject = BLOCKS[name]()
    subject.model.train()
    for module in subject.model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0  # the time of drawing numbers is not what is compared
    return subject


def measure(options: Options) -> Scorecard:
    """Race every block against itself."""
    torch.set_num_threads(1)
    named = os.environ.get("OPWRIGHT_BENCH_NAMES", "").split(";")
    names = [name for name in BLOCKS if named == [""] or name in named]
    rows = [Row(name, _row(name, options)) for name in (names[:2] if options.quick else names)]
    ratios = {row.name: row.figures["block / opwright"] or 0.0 for row in rows}
    served = [row.figures["served"] or 0.0 for row in rows]
    targets = [
        Target("share of the blocks that kernels serve, in part at least", sum(served) / len(rows), ">=", LEAST_SERVED),
        Target("geometric mean of block / opwright", geometric_mean([*ratios.values()]), ">=", LEAST_MEAN),
        *[Target(f"{name}: block / opwright", ratio, ">=", LEAST_OF_ONE) for name, ratio in ratios.items()],
    ]
    return Scorecard("blocks of models that others wrote, forward + backward, float32, one thread; µs", rows, targets)


def _row(name: str, options: Options) -> dict[str, float | None]:
    subject = make_block(name)
    plain, served = subject.model, opwright.module(copy.deepcopy(subject.model))
    ways = {"block": _training(subject, plain), "opwright": _training(subject, served)}
    if not (options.quick or options.without_compile):
        torch.compiler.reset()
        ways["compile"] = _training(subject, torch.compile(copy.deepcopy(plain)))
    medians = medians_us(ways, options)
    raced = medians.get("compile")
    return {
        **medians,
        "block / opwright": medians["block"] / medians["opwright"],
        "compile / opwright": raced and raced / medians["opwright"],
        "served": float("kernels: " in str(served.explain())),  # type: ignore[operator]
    }


def _training(subject: Subject, block: Any) -> Thunk:
    given = [arg.clone().requires_grad_() for arg in subject.args]
    wanted = [*given, *block.parameters()]

    def run() -> Any:
        returned = block(*given, **subject.kwargs)
        first = returned[0] if isinstance(returned, tuple) else returned
        return torch.autograd.grad(first.sum(), wanted, allow_unused=True)

    return run


if __name__ == "__main__":
    run_script(measure, __doc__)
