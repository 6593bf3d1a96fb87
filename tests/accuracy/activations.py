"""Activations, as the library's functions and written by hand."""

from __future__ import annotations

import math
from collections.abc import Mapping

import torch
from torch.nn import functional

from tests.accuracy.subject import Subject

_ALL = ("float32", "bfloat16", "float16")

ACTIVATIONS: Mapping[str, Subject] = {
    "tanh": Subject(torch.tanh, dtypes=_ALL),
    "sigmoid": Subject(torch.sigmoid, dtypes=_ALL),
    "erf": Subject(torch.erf),
    "relu squared": Subject(lambda x: torch.relu(x).square()),
    "leaky relu": Subject(lambda x: functional.leaky_relu(x, 0.1)),
    "relu6": Subject(functional.relu6),
    "gelu": Subject(functional.gelu, dtypes=_ALL),
    "gelu, tanh": Subject(lambda x: functional.gelu(x, approximate="tanh"), dtypes=_ALL),
    "gelu by hand": Subject(lambda x: 0.5 * x * (1 + torch.erf(x / math.sqrt(2)))),
    "gelu, tanh, by hand": Subject(
        lambda x: 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "quick gelu": Subject(lambda x: x * torch.sigmoid(1.702 * x)),
    "silu": Subject(functional.silu, dtypes=_ALL),
    "silu by hand": Subject(lambda x: x * torch.sigmoid(x)),
    "silu by exp": Subject(lambda x: x / (1 + torch.exp(-x))),
    "sigmoid by exp": Subject(lambda x: 1 / (1 + torch.exp(-x))),
    "mish": Subject(functional.mish),
    "mish by hand": Subject(lambda x: x * torch.tanh(functional.softplus(x))),
    "softplus": Subject(functional.softplus),
    "softplus by hand": Subject(lambda x: torch.log1p(torch.exp(-x.abs())) + torch.relu(x)),
    "softplus, beta 2": Subject(lambda x: functional.softplus(x, beta=2.0, threshold=10.0)),
    "elu": Subject(functional.elu),
    "elu by hand": Subject(lambda x: torch.where(x > 0, x, torch.expm1(x))),
    "selu": Subject(functional.selu),
    "celu": Subject(lambda x: functional.celu(x, 1.5)),
    "hardswish": Subject(functional.hardswish),
    "hardsigmoid": Subject(functional.hardsigmoid),
    "logsigmoid": Subject(functional.logsigmoid),
    "logsigmoid by hand": Subject(lambda x: -functional.softplus(-x)),
    "tanhshrink": Subject(functional.tanhshrink),
    "softsign": Subject(functional.softsign),
    "softsign by hand": Subject(lambda x: x / (1 + x.abs())),
    "tanh by exp": Subject(lambda x: (1 - torch.exp(-2 * x.abs())) / (1 + torch.exp(-2 * x.abs())) * x.sign()),
    "swiglu": Subject(lambda x, y: functional.silu(x) * y, "xx"),
    "geglu": Subject(lambda x, y: functional.gelu(x) * y, "xx"),
    "serf": Subject(lambda x: x * torch.erf(functional.softplus(x))),
    "gaussian": Subject(lambda x: torch.exp(-x * x)),
    "sine": Subject(lambda x: torch.sin(30 * x)),
    "snake": Subject(lambda x, p: x + torch.sin(p * x).square() / p, "xp"),
    "asinh": Subject(torch.asinh),
    "atan": Subject(torch.atan),
    "LSTM cell": Subject(lambda x, y, z: torch.sigmoid(x) * torch.tanh(y) + torch.sigmoid(z) * torch.tanh(x), "xxx"),
    "GRU cell": Subject(lambda x, y, z: (1 - torch.sigmoid(x)) * torch.tanh(y) + torch.sigmoid(x) * z, "xxx"),
}
