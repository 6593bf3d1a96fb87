// Calls a row function for every row: a row is the innermost axis of a kernel.
//
// Axes that are contiguous in every operand are merged first, so that rows are long. A row function reads and writes
// with unit stride; a row with another stride (transposed, sliced with a step, expanded) is first packed into a small
// buffer. Where neighbours in memory belong to different rows, as with channels last, a panel of several rows is packed
// at once. Results larger than any cache go through that buffer too, and are then stored past the caches.
#pragma once

#include "opwright/packed_rows.h"
#include "opwright/parallel.h"

namespace opwright {

constexpr Size piece_run = 128;  // points for which the pieces of a long row function run in turn

namespace detail {

#ifdef OPWRIGHT_LEAST_STREAMED_BYTES  // by tests
constexpr Size least_streamed_bytes = OPWRIGHT_LEAST_STREAMED_BYTES;
#else
constexpr Size least_streamed_bytes = Size(32) << 20;
#endif

template <int axes, int count, bool gathers>
struct Walk {
  Size extents[axes];
  Operand<axes, gathers> operands[count];
  Size steps[axes][count];  // all strides together: collecting them from the operands takes longer than a short row
  int depth;                // axes left after merging; the last one is the row
  bool packed[count];
  bool streamed[count];
  bool any_packed;
  Size packed_most;  // elements packed at a time

  void merge() {
    depth = 0;
    for (int axis = 0; axis < axes; ++axis) {
      if (extents[axis] == 1 && axis != axes - 1) continue;
      if (depth > 0 && contiguous(depth - 1, axis)) {
        extents[depth - 1] *= extents[axis];
        for (auto& operand : operands) operand.strides[depth - 1] = operand.strides[axis];
        continue;
      }
      extents[depth] = extents[axis];
      for (auto& operand : operands) operand.strides[depth] = operand.strides[axis];
      ++depth;
    }
    for (int axis = 0; axis < depth; ++axis)
      for (int k = 0; k < count; ++k) steps[axis][k] = operands[k].strides[axis];
    any_packed = false;
    packed_most = packed_count;
    const bool stores_much = stored_bytes() >= least_streamed_bytes;
    for (int k = 0; k < count; ++k) {
      const bool apart = operands[k].is_apart();
      const bool unit_stride = operands[k].strides[depth - 1] == operands[k].item_bytes && !apart;
      streamed[k] = stores_much && operands[k].stored && unit_stride;
      const bool moved = row() > 1 && (streamed[k] || !unit_stride);
      packed[k] = operands[k].whole_row && (moved || apart || operands[k].iota || gathers_vary(k));
      any_packed |= packed[k];
      if (operands[k].item_bytes * packed_most > packed_bytes) packed_most = packed_bytes / operands[k].item_bytes;
    }
  }

  // Whether each element of a row has an index of its own.
  bool gathers_vary(int k) const {
    const int by = gathers ? operands[k].gathered_by : -1;
    return by >= 0 && row() > 1 && operands[by].strides[depth - 1] != 0;
  }

  Size stored_bytes() const {
    Size item_bytes = 0;
    for (const auto& operand : operands) item_bytes += operand.stored ? operand.item_bytes : 0;
    return total() * item_bytes;
  }

  bool contiguous(int outer, int inner) const {
    for (const auto& operand : operands)
      if (operand.strides[outer] != operand.strides[inner] * extents[inner]) return false;
    return true;
  }

  Size row() const { return extents[depth - 1]; }
  Size total() const {
    Size product = 1;
    for (int axis = 0; axis < depth; ++axis) product *= extents[axis];
    return product;
  }

  // Calls visit(count, row of each operand) for all points from `begin` to `end`, counted in row-major order.
  template <class Visit>
  void visit(char* const* data, Size begin, Size end, Visit&& visit) const {
    visit_pieces(data, begin, end,
                 [&](char* const* first, Size offset, Size some) { visit_row(first, offset, some, visit); });
  }

  // The same with visit(beginning of the row of each operand, elements before those meant, how many are).
  template <class Visit>
  void visit_pieces(char* const* data, Size begin, Size end, Visit&& visit) const {
    if (begin >= end) return;  // there may be an axis of no extent
    const Size length = row();
    Size offset = begin % length, rest = begin / length;
    Size index[axes] = {};
    char* first[count];
    for (int k = 0; k < count; ++k) first[k] = data[k];
    for (int axis = depth - 2; axis >= 0; --axis) {
      index[axis] = rest % extents[axis];
      rest /= extents[axis];
      for (int k = 0; k < count; ++k) first[k] += index[axis] * steps[axis][k];
    }
    while (begin < end) {
      const Size some = length - offset < end - begin ? length - offset : end - begin;
      visit(first, offset, some);
      begin += some;
      offset = 0;
      for (int axis = depth - 2; axis >= 0; --axis) {
        for (int k = 0; k < count; ++k) first[k] += steps[axis][k];
        if (++index[axis] < extents[axis]) break;
        for (int k = 0; k < count; ++k) first[k] -= extents[axis] * steps[axis][k];
        index[axis] = 0;
      }
    }
  }

  // As functions see it that are compiled once for a library.
  Walked walked() const {
    const Items* const first = operands;
    return {reinterpret_cast<const char*>(first), sizeof(operands[0]), count, depth, extents, steps[0], packed, streamed,
            packed_most};
  }

  template <class Visit>
  void visit_row(char* const* first, Size offset, Size some, Visit&& visit) const {
    void* row[count];
    if (!any_packed) {
      for (int k = 0; k < count; ++k) row[k] = first[k] + offset * steps[depth - 1][k];
      if constexpr (gathers) follow_gathers(first, row);
      return visit(some, row);
    }
    visit_packed<gathers>(walked(), first, offset, some, visit);
  }

  // A row of an operand that is gathered by one index begins where the index points.
  void follow_gathers(char* const* first, void** row) const {
    for (int k = 0; k < count; ++k)
      if (const int by = operands[k].gathered_by; by >= 0)
        row[k] = static_cast<char*>(row[k]) + gathers_at(operands[k], operands[by], first[by], 0).offset();
  }
};

}  // namespace detail

// Run a row function over all rows. Below `grain` elements, a second thread does not pay.
template <int axes, int count, bool gathers>
inline void for_each_row(const Size (&extents)[axes], const Operand<axes, gathers> (&operands)[count], Size grain,
                         RowFunction function) {
  struct Task {
    detail::Walk<axes, count, gathers> walk;
    char* first[count];
    RowFunction function;
    detail::Panels panels;

    static void run(Size begin, Size end, void* context) {
      const Task& task = *static_cast<const Task*>(context);
      if (detail::has_panels && task.panels.total) {
        if constexpr (detail::has_panels)
          detail::visit_panels(task.walk.walked(), task.first, task.panels, begin, end, task.function);
      } else {
        task.walk.visit(task.first, begin, end, task.function);
      }
      end_stream();
    }
  } task;
  for (int axis = 0; axis < axes; ++axis) {
    if (extents[axis] == 0) return;
    task.walk.extents[axis] = extents[axis];
  }
  for (int k = 0; k < count; ++k) {
    task.walk.operands[k] = operands[k];
    task.first[k] = operands[k].data;
  }
  task.walk.merge();
  task.function = function;
  const Size total = task.walk.total();
  task.panels = detail::panels_of(task.walk.walked(), gathers);
  if (total > grain && task.panels.total < 2) task.panels.total = 0;  // rows can be cut, panels cannot
  const Size tasks = task.panels.total ? task.panels.total : total, of_grain = grain * tasks / total;
  run_in_parallel(tasks, of_grain > 1 ? of_grain : 1, &Task::run, &task);
}

}  // namespace opwright
