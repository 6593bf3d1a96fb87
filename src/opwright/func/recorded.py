"""`vjp` by autograd: a recorded call of an operator, and its backward pass, without a level of `torch.func`."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only, tree_unflatten, treespec_pprint

from opwright.api.operator import Operator
from opwright.binding.environment import is_quiet
from opwright.derivation.forward import is_differentiable
from opwright.derivation.pull_back import gradients
from opwright.func.unchanged import refusing_changes


def recorded(operator: Operator, before: tuple[Any, ...], primals: tuple[Any, ...], has_aux: bool) -> Any:
    """What `torch.func.vjp` returns; None if the call needs that itself.

    Args:
        operator: What is differentiated.
        before: Arguments before the primals, whose gradients are not asked for.
        primals: Where.
        has_aux: Whether it returns a pair, of which the second member is not differentiated.
    """
    leaves, rebuilt = _flat(primals)
    if not is_quiet() or torch.is_inference_mode_enabled() or not leaves or not all(map(is_differentiable, leaves)):
        return None
    flat, given = operator.flattened((*before, *primals), {})
    if flat.transformed.draws_otherwise(given, if_unknown=True):
        return None
    is_recording = torch.is_grad_enabled()
    others = [leaf for leaf in tree_leaves(before) if isinstance(leaf, torch.Tensor)] if before else []
    if any(tensor.is_inference() or (is_recording and tensor.requires_grad) for tensor in (*leaves, *others)):
        return None
    sources = [leaf.detach().requires_grad_() for leaf in leaves]
    with torch.enable_grad():
        returned = operator(*before, *rebuilt(sources))
    is_pair = has_aux and isinstance(returned, tuple) and len(returned) == 2
    outputs, outputs_layout = tree_flatten(returned[0] if is_pair else returned)
    are_tensors = not is_pair or all(isinstance(leaf, torch.Tensor) for leaf in tree_leaves(returned[1]))
    if is_pair is not has_aux or not are_tensors or not outputs or not all(map(is_differentiable, outputs)):
        return torch.func.vjp(lambda *_: returned, *primals, has_aux=has_aux)  # raises what it raises of such a result
    keeps = is_recording and operator.last_rung == "composed"  # a kernel depends on its arguments alone

    def pull(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, given_layout = tree_flatten(cotangents)
        if given_layout != outputs_layout:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function."
                f" cotangents: {treespec_pprint(given_layout)}, primal output: {treespec_pprint(outputs_layout)}"
            )
        if create_graph is None:
            create_graph = torch.is_grad_enabled() and (not is_quiet() or any(c.requires_grad for c in given))
        with torch.inference_mode(False) if torch.is_inference_mode_enabled() else nullcontext():
            return rebuilt(gradients(outputs, sources, given, create_graph=create_graph, retain_graph=retain_graph))

    result = tree_map_only(torch.Tensor, _without(sources) if keeps else torch.Tensor.detach, returned)
    return (result[0], pull, result[1]) if has_aux else (result, pull)


def by_a_level(operator: Operator, before: tuple[Any, ...], primals: tuple[Any, ...], has_aux: bool) -> Any:
    """What `torch.func.vjp` of an operator returns; the pull refuses what kernels would read after a change.

    A level has tensors of its own around those of the caller, so autograd does not see that these are changed in place.
    """
    found = torch.func.vjp(functools.partial(operator, *before), *primals, has_aux=has_aux)
    if operator.last_rung == "composed":  # which kept what eager keeps
        return found
    result, pull, *aux = found
    refuse = refusing_changes("vjp", before, primals, result)

    @functools.wraps(pull)
    def checked(*args: Any, **kwargs: Any) -> Any:
        refuse()
        return pull(*args, **kwargs)

    return (result, checked, *aux)


def _flat(primals: tuple[Any, ...]) -> tuple[Sequence[Any], Callable[[Sequence[Any]], Any]]:
    """The leaves of primals, and what puts them together again; torch's trees take longer than a small kernel."""
    if all(isinstance(primal, torch.Tensor) for primal in primals):
        return primals, tuple
    leaves, layout = tree_flatten(primals)
    return leaves, lambda others: tree_unflatten(others, layout)


def _without(sources: Sequence[torch.Tensor]) -> Callable[[torch.Tensor], torch.Tensor]:
    """Detach a result unless it depends on others than these, as on the parameters of a module that was called."""
    own = {id(source) for source in sources}

    def detached(result: torch.Tensor) -> torch.Tensor:
        waiting, seen = [result.grad_fn], set[Any]()
        while waiting:
            node = waiting.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            variable = getattr(node, "variable", None)
            if variable is not None and id(variable) not in own:
                return result
            waiting += [before for before, _ in node.next_functions]
        return result.detach()

    return detached
