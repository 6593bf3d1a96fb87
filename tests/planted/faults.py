"""Faults of one line each, and the tests of the day that must find them.

When cases move to the night, the table says whether the day still sees what it saw.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Planted:
    """A fault: in a file of the package some text, which it has once, becomes another.

    Attributes:
        file: The file, below `src/opwright`.
        text: What is right.
        wrong: What stands there instead.
        found_by: Tests, files or folders below `tests`, one of which must fail.
    """

    file: str
    text: str
    wrong: str
    found_by: str


FAULTS = (
    # What functions mean.
    Planted("lowering/pointwise/complex.py", "return _add(x, y, -alpha)", "return _add(x, y, alpha)", "lowering"),
    Planted("lowering/pointwise/table.py", 'apply("trunc", quotient) if', 'apply("round", quotient) if', "lowering"),
    Planted(
        "lowering/views.py", "(ZERO if size == ONE else axis for", "(axis if size == ONE else axis for", "lowering"
    ),
    Planted(
        "lowering/reductions.py",
        'aten.any: Reduction("any"',
        'aten.any: Reduction("all"',
        "operator/test_reduced_dimensions.py operator/test_reductions.py",
    ),
    Planted(
        "tracing/decompositions/ranges.py",
        "math.ceil((end - start)",
        "math.floor((end - start)",
        "tracing/decompositions",
    ),
    Planted(
        "tracing/interface/orders.py",
        "return () if found == wide else",
        "return () if found else",
        "operator/test_strides.py",
    ),
    Planted("tracing/outside/plain.py", "return repr(left) == repr(right)", "return True", "tracing/outside"),
    Planted(
        "tracing/outside/guard.py",
        "value) is not value:\n        return guard",
        "value) is value:\n        return None",
        "tracing",
    ),
    # Derivatives.
    Planted(
        "derivation/saving/partition.py", 'if policy == "inputs":', 'if policy == "arguments":', "derivation operator"
    ),
    Planted("derivation/saving/costs.py", 'node.op == "placeholder" or _is', "_is", "derivation operator"),
    Planted("derivation/joint.py", "if id(a) in leaves)", "if id(a) not in leaves)", "operator"),
    # Passes.
    Planted(
        "passes/loops/fuse.py", "not in (0, kernel.row_axes)", "not in (0, kernel.row_axes, 1, 2)", "passes codegen"
    ),
    Planted("passes/buffers/hand_on.py", "if given == made and view", "if view", "passes operator"),
    Planted("passes/buffers/return_views.py", "maker not in taken and keeps", "keeps", "passes operator"),
    Planted(
        "passes/loops/separate_columns.py",
        "store.value for store in columns], carried",
        "store.value for store in columns]",
        "passes codegen",
    ),
    # What is emitted, and what it includes.
    Planted(
        "codegen/python/body.py",
        "[store.buffer] > 1:\n                self._add_piece(store, value, kernel",
        "[store.buffer] > 2:\n                self._add_piece(store, value, kernel",
        "codegen",
    ),
    Planted("codegen/cpp/expression.py", "if real == -(2**63):", "if real == -(2**62):", "codegen lowering"),
    Planted(
        "codegen/cpp/loops/reductions.py",
        '"1", "*", "{}", "{0} *= {1};", f"static_cast<{kind}>({{}})")',
        '"0", "*", "{}", "{0} *= {1};", f"static_cast<{kind}>({{}})")',
        "operator/test_reductions.py",
    ),
    Planted(
        "include/opwright/reduce_order.h",
        "return x != x ? static_cast",
        "return x == x ? static_cast",
        "include lowering",
    ),
    Planted(
        "include/opwright/arithmetic.h", "return y > x || y != y ? y : x;", "return y > x ? y : x;", "include lowering"
    ),
    # How calls are served.
    Planted(
        "binding/autograd/kernels.py",
        "if variant.needs_row_major and not _lies_for(variant, arguments):\n        return None",
        "if not _lies_for(variant, arguments):\n        return None",
        "operator",
    ),
    Planted("binding/dispatcher/autocast.py", " and tensor.dtype is not torch.float64", "", "operator binding"),
    Planted(
        "binding/transforms/step_below.py",
        "if functorch.is_forward_mode() else None",
        "if not functorch.is_forward_mode() else None",
        "binding operator",
    ),
    Planted(
        "func/recorded.py",
        "if given_layout != outputs_layout:",
        "if given_layout == outputs_layout:",
        "func",
    ),
    Planted(
        "nn/copies.py",
        'type(value)(*members) if hasattr(type(value), "_fields") else tuple(members)',
        "tuple(members)",
        "nn",
    ),
    Planted("optim/first_values.py", " and MASTER not in state:", ":", "optim"),
    Planted("optim/factor.py", "norm = scaled(norm, unscaled)", "pass", "optim"),
    Planted("optim/serving/skips.py", "step -= 1", "pass", "optim/test_distant_factor.py"),
    Planted(
        "include/opwright/cuda/table.h",
        "if (table.skip != nullptr && *table.skip != 0) return;",
        "",
        "optim/test_distant_factor.py",
    ),
    Planted(
        "tensors/covering/compare.py",
        "own is not expected and own != expected",
        "own is not expected and own == expected",
        "tensors",
    ),
    Planted(
        "tensors/wrapper/dispatching.py",
        "if inside.shape != wrapper.shape and",
        "if inside.shape == wrapper.shape and",
        "tensors",
    ),
    Planted("sharding/choose.py", "if rule.even and any(size % count for size in here):", "if False:", "sharding"),
    Planted(
        "sharding/derive.py",
        "Partial() if p in subset else Replicate()",
        "Partial() if p not in subset else Replicate()",
        "sharding",
    ),
    # What judges, keeps and tells.
    Planted("checking/accuracy.py", "if error > allowed:", "if error > 100 * allowed:", "checking accuracy"),
    Planted(
        "auditing/witness.py",
        "same |= (wide[0] - wide[1]).abs() <= allowed",
        "same |= (wide[0] - wide[1]).abs() >= 0",
        "auditing",
    ),
    Planted("toolchain/storage/limit.py", "excess <= 0 or item.used_s > latest", "excess <= 0", "toolchain cli"),
    Planted(
        "toolchain/storage/directory.py",
        "if not status.st_mode & stat.S_IWOTH and _is_private",
        "if _is_private",
        "toolchain",
    ),
    Planted(
        "deployment/wheels/faithful.py",
        "return first.dtype == second.dtype and torch",
        "return torch",
        "extensions deployment projects",
    ),
    Planted("cli/main.py", "FAILED = 3", "FAILED = 1", "cli"),
    # Which tensors of a call are one.
    Planted(
        "tracing/effects/watch.py",
        "self.asks_for_identity = True",
        "self.asks_for_identity = False",
        "operator/test_identity.py",
    ),
    Planted(
        "native/overlap.h",
        "if (stride <= reach) return true;",
        "if (stride < 0) return true;",
        "operator/test_mutation.py",
    ),
)
