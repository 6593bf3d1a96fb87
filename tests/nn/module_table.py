"""The modules of torch.nn with samples, out of PyTorch's own table."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from functools import cache
from typing import Any

import torch
from torch import nn
from torch.nn.modules.lazy import LazyModuleMixin

from tests.torch_tables import stand_in_for_expecttest


@cache
def modules() -> dict[str, Any]:
    """PyTorch's table, by name."""
    stand_in_for_expecttest()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_modules import module_db
    return {info.name.removeprefix("nn."): info for info in module_db}


def cases(name: str, *, training: bool, most: int) -> Iterator[tuple[nn.Module, tuple[Any, ...], dict[str, Any]]]:
    """Modules, each with the arguments of a call."""
    info = modules()[name]
    torch.manual_seed(3)
    samples = info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=training)
    for sample in [sample for sample in samples if sample.forward_input is not None][:most]:
        torch.manual_seed(5)
        made = info.module_cls(*sample.constructor_input.args, **sample.constructor_input.kwargs)
        if isinstance(made, LazyModuleMixin):
            made(*sample.forward_input.args)
        yield made.train(training), sample.forward_input.args, sample.forward_input.kwargs
