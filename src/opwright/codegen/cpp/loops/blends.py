"""Choices whose condition is the same for a whole row, as blends by a mask: else GCC would not vectorise their loop."""

from __future__ import annotations

from dataclasses import replace

from opwright.codegen.cpp.loops.prepared import Preparing
from opwright.ir.expressions.dtype import DType
from opwright.ir.expressions.expression import Apply, Expression, Literal, Local, rewrite_children
from opwright.ir.program import Binding, Kernel, Let

MASK, BLEND, CHOOSE = "mask_of", "blend", "choose"
_BLENDED = {DType.FLOAT32, DType.FLOAT64, DType.INT32, DType.INT64}


def with_blends(kernel: Kernel) -> Kernel:
    """Replace choices that are made once for a row; a kernel without rows has those of its last axis.

    Before: where(valid, x, 0)                           `valid` is the same for the row
    After:  blend(valid_mask, x, 0)                      valid_mask = mask_of(valid)
    """
    seen = kernel if kernel.row_axes else replace(kernel, row_axes=min(1, len(kernel.axes)))
    return _Blends(seen).applied(kernel)


def with_choices(kernel: Kernel) -> Kernel:
    """Make all choices of a kernel by bits.

    Before: where(x > 0, y, 0)
    After:  choose(x > 0, y, 0)
    """

    def rewritten(value: Expression) -> Expression:
        value = rewrite_children(value, rewritten)
        match value:
            case Apply("where", operands, dtype):
                return Apply(CHOOSE, operands, dtype)
        return value

    lets = tuple(
        replace(binding, value=rewritten(binding.value)) if isinstance(binding, Let) else binding
        for binding in kernel.lets
    )
    return replace(kernel, lets=lets, stores=tuple(replace(s, value=rewritten(s.value)) for s in kernel.stores))


def is_mask(binding: Binding) -> bool:
    """Whether a value is the mask of a blend."""
    return isinstance(binding, Let) and isinstance(binding.value, Apply) and binding.value.function == MASK


class _Blends(Preparing):
    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._conditions = {let.name: let.value for let in kernel.lets if isinstance(let, Let)}
        self._known: set[str] = set()

    def rewritten(self, value: Expression) -> Expression:
        """A value with blends in place of choices."""
        value = rewrite_children(value, self.rewritten)
        match value:
            case Apply("where" | "choose" as how, (condition, a, b), dtype) if dtype in _BLENDED and self.varies(a, b):
                return self._chosen(how, condition, a, b, dtype)
            case _:
                return value

    def _chosen(self, how: str, condition: Expression, a: Expression, b: Expression, dtype: DType) -> Expression:
        if not self.varies(condition):
            mask = self._mask_of(condition)
            return Apply(BLEND, (mask, a, b), dtype) if mask else Apply(how, (condition, a, b), dtype)
        match self._conditions.get(condition.name, condition) if isinstance(condition, Local) else condition:
            case Apply("logical_and", (p, q)) if isinstance(b, Local | Literal) and self.varies(p) != self.varies(q):
                uniform, varying = (q, p) if self.varies(p) else (p, q)
                return self._chosen(how, uniform, Apply(how, (varying, a, b), dtype), b, dtype)
        return Apply(how, (condition, a, b), dtype)

    def _mask_of(self, condition: Expression) -> Local | None:
        """A mask with a name of its own; conditions without a name are left to the compiler."""
        if not isinstance(condition, Local):
            return None
        name = f"{condition.name}_mask"
        if name not in self._known:
            self._known.add(name)
            self.prepare(Let(name, Apply(MASK, (condition,), DType.INT32)))
        return Local(name, DType.INT32)
