// Calls a row function for every row: a row is the innermost axis of a kernel.
//
// Axes that are contiguous in every operand are merged first, so that rows are long. A row function reads and writes
// with unit stride; a row with another stride (transposed, sliced with a step, expanded) is first packed into a small
// buffer. Where neighbours in memory belong to different rows, as with channels last, a panel of several rows is packed
// at once. Results larger than any cache go through that buffer too, and are then stored past the caches.
#pragma once

#include "opwright/operands.h"
#ifndef OPWRIGHT_APART
#include "opwright/packed_rows.h"
#include "opwright/parallel.h"
#endif

namespace opwright {

constexpr Size piece_run = 128;  // points for which the pieces of a long row function run in turn

#ifndef OPWRIGHT_APART
namespace detail {

// Calls visit(beginning of the row of each operand, elements before those meant, how many are) for all points from
// `begin` to `end`, counted in row-major order.
template <class Visit>
inline void visit_pieces(const Walk& walk, char* const* data, Size begin, Size end, Visit&& visit) {
  if (begin >= end) return;  // there may be an axis of no extent
  const int count = walk.count, outer = walk.depth - 1;
  const Size length = walk.row();
  Size offset = begin % length, rest = begin / length;
  Size index[outer + 1];
  char* first[count];
  for (int k = 0; k < count; ++k) first[k] = data[k];
  for (int axis = outer - 1; axis >= 0; --axis) {
    index[axis] = rest % walk.extents[axis];
    rest /= walk.extents[axis];
    for (int k = 0; k < count; ++k) first[k] += index[axis] * walk.steps_along(axis)[k];
  }
  while (begin < end) {
    const Size some = length - offset < end - begin ? length - offset : end - begin;
    visit(first, offset, some);
    begin += some;
    offset = 0;
    for (int axis = outer - 1; axis >= 0; --axis) {
      const Size* const steps = walk.steps_along(axis);
      for (int k = 0; k < count; ++k) first[k] += steps[k];
      if (++index[axis] < walk.extents[axis]) break;
      for (int k = 0; k < count; ++k) first[k] -= walk.extents[axis] * steps[k];
      index[axis] = 0;
    }
  }
}

// A row of an operand that is gathered by one index begins where the index points.
inline void follow_gathers(const Walk& walk, char* const* first, void** row) {
  for (int k = 0; k < walk.count; ++k)
    if (const int by = walk.operands[k].gathered_by; by >= 0)
      row[k] = static_cast<char*>(row[k]) + gathers_at(walk.operands[k], walk.operands[by], first[by], 0).offset();
}

// Calls visit(count, row of each operand) for the same points.
template <class Visit>
__attribute__((noinline)) void visit_rows(const Walk& walk, char* const* data, Size begin, Size end, Visit& visit) {
  const int count = walk.count;
  const Size* const along = walk.steps_along(walk.depth - 1);
  void* row[count];
  visit_pieces(walk, data, begin, end, [&](char* const* first, Size offset, Size some) {
    if (walk.any_packed) {
      return walk.gathers ? visit_packed<true>(walk, first, offset, some, visit)
                          : visit_packed<false>(walk, first, offset, some, visit);
    }
    for (int k = 0; k < count; ++k) row[k] = first[k] + offset * along[k];
    if (walk.gathers) follow_gathers(walk, first, row);
    visit(some, row);
  });
}

#ifdef OPWRIGHT_WALKS_APART
// Merges axes, and chooses the operands whose rows are packed.
void merge(Walk& walk);

// Calls a row function for all points from `begin` to `end`, counted in row-major order.
void call_rows(const Walk& walk, char* const* first, Size begin, Size end, RowFunction function);
#else
inline bool contiguous(const Walk& walk, int outer, int inner) {
  const Size *const from = walk.steps_along(outer), *const to = walk.steps_along(inner);
  for (int k = 0; k < walk.count; ++k)
    if (from[k] != to[k] * walk.extents[inner]) return false;
  return true;
}

inline void merge_axes(Walk& walk) {
  const int axes = walk.depth;
  int depth = 0;
  for (int axis = 0; axis < axes; ++axis) {
    if (walk.extents[axis] == 1 && axis != axes - 1) continue;
    const bool merges = depth > 0 && contiguous(walk, depth - 1, axis);
    if (!merges) ++depth;
    walk.extents[depth - 1] = merges ? walk.extents[depth - 1] * walk.extents[axis] : walk.extents[axis];
    for (int k = 0; k < walk.count; ++k) walk.steps_along(depth - 1)[k] = walk.steps_along(axis)[k];
  }
  walk.depth = depth;
}

OPWRIGHT_ONCE void merge(Walk& walk) {
  merge_axes(walk);
  const Size points = walk.points > 0 ? walk.points : walk.total();
  bool quick = false;
  for (int k = 0; k < walk.count; ++k) quick |= walk.operands[k].quick;
  const bool stores_much =
      walk.row() >= least_streamed_row && go_past_caches(points * stored_bytes(walk.operands), quick);
  if (stores_much) walk.packed_most = packed_bytes;  // pieces of fewer bytes take a third longer
  for (int k = 0; k < walk.count; ++k) {
    const Items& operand = walk.operands[k];
    const bool apart = operand.is_apart(), unit_stride = walk.row_step(k) == operand.item_bytes && !apart;
    walk.streamed[k] = stores_much && unit_stride && is_written_only(walk.operands, k);
    const bool moved = walk.row() > 1 && (walk.streamed[k] || !unit_stride);
    walk.packed[k] = operand.whole_row && (moved || apart || operand.iota || walk.gathers_vary(k));
    walk.any_packed |= walk.packed[k];
    if (walk.packed[k] && operand.item_bytes * walk.packed_most > packed_bytes)
      walk.packed_most = packed_bytes / operand.item_bytes;
  }
}

// Whole rows along one axis; `fixed` is the number of operands, or zero if the compiler does not know it.
template <int fixed>
inline void call_along(int given, char** first, const Size* steps, Size rows, Size length, RowFunction function) {
  const int count = fixed ? fixed : given;
  for (; rows > 0; --rows) {
    function(length, reinterpret_cast<void* const*>(first));
    for (int k = 0; k < count; ++k) first[k] += steps[k];
  }
}

inline void call_along(int count, char** first, const Size* steps, Size rows, Size length, RowFunction function) {
  if (count == 2) return call_along<2>(count, first, steps, rows, length, function);
  if (count == 3) return call_along<3>(count, first, steps, rows, length, function);
  call_along<0>(count, first, steps, rows, length, function);
}

// Rows of operands that are neither packed nor gathered.
inline void call_in_place(const Walk& walk, char* const* data, Size begin, Size end, RowFunction function) {
  const int count = walk.count, last = walk.depth - 2;
  const Size length = walk.row();
  const Size* const along = walk.steps_along(walk.depth - 1);
  char* first[count];
  Size index[last + 2];
  while (begin < end) {
    const Size offset = begin % length;
    Size rest = begin / length;
    for (int k = 0; k < count; ++k) first[k] = data[k] + offset * along[k];
    for (int axis = last; axis >= 0; --axis) {
      index[axis] = rest % walk.extents[axis];
      rest /= walk.extents[axis];
      for (int k = 0; k < count; ++k) first[k] += index[axis] * walk.steps_along(axis)[k];
    }
    if (offset > 0 || end - begin < length) {  // a part of a row
      const Size some = length - offset < end - begin ? length - offset : end - begin;
      function(some, reinterpret_cast<void* const*>(first));
      begin += some;
      continue;
    }
    if (last < 0) return function(length, reinterpret_cast<void* const*>(first));
    for (Size rows = (end - begin) / length; rows > 0;) {
      const Size left = walk.extents[last] - index[last], some = rows < left ? rows : left;
      call_along(count, first, walk.steps_along(last), some, length, function);
      begin += some * length;
      rows -= some;
      index[last] += some;
      for (int axis = last; axis > 0 && index[axis] == walk.extents[axis]; --axis) {
        const Size *const steps = walk.steps_along(axis), *const outer = walk.steps_along(axis - 1);
        for (int k = 0; k < count; ++k) first[k] += outer[k] - walk.extents[axis] * steps[k];
        index[axis] = 0;
        ++index[axis - 1];
      }
    }
  }
}

OPWRIGHT_ONCE void call_rows(const Walk& walk, char* const* first, Size begin, Size end, RowFunction function) {
  if (!walk.any_packed && !walk.gathers) return call_in_place(walk, first, begin, end, function);
  visit_rows(walk, first, begin, end, function);
}

// The same for all points of a walk whose axes are not merged yet, on several threads if that pays.
inline void run_rows(Walk& walk, char* const* first, Size grain, RowFunction function) {
  struct Task {
    const Walk& walk;
    char* const* first;
    RowFunction function;
    Panels panels;

    static void run(Size begin, Size end, void* context) {
      const Task& task = *static_cast<const Task*>(context);
      if (task.panels.total) {
        visit_panels(task.walk, task.first, task.panels, begin, end, task.function);
      } else {
        call_rows(task.walk, task.first, begin, end, task.function);
      }
      end_stream();
    }
  };
  merge(walk);
  const Size total = walk.total();
  Task task{walk, first, function, panels_of(walk, walk.gathers)};
  if (total > grain && task.panels.total < 2) task.panels.total = 0;  // rows can be cut, panels cannot
  const Size tasks = task.panels.total ? task.panels.total : total, of_grain = grain * tasks / total;
  run_in_parallel(tasks, of_grain > 1 ? of_grain : 1, &Task::run, &task);
}
#endif

}  // namespace detail
#endif

#ifdef OPWRIGHT_WALKS_APART
// Run a row function over all rows. Below `grain` elements, a second thread does not pay.
void for_each_row(const Operands& operands, Size grain, RowFunction function);
#else
OPWRIGHT_ONCE void for_each_row(const Operands& operands, Size grain, RowFunction function) {
  for (int axis = 0; axis < operands.axes; ++axis)
    if (operands.extents[axis] == 0) return;
  detail::Walk walk(operands, __builtin_alloca(detail::Walk::bytes(operands)));
  char* first[operands.count];
  for (int k = 0; k < operands.count; ++k) first[k] = operands[k].data;
  detail::run_rows(walk, first, grain, function);
}
#endif

template <int axes, int count, bool gathers>
inline void for_each_row(const Size (&extents)[axes], const Operand<axes, gathers> (&operands)[count], Size grain,
                         RowFunction function) {
  for_each_row(all_of(extents, operands), grain, function);
}

}  // namespace opwright
