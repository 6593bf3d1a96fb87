// The position of a thread among the points of a kernel, and the offsets of operands there.
#pragma once

#include "opwright/cuda/arguments.h"

namespace opwright {

OPWRIGHT_INLINE int32_t divide(int32_t n, int64_t, Divider by) {
  const uint32_t dividend = static_cast<uint32_t>(n);
  const uint32_t high = static_cast<uint32_t>((static_cast<uint64_t>(dividend) * by.factor) >> 32);
  return static_cast<int32_t>((high + dividend) >> by.shift);
}
OPWRIGHT_INLINE int64_t divide(int64_t n, int64_t divisor, Divider) { return n / divisor; }

// The `count` points that a thread takes together: neighbours along the last inner axis.
template <class Index, int outer_axes, int inner_axes>
struct Points {
  static constexpr int outer = outer_axes, inner = inner_axes;
  Index outer_index[outer > 0 ? outer : 1];
  Index inner_index[inner];
  int count;
};

// The position of the n-th pack, in row-major order.
template <int width, class Index, int axes>
OPWRIGHT_INLINE int find_pack(const Walk<axes>& walk, Index number, Index* index) {
  Index rest = number;
#pragma unroll
  for (int axis = axes - 1; axis > 0; --axis) {
    const int64_t extent = axis == axes - 1 ? walk.packs : walk.extents[axis];
    const Index quotient = divide(rest, extent, walk.dividers[axis]);
    index[axis] = rest - quotient * static_cast<Index>(extent);
    rest = quotient;
  }
  index[0] = rest;
  index[axes - 1] *= width;
  const int64_t left = walk.extents[axes - 1] - index[axes - 1];
  return left < width ? static_cast<int>(left) : width;
}

// An operand's element. Outer axes use 64 bits: their steps are few, and the same for all packs of a row. In a pack of
// `width` neighbours, which fill it where there are outer axes, the last stride is 1.
template <int width = 1, class T, int axes, class Index, int outer, int inner>
OPWRIGHT_INLINE T* element_at(const Elements<T, axes>& of, const Points<Index, outer, inner>& at) {
  static_assert(axes == outer + inner, "an operand has strides for the axes of its kernel");
  int64_t offset = 0;
#pragma unroll
  for (int axis = 0; axis < outer; ++axis) offset += static_cast<int64_t>(at.outer_index[axis]) * of.strides[axis];
  Index along = 0;
#pragma unroll
  for (int axis = 0; axis < inner; ++axis) {
    const bool is_unit = width > 1 && outer > 0 && axis == inner - 1;
    along += is_unit ? at.inner_index[axis] : at.inner_index[axis] * static_cast<Index>(of.strides[outer + axis]);
  }
  return of.data + offset + along;
}

}  // namespace opwright
