// Calls a row function for every row: a row is the innermost axis of a kernel.
//
// Axes that are contiguous in every operand are merged first, so that rows are long. A row function reads and writes
// with unit stride; a row with another stride (transposed, sliced with a step, expanded) is first packed into a small
// buffer. Where neighbours in memory belong to different rows, as with channels last, a panel of several rows is packed
// at once. Results larger than any cache go through that buffer too, and are then stored past the caches.
#pragma once

#include "opwright/operands.h"
#include "opwright/parallel.h"
#include "opwright/stream.h"

namespace opwright {

using RowFunction = void (*)(Size count, void* const* row);

constexpr Size piece_run = 128;  // points for which the pieces of a long row function run in turn

namespace detail {

constexpr Size packed_count = 256;
constexpr Size packed_bytes = packed_count * 8;  // half as many elements where items are larger
#ifdef OPWRIGHT_LEAST_STREAMED_BYTES             // by tests
constexpr Size least_streamed_bytes = OPWRIGHT_LEAST_STREAMED_BYTES;
#else
constexpr Size least_streamed_bytes = Size(32) << 20;
#endif
constexpr Size panel_lanes = 32, panel_columns = 256;  // at most

// An array that is freed with its scope; its members are made by their default constructor.
template <class T>
struct Array {
  T* data;
  explicit Array(Size count) : data(count > 0 ? new T[count] : nullptr) {}
  ~Array() { delete[] data; }
  Array(const Array&) = delete;
  T& operator[](Size position) const { return data[position]; }
};

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

  // Whether rows that are so many bytes apart are better packed together.
  bool in_panels(const Size* apart, Size lanes) const {
    if constexpr (!has_panels) return false;
    bool any = false;
    for (int k = 0; k < count; ++k) any |= packed[k] && lies_across(operands[k], apart[k], steps[depth - 1][k]);
    return any && !gathers && lanes >= 4 && row() >= 4;
  }

  // As many rows as one line of memory has items of.
  Size lanes_of_panel() const {
    Size item_bytes = 4;
    for (int k = 0; k < count; ++k)
      if (packed[k] && operands[k].item_bytes < item_bytes) item_bytes = operands[k].item_bytes;
    return item_bytes == 4 ? panel_lanes / 2 : panel_lanes;
  }

  Size panel_bytes() const {
    Size bytes = 0;
    for (int k = 0; k < count; ++k) bytes += packed[k] ? panel_lanes * panel_columns * operands[k].item_bytes : 0;
    return bytes;
  }

  // Calls visit(lane, count, row of each operand) for the same part of some rows.
  template <class Visit>
  void visit_panel(char* const* first, const Size* apart, Size lanes, Size offset, Size some, char* buffers,
                   Visit&& visit) const {
    for (Size done = 0; done < some; done += panel_columns) {
      const Size piece = some - done < panel_columns ? some - done : panel_columns;
      char *at[count], *buffer = buffers;
      Size between[count];
      for (int k = 0; k < count; ++k) {
        char* const element = first[k] + (offset + done) * steps[depth - 1][k];
        at[k] = packed[k] ? buffer : element;
        between[k] = packed[k] ? panel_columns * operands[k].item_bytes : apart[k];
        if (!packed[k]) continue;
        if (!operands[k].stored)
          fetch_rows(operands[k], element, apart[k], lanes, steps[depth - 1][k], piece, buffer, between[k]);
        buffer += panel_lanes * between[k];
      }
      for (Size lane = 0; lane < lanes; ++lane) {
        void* row[count];
        for (int k = 0; k < count; ++k) row[k] = at[k] + lane * between[k];
        visit(lane, piece, row);
      }
      for (int k = 0; k < count; ++k) {
        if (!packed[k] || !operands[k].stored) continue;
        char* const element = first[k] + (offset + done) * steps[depth - 1][k];
        if (streamed[k]) {
          for (Size lane = 0; lane < lanes; ++lane)
            stream(at[k] + lane * between[k], piece * operands[k].item_bytes, element + lane * apart[k]);
        } else {
          put_back_rows(operands[k], at[k], between[k], lanes, steps[depth - 1][k], piece, element, apart[k]);
        }
      }
    }
  }

  // Panels of the last two axes, with pieces of rows: neighbours in memory follow one another.
  struct Panels {
    Size lanes, across, along, total;
  };
  Panels panels() const {
    if (!has_panels || depth < 2 || !in_panels(steps[depth - 2], extents[depth - 2])) return {0, 0, 0, 0};
    const Size lanes = lanes_of_panel(), across = (extents[depth - 2] + lanes - 1) / lanes;
    const Size along = (row() + panel_columns - 1) / panel_columns;
    Size total = across * along;
    for (int axis = 0; axis < depth - 2; ++axis) total *= extents[axis];
    return {lanes, across, along, total};
  }

  void visit_panels(char* const* data, const Panels& panels, Size begin, Size end, RowFunction function) const {
    Array<char> buffers(panel_bytes());
    for (; begin < end; ++begin) {
      const Size lane = begin % panels.across * panels.lanes,
                 offset = begin / panels.across % panels.along * panel_columns;
      Size rest = begin / panels.across / panels.along;
      char* first[count];
      for (int k = 0; k < count; ++k) first[k] = data[k] + lane * steps[depth - 2][k];
      for (int axis = depth - 3; axis >= 0; --axis) {
        for (int k = 0; k < count; ++k) first[k] += rest % extents[axis] * steps[axis][k];
        rest /= extents[axis];
      }
      const Size lanes = extents[depth - 2] - lane, some = row() - offset;
      visit_panel(first, steps[depth - 2], lanes < panels.lanes ? lanes : panels.lanes, offset,
                  some < panel_columns ? some : panel_columns, buffers.data,
                  [&](Size, Size piece, void* const* row) { function(piece, row); });
    }
  }

  template <class Visit>
  void visit_row(char* const* first, Size offset, Size some, Visit&& visit) const {
    void* row[count];
    if (!any_packed) {
      for (int k = 0; k < count; ++k) row[k] = first[k] + offset * steps[depth - 1][k];
      if constexpr (gathers) follow_gathers(first, row);
      return visit(some, row);
    }
    visit_packed(first, offset, some, visit);
  }

  // A row of an operand that is gathered by one index begins where the index points.
  void follow_gathers(char* const* first, void** row) const {
    for (int k = 0; k < count; ++k)
      if (const int by = operands[k].gathered_by; by >= 0)
        row[k] = static_cast<char*>(row[k]) + gathers_at(operands, k, first[by], 0).offset();
  }

  // The same for a piece of a row; returns whether elements with indices of their own were gathered into the buffer.
  bool follow_gathers(char* const* first, int k, Size offset, Size piece, char*& element, char* buffer) const {
    const int by = operands[k].gathered_by;
    if (by < 0) return false;
    const Size apart = steps[depth - 1][by];
    const Gathers found = gathers_at(operands, k, first[by] + offset * apart, apart);
    if (!gathers_vary(k)) {
      element += found.offset();
      return false;
    }
    gather_rows(operands[k].item_bytes, element, steps[depth - 1][k], found, piece, buffer);
    return true;
  }

  template <class Visit>
  __attribute__((noinline)) void visit_packed(char* const* first, Size offset, Size some, Visit&& visit) const {
    alignas(64) char buffers[count][packed_bytes];
    void* row[count];
    for (Size done = 0; done < some; done += packed_most) {
      const Size piece = some - done < packed_most ? some - done : packed_most;
      for (int k = 0; k < count; ++k) {
        const Operand<axes, gathers>& operand = operands[k];
        const Size stride = operand.strides[depth - 1];
        char* element = first[k] + (offset + done) * stride;
        bool collected = false;
        if constexpr (gathers) collected = follow_gathers(first, k, offset + done, piece, element, buffers[k]);
        row[k] = packed[k] ? buffers[k] : element;
        const bool is_there = done > 0 && stride == 0 && !gathers;  // one value repeated, from the piece before
        if (packed[k] && !operand.stored && !collected && !is_there) fetch(operand, element, stride, piece, buffers[k]);
      }
      visit(piece, row);
      for (int k = 0; k < count; ++k) {
        const Operand<axes, gathers>& operand = operands[k];
        if (!packed[k] || !operand.stored) continue;
        const Size stride = operand.strides[depth - 1];
        char* element = first[k] + (offset + done) * stride;
        if (streamed[k]) {
          stream(buffers[k], piece * stride, element);
        } else {
          put_back(operand, buffers[k], stride, piece, element);
        }
      }
    }
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
    typename detail::Walk<axes, count, gathers>::Panels panels;

    static void run(Size begin, Size end, void* context) {
      const Task& task = *static_cast<const Task*>(context);
      if (detail::has_panels && task.panels.total) {
        if constexpr (detail::has_panels) task.walk.visit_panels(task.first, task.panels, begin, end, task.function);
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
  task.panels = task.walk.panels();
  if (total > grain && task.panels.total < 2) task.panels.total = 0;  // rows can be cut, panels cannot
  const Size tasks = task.panels.total ? task.panels.total : total, of_grain = grain * tasks / total;
  run_in_parallel(tasks, of_grain > 1 ? of_grain : 1, &Task::run, &task);
}

}  // namespace opwright
