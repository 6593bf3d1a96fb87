"""Functions that are transformed, and their arguments."""

import torch


def random(*shape, seed=0, dtype=torch.float64):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=dtype)


W, X = random(4), random(6, 4, seed=1)
TREE = {"a": random(4, seed=2), "layer.b": [random(4, seed=3)]}


def rows(w, x):
    return (x @ w).tanh()


def loss(w, x):
    return rows(w, x).pow(2).sum()


def with_aux(w, x):
    return loss(w, x), {"rows": rows(w, x)}


def of_tree(tree, scale=2.0):
    return (tree["a"] * tree["layer.b"][0] * scale).sin().sum()


def two(w, x):
    return (x @ w).sum(), (w * x.sum()).sin()
