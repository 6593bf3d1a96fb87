"""Sources with one mistake each, and a right one beside them."""

from __future__ import annotations

import torch

import opwright

RIGHT = """\
template <class T>
void forward(const T* x, const T* y, T* z, int64_t n) {
  for (int64_t k = 0; k < n; ++k) z[k] = 3 * x[k] - y[k];
}
"""
BACKWARD = """\
template <class T>
void backward(const T* grad_z, T* grad_x, T* grad_y, int64_t n) {
  for (int64_t k = 0; k < n; ++k) grad_x[k] = 3 * grad_z[k], grad_y[k] = -grad_z[k];
}
"""


def made(name: str = "planted") -> opwright.Operator:
    """A new operator z = 3x - y."""

    def reference(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return 3 * x - y

    return opwright.Operator(reference, name=f"tests::{name}", samples=opwright.shapes("B S", "B S", B=4, S=5))


def changed(text: str, *replacements: tuple[str, str]) -> str:
    """A source with something else in it."""
    for before, after in replacements:
        assert before in text
        text = text.replace(before, after)
    return text
