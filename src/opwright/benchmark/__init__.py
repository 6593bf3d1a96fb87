"""Measure an operator, or any callable, beside its reference and `torch.compile`; a wrong result voids its timing."""

from opwright.benchmark.call_costs import CallCost, call_cost
from opwright.benchmark.measure import bench
from opwright.benchmark.timings import BenchReport, Entry

__all__ = ["BenchReport", "CallCost", "Entry", "bench", "call_cost"]
