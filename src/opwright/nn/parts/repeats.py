"""Whether a module is better served by its parts: one that repeats a block would take long to derive as a whole.

Equal blocks share what is derived and compiled for one of them, because a part is known by what it is made of.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from torch import nn
from torch.nn.modules.batchnorm import _NormBase

from opwright.errors import NoKernel
from opwright.nn.parts.cut import calls_others, has_forward

MOST_S = 5.0
# What kernels, forward and backward, take to derive and compile (docs/decisions/0042-time-of-derivation.md).
_S_OF_A_NORM, _S_OF_ANOTHER = 1.0, 0.15
_NORMS = (nn.GroupNorm, nn.LayerNorm, nn.RMSNorm, _NormBase)


def why_by_parts(children: Iterable[nn.Module]) -> NoKernel | None:
    """Why what calls modules is served by these although it might be served as a whole; None if it is not."""
    called = list(dict.fromkeys(children))
    whole_s = sum(map(_seconds, called))
    if whole_s <= MOST_S:
        return None
    equal: dict[Hashable, list[nn.Module]] = {}
    for inner in dict.fromkeys(inner for child in called for inner in child.modules()):
        if has_forward(inner) and calls_others(inner):
            equal.setdefault(_made_of(inner), []).append(inner)
    most = max(equal.values(), key=lambda blocks: (len(blocks) - 1) * _seconds(blocks[0]), default=[])
    if not most or 2 * (len(most) - 1) * _seconds(most[0]) < whole_s:
        return None
    return NoKernel(
        f"it repeats {type(most[0]).__name__} {len(most)} times, which is derived once; all of it would take some "
        f"{whole_s:.0f} s",
        hint="serve it as a whole with depth=0",
    )


def _seconds(module: nn.Module) -> float:
    leaves = [inner for inner in module.modules() if not calls_others(inner)]
    return sum(_S_OF_A_NORM if isinstance(leaf, _NORMS) else _S_OF_ANOTHER for leaf in leaves)


def _made_of(module: nn.Module) -> Hashable:
    """The classes of a module and of those inside, and the shapes of their tensors."""
    kinds = tuple((name, type(inner)) for name, inner in module.named_modules())
    tensors = (*module.named_parameters(), *module.named_buffers())
    return kinds, tuple((name, tuple(tensor.shape)) for name, tensor in tensors)
