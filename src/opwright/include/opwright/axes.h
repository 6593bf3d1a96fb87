// The outer axes of a kernel, from row to row: the address of each operand at a row, and at the next.
#pragma once

#include "opwright/rows.h"

namespace opwright {
namespace detail {

template <int axes, int count>
struct OuterAxes {
  Size extents[axes] = {};
  Size strides[axes][count] = {};  // in bytes
  char* begin[count] = {};
  int depth = 0;  // axes left after merging those that are contiguous in every operand

  template <int all, bool gathers>
  void take(const Size (&given)[all], const Operand<all, gathers> (&operands)[count]) {
    for (int k = 0; k < count; ++k) begin[k] = operands[k].data;
    for (int axis = 0; axis < axes; ++axis) {
      if (given[axis] == 1) continue;
      bool contiguous = depth > 0;
      for (int k = 0; k < count && contiguous; ++k)
        contiguous = strides[depth - 1][k] == operands[k].strides[axis] * given[axis];
      if (!contiguous) extents[depth++] = 1;
      extents[depth - 1] *= given[axis];
      for (int k = 0; k < count; ++k) strides[depth - 1][k] = operands[k].strides[axis];
    }
  }

  Size total() const {
    Size product = 1;
    for (int axis = 0; axis < depth; ++axis) product *= extents[axis];
    return product;
  }

  // Calls visit(row, address of each operand) for the rows from `from` to `to`.
  template <class Visit>
  void run(Size from, Size to, Visit&& visit) const {
    if (from >= to) return;  // there may be an axis of no extent
    Size index[axes] = {};
    char* first[count];
    for (int k = 0; k < count; ++k) first[k] = begin[k];
    Size rest = from;
    for (int axis = depth - 1; axis >= 0; --axis) {
      index[axis] = rest % extents[axis];
      rest /= extents[axis];
      for (int k = 0; k < count; ++k) first[k] += index[axis] * strides[axis][k];
    }
    for (Size row = from; row < to; ++row) {
      visit(row, first);
      for (int axis = depth - 1; axis >= 0; --axis) {
        for (int k = 0; k < count; ++k) first[k] += strides[axis][k];
        if (++index[axis] < extents[axis]) break;
        for (int k = 0; k < count; ++k) first[k] -= extents[axis] * strides[axis][k];
        index[axis] = 0;
      }
    }
  }
};

// An operand restricted to the last axes.
template <int inner, int all, bool gathers>
inline Operand<inner, gathers> along_row(const Operand<all, gathers>& operand) {
  Operand<inner, gathers> part{static_cast<const Items&>(operand), {}};
  for (int axis = 0; axis < inner; ++axis) part.strides[axis] = operand.strides[all - inner + axis];
  return part;
}

// Runs task(context, from, to) over [0, total), on several threads if there is more than one grain of work.
template <class Task>
inline void in_parallel(Size total, Size grain, const Task& task) {
  if (total <= grain) return task(Size(0), total);
  const auto range = [](Size from, Size to, void* context) { (*static_cast<const Task*>(context))(from, to); };
  run_in_parallel(total, grain, range, const_cast<Task*>(&task));
}

inline Size at_least_one(Size value) { return value > 1 ? value : 1; }
}  // namespace detail

inline Size least(Size a, Size b) { return a < b ? a : b; }

}  // namespace opwright
