"""Functions that validate values; not in a test's module, whose assertions pytest writes anew."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import Categorical, Gamma, MultivariateNormal, Normal, Uniform, kl_divergence

NOTES: dict[str, bool] = {}


def by_hand(x: Tensor) -> Tensor:
    if x.isnan().any():
        raise ValueError(f"there is NaN among {x.numel()} values")
    assert (x > -100).all()
    return x.exp() * 2


def by_a_helper(x: Tensor) -> Tensor:
    def check(values: Tensor, what: str = "a value") -> None:
        if not (torch.all(values > 0) and what):
            message = f"{what} is not positive"
            raise ArithmeticError(message)

    check(x.detach())
    return x.log()


def by_a_truth(x: Tensor) -> Tensor:
    if bool((x > 100).any()):
        raise ValueError("too large")
    if (x < -100).any().item():
        raise ValueError("too small")
    return x.exp() * 2


def by_a_returned_truth(x: Tensor) -> Tensor:
    def all_are(valid: Tensor) -> bool:
        return bool(torch.all(valid))

    if not all_are(x.detach() > 0):
        raise ArithmeticError("a value is not positive")
    return x.log() * 2


def of_a_normal(x: Tensor, scale: Tensor) -> Tensor:
    return Normal(x.new_zeros(()), scale).log_prob(x)


def of_a_uniform(x: Tensor, high: Tensor) -> Tensor:
    return Uniform(high - 2, high).cdf(x)


def of_a_gamma(x: Tensor, rate: Tensor) -> Tensor:
    return Gamma(rate, rate).log_prob(x)


def of_categories(logits: Tensor, chosen: Tensor) -> Tensor:
    return Categorical(logits=logits).log_prob(chosen)


def of_vectors(x: Tensor, lower: Tensor) -> Tensor:
    return MultivariateNormal(x.new_zeros(2), scale_tril=lower).log_prob(x)


def divergence(mean: Tensor, scale: Tensor) -> Tensor:
    return kl_divergence(Normal(mean, scale), Normal(torch.zeros_like(mean), torch.ones_like(scale)))


def goes_on_by_a_returned_truth(x: Tensor) -> Tensor:
    def all_are(valid: Tensor) -> bool:
        return bool(torch.all(valid))

    return x * 2 if all_are(x > 0) else x


def keeps_the_truth(x: Tensor) -> Tensor:
    def all_are(valid: Tensor) -> bool:
        return bool(torch.all(valid))

    is_positive = all_are(x > 0)
    if not is_positive:
        raise ArithmeticError("a value is not positive")
    return x.log() * is_positive


def goes_on(x: Tensor) -> Tensor:
    if x.sum() > 0:
        x = x * 2
    return x


def raises_both_ways(x: Tensor) -> Tensor:
    if x.sum() > 0:
        raise ValueError("positive")
    raise ValueError("negative")


def notes_and_raises(x: Tensor) -> Tensor:
    if x.sum() < 0:
        NOTES["negative"] = True
        raise ValueError("negative")
    return x * 2


def looks_and_raises(x: Tensor) -> Tensor:
    if x.sum() < 0:
        raise ValueError("no" if x[0] > 0 else "not at all")
    return x * 2
