// The outer axes of a kernel, from row to row: the address of each operand at a row, and at the next.
#pragma once

#include "opwright/rows.h"

namespace opwright::detail {

inline void swap(Size& a, Size& b) {
  const Size kept = a;
  a = b, b = kept;
}

inline Size at_least_one(Size value) { return value > 1 ? value : 1; }

struct OuterAxes {
  int count, axes, depth = 0;  // axes left after merging those that are contiguous in every operand
  Size *extents, *strides;     // the strides of all operands, in bytes, along the first axis, then along the next one
  char** begin;

  static Size bytes(const Operands& operands, int axes) {
    return (axes * (1 + operands.count) + operands.count) * Size(sizeof(Size));
  }

  // The first `given` axes.
  OuterAxes(const Operands& operands, int given, void* memory) : count(operands.count), axes(given) {
    Arrays arrays{static_cast<char*>(memory)};
    extents = arrays.take<Size>(axes), strides = arrays.take<Size>(axes * count), begin = arrays.take<char*>(count);
    for (int k = 0; k < count; ++k) begin[k] = operands[k].data;
    for (int axis = 0; axis < axes; ++axis) {
      if (operands.extents[axis] == 1) continue;
      bool contiguous = depth > 0;
      for (int k = 0; k < count && contiguous; ++k)
        contiguous = along(depth - 1)[k] == operands.strides(k)[axis] * operands.extents[axis];
      if (!contiguous) extents[depth++] = 1;
      extents[depth - 1] *= operands.extents[axis];
      for (int k = 0; k < count; ++k) along(depth - 1)[k] = operands.strides(k)[axis];
    }
  }

  Size* along(int axis) const { return strides + axis * count; }

  Size total() const {
    Size product = 1;
    for (int axis = 0; axis < depth; ++axis) product *= extents[axis];
    return product;
  }

  // Runs along an axis first, and along the last one in its place.
  void innermost(int axis) {
    swap(extents[axis], extents[depth - 1]);
    for (int k = 0; k < count; ++k) swap(along(axis)[k], along(depth - 1)[k]);
  }

  // Takes some neighbours along the last axis as one row.
  void in_panels(Size panels, Size neighbours) {
    extents[depth - 1] = panels;
    for (int k = 0; k < count; ++k) along(depth - 1)[k] *= neighbours;
  }

  // Calls visit(row, address of each operand) for the rows from `from` to `to`.
  template <class Visit>
  void run(Size from, Size to, Visit&& visit) const {
    if (from >= to) return;  // there may be an axis of no extent
    Size index[depth + 1];
    char* first[count];
    for (int k = 0; k < count; ++k) first[k] = begin[k];
    Size rest = from;
    for (int axis = depth - 1; axis >= 0; --axis) {
      index[axis] = rest % extents[axis];
      rest /= extents[axis];
      for (int k = 0; k < count; ++k) first[k] += index[axis] * along(axis)[k];
    }
    for (Size row = from; row < to; ++row) {
      visit(row, first);
      for (int axis = depth - 1; axis >= 0; --axis) {
        const Size* const steps = along(axis);
        for (int k = 0; k < count; ++k) first[k] += steps[k];
        if (++index[axis] < extents[axis]) break;
        for (int k = 0; k < count; ++k) first[k] -= extents[axis] * steps[k];
        index[axis] = 0;
      }
    }
  }
};

// Runs task(from, to) over [0, total), on several threads if there is more than one grain of work.
template <class Task>
inline void in_parallel(Size total, Size grain, const Task& task) {
  if (total <= grain) return task(Size(0), total);
  const auto range = [](Size from, Size to, void* context) { (*static_cast<const Task*>(context))(from, to); };
  run_in_parallel(total, grain, range, const_cast<Task*>(&task));
}

}  // namespace opwright::detail
