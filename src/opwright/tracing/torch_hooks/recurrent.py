"""Recurrent networks drop between their layers in a trace, too.

Torch's decomposition of LSTM, GRU and RNN forgets it: `_rnn_helper` in torch/_decomp/decompositions.py compares
`num_layers < i - 1` (seen up to PyTorch 2.13). So here it runs each layer by itself.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from opwright.tracing.torch_hooks.exchanged import Exchanged

_DECOMPOSITIONS, _HELPER = "torch._decomp.decompositions", "_rnn_helper"


@contextmanager
def dropping_between_layers() -> Iterator[None]:
    """Decompose them so on this thread until the end of the block."""
    with _exchanged().on_this_thread(True):
        yield


@functools.cache
def _exchanged() -> Exchanged[bool]:
    module = importlib.import_module(_DECOMPOSITIONS)
    run_layers: Callable[..., tuple[torch.Tensor, list[Any]]] = getattr(module, _HELPER)

    def layer_by_layer(
        input: torch.Tensor,
        hidden: Sequence[Any],
        params: Sequence[Any],
        has_biases: bool,
        num_layers: int,
        dropout: float,
        train: bool,
        bidirectional: bool,
        batch_first: bool,
        layer_fn: Callable[..., Any],
    ) -> tuple[torch.Tensor, list[Any]]:
        if found.here() is None:
            rest = (has_biases, num_layers, dropout, train, bidirectional, batch_first, layer_fn)
            return run_layers(input, hidden, params, *rest)
        output, final = input.transpose(0, 1) if batch_first else input, list[Any]()
        directions = 2 if bidirectional else 1
        for first in range(0, num_layers * directions, directions):
            if first and dropout and train:
                output = _dropped(output, dropout)
            here = slice(first, first + directions)
            rest = (has_biases, 1, 0.0, train, bidirectional, False, layer_fn)
            output, ended = run_layers(output, hidden[here], params[here], *rest)
            final += map(_of_one_layer, ended, hidden[here])
        return output.transpose(0, 1) if batch_first else output, final

    found: Exchanged[bool] = Exchanged({(module, _HELPER): layer_by_layer})
    return found


def _dropped(x: torch.Tensor, p: float) -> torch.Tensor:
    """As eager drops: where it drops all, it draws nothing, and torch's decomposition of dropout would."""
    return x * x.new_zeros(()) if p == 1 else torch.dropout(x, p, True)


def _of_one_layer(ended: Any, began: Any) -> Any:
    """The last state, of as many dimensions as the first one: that of oneDNN has one more up to PyTorch 2.11."""
    if isinstance(ended, tuple):
        return tuple(map(_of_one_layer, ended, began))
    return ended.squeeze(0) if ended.dim() > began.dim() else ended
