"""Optimizers derived from the update of one parameter, and ready ones; `opwright.optimizer` makes others."""

from opwright.optim.base import DerivedOptimizer
from opwright.optim.ready.adam import Adam, Adamax, AdamW, Adan, NAdam, RAdam
from opwright.optim.ready.adaptive import Adadelta, Adagrad, RMSprop
from opwright.optim.ready.layers import LAMB, Adafactor, Muon, ScheduleFreeAdamW
from opwright.optim.ready.momentum import ASGD, SGD, Lion, Rprop

__all__ = [
    "ASGD",
    "LAMB",
    "SGD",
    "Adadelta",
    "Adafactor",
    "Adagrad",
    "Adam",
    "AdamW",
    "Adamax",
    "Adan",
    "DerivedOptimizer",
    "Lion",
    "Muon",
    "NAdam",
    "RAdam",
    "RMSprop",
    "Rprop",
    "ScheduleFreeAdamW",
]
