// Calls a row function with several passes for whole rows: softmax, normalisation.
//
// A row function reads and writes with unit stride; a row with another stride is first packed into a buffer of its
// thread. A scratch operand is such a buffer too, for values that a later pass needs again. Results larger than any
// cache are written to a buffer of some elements, and go past the caches from there (stream.h).
#pragma once

#include "opwright/stream.h"
#include "opwright/sums.h"
#ifndef OPWRIGHT_APART
#include "opwright/axes.h"
#endif

namespace opwright {

// A scratch row, which passes over a row share.
template <int axes, class T>
inline Operand<axes> scratch() {
  return Operand<axes>{{nullptr, sizeof(T), true, false, false}, {}};
}

// The buffer through which the results of an operand go past the caches, of `sum_run` elements, or null if they do not.
// Elements go there run by run: what a processor has yet to write waits beside it while it computes the next run, but
// not as much as a row.
template <int axes, class T>
inline Operand<axes> past(int results) {
  Operand<axes> operand{{nullptr, sizeof(T), false, false, false}, {}};
  operand.past_of = results;
  return operand;
}

// Write a run of results where they belong, if they are in such a buffer.
template <class T>
inline void go_past(const T* buffer, T* place, Size count) {
  if (buffer) stream(reinterpret_cast<const char*>(buffer), count * sizeof(T), reinterpret_cast<char*>(place));
}

// The truth values of a row as integers that are as large as the numbers that they are used with. With bytes in a loop,
// GCC takes as many numbers at once as a vector has bytes, and those that are left one by one.
inline void widen(const uint8_t* truths, Size count, int32_t* wide) {
  constexpr Size some = 16;
  const auto widen_some = [&](Size first) {
#if defined(__AVX512F__) && !defined(__clang__)  // GCC 12 stores quarters of a vector, and reading it whole then waits.
    typedef char Bytes __attribute__((vector_size(16)));
    typedef int32_t Integers __attribute__((vector_size(64)));
    Bytes given;
    __builtin_memcpy(&given, truths + first, sizeof(given));
    const Integers widened = __builtin_ia32_pmovzxbd512_mask(given, Integers{}, static_cast<uint16_t>(-1));
    __builtin_memcpy(wide + first, &widened, sizeof(widened));
#else
    for (Size j = 0; j < some; ++j) wide[first + j] = truths[first + j];
#endif
  };
  if (count < some) {
    for (Size j = 0; j < count; ++j) wide[j] = truths[j];
    return;
  }
  widen_some(count - some);  // The others overlap it: what is read at once afterwards was written at once.
  for (Size first = 0; first + some <= count; first += some) widen_some(first);
}

#ifdef OPWRIGHT_APART
// Run a row function over all rows, which are the last `inner` axes.
void for_each_whole_row(const Operands& operands, int inner, Size grain, RowFunction function);
#else
namespace detail {

constexpr Size panels_bytes = Size(1) << 19;  // of the rows that are packed at once: what stays in cache

// Rows beside one another, so many bytes apart in memory, and in a buffer.
struct SomeRows {
  Size count, apart, packed_apart;
};

// Copy some rows of an operand, with `inner` axes, from memory into a buffer, or back.
inline void copy_rows(const Items& operand, int inner, const Size* strides, const Size* extents, Size length,
                      char* element, char* buffer, bool into_buffer, SomeRows some) {
  const Size stride = strides[inner - 1];
  // Inner axes that are one axis of this operand, such as those along which it is one value repeated, are one run.
  Size run = extents[inner - 1];
  int last = inner - 2;
  for (; last >= 0 && (extents[last] == 1 || strides[last] == run * stride); --last) run *= extents[last];
  // Neighbours in memory may belong to different runs, as with channels last.
  Size together = 1;
  if (some.count == 1 && last >= 0 && lies_across(operand, strides[last], stride)) {
    together = extents[last--];
    some = {together, operand.item_bytes, run * operand.item_bytes};
  }
  Size index[inner];
  for (int axis = 0; axis <= last; ++axis) index[axis] = 0;
  for (Size done = 0; done < length; done += together * run) {
    char* const packed_run = buffer + done * operand.item_bytes;
    if (into_buffer) {
      fetch_rows(operand, element, some.apart, some.count, stride, run, packed_run, some.packed_apart);
    } else {
      put_back_rows(operand, packed_run, some.packed_apart, some.count, stride, run, element, some.apart);
    }
    for (int axis = last; axis >= 0; --axis) {
      element += strides[axis];
      if (++index[axis] < extents[axis]) break;
      element -= extents[axis] * strides[axis];
      index[axis] = 0;
    }
  }
}

// The buffers of a thread, one after another, and which row each of them holds.
struct RowBuffers {
  const Lines memory;
  const Array<const char*> packed_from;
  char* const data;

  RowBuffers(Size bytes, int operands) : memory(bytes), packed_from(operands), data(memory.data) {
    for (int k = 0; k < operands; ++k) packed_from[k] = nullptr;
  }
};

// Rows of operands, in buffers if they are not contiguous.
struct WholeRows {
  Operands operands;  // along the rows
  int count;
  Size length = 1;
  Size* offsets;  // of each operand's buffer, in bytes
  bool *packed, *buffered;  // rows that are packed; and whether there is a buffer
  bool any_past = false;

  static Size bytes(const Operands& operands) {
    return (operands.count + 1) * Size(sizeof(Size)) + 2 * operands.count;
  }

  // Rows are the last `inner` axes; the kernel has so many points in all.
  WholeRows(const Operands& given, int inner, Size points, void* memory)
      : operands(given.along(inner)), count(given.count) {
    Arrays arrays{static_cast<char*>(memory)};
    offsets = arrays.take<Size>(count + 1), packed = arrays.take<bool>(count), buffered = arrays.take<bool>(count);
    for (int axis = 0; axis < inner; ++axis) length *= operands.extents[axis];
    const bool stores_much = go_past_caches(points * stored_bytes(operands), true);
    offsets[0] = 0;
    for (int k = 0; k < count; ++k) {
      const int results = operands[k].past_of;
      packed[k] = operands[k].whole_row && !is_in_place(k);
      const bool past = stores_much && results >= 0 && is_in_place(results) && is_written_only(operands, results);
      buffered[k] = packed[k] || past;
      any_past |= past;
      const Size bytes = (packed[k] ? length : past ? sum_run : 0) * operands[k].item_bytes;
      offsets[k + 1] = offsets[k] + (bytes + 63) / 64 * 64;
    }
  }

  bool is_in_place(int k) const { return operands[k].data && has_unit_stride(k) && !gathers_vary(k); }

  // Whether each element of a row has an index of its own.
  bool gathers_vary(int k) const {
    const int by = operands.gathers ? operands[k].gathered_by : -1;
    for (int axis = 0; by >= 0 && axis < operands.axes; ++axis)
      if (operands.extents[axis] > 1 && operands.strides(by)[axis] != 0) return true;
    return false;
  }

  bool has_unit_stride(int k) const {
    const Items& operand = operands[k];
    if (operand.iota || operand.is_apart()) return false;
    Size expected = operand.item_bytes;
    for (int axis = operands.axes - 1; axis >= 0; --axis) {
      if (operands.extents[axis] != 1 && operands.strides(k)[axis] != expected) return false;
      expected *= operands.extents[axis];
    }
    return true;
  }

  // From element to element along the last axis.
  Size step(int k) const { return operands.strides(k)[operands.axes - 1]; }

  Size buffer_bytes() const { return offsets[count]; }

  // For so many rows at once.
  RowBuffers buffers(Size lanes = 1) const { return {buffer_bytes() * lanes, buffer_bytes() > 0 ? count : 0}; }

  void run(char* const* first, const RowBuffers& buffers, RowFunction function) const {
    if (!operands.gathers && buffer_bytes() == 0) return function(length, reinterpret_cast<void* const*>(first));
    run_packed(first, buffers, function);
  }

  // A row that several rows of the kernel read, one after another, is packed for the first of them: kernels never write
  // what they read.
  __attribute__((noinline)) void run_packed(char* const* first, const RowBuffers& buffers, RowFunction function) const {
    void* row[count];
    for (int k = 0; k < count; ++k) {
      row[k] = first[k];
      if (!buffered[k] && !operands.gathers) continue;
      const Items& operand = operands[k];
      char *element = first[k], *const buffer = buffers.data + offsets[k];
      const bool collected = operands.gathers && follow_gathers(first, k, element, buffer);
      row[k] = buffered[k] ? buffer : element;
      if (!packed[k] || !operand.data || operand.stored || collected || buffers.packed_from[k] == element) continue;
      copy(k, element, buffer, true);
      buffers.packed_from[k] = element;
    }
    function(length, row);
    for (int k = 0; k < count; ++k)
      if (packed[k] && operands[k].stored) copy(k, first[k], buffers.data + offsets[k], false);
  }

  // A row that is gathered by one index begins where the index points; returns whether elements with indices of their
  // own were gathered into the buffer.
  bool follow_gathers(char* const* first, int k, char*& element, char* buffer) const {
    const int by = operands[k].gathered_by;
    if (by < 0) return false;
    if (!gathers_vary(k)) {
      element += gathers_at(operands[k], operands[by], first[by], 0).offset();
      return false;
    }
    collect(k, element, first[by], buffer);
    return true;
  }

  void collect(int k, const char* element, const char* index_place, char* buffer) const {
    const Items& operand = operands[k];
    const int inner = operands.axes;
    const Size* const extents = operands.extents;
    const Size *const strides = operands.strides(k), *const by = operands.strides(operand.gathered_by);
    const Size run = extents[inner - 1];
    Size index[inner];
    for (int axis = 0; axis < inner; ++axis) index[axis] = 0;
    for (Size done = 0; done < length; done += run) {
      gather_rows(operand, element, strides[inner - 1],
                  gathers_at(operand, operands[operand.gathered_by], index_place, by[inner - 1]), run,
                  buffer + done * operand.item_bytes);
      for (int axis = inner - 2; axis >= 0; --axis) {
        element += strides[axis], index_place += by[axis];
        if (++index[axis] < extents[axis]) break;
        element -= extents[axis] * strides[axis], index_place -= extents[axis] * by[axis];
        index[axis] = 0;
      }
    }
  }

  // Several rows at once, `apart` bytes from one another.
  void run_panel(char* const* first, const Size* apart, Size lanes, Size most_lanes, char* buffer,
                 RowFunction function) const {
    char* at[count];
    Size between[count];
    for (int k = 0; k < count; ++k) {
      at[k] = packed[k] ? buffer + most_lanes * offsets[k] : first[k];
      between[k] = packed[k] ? offsets[k + 1] - offsets[k] : apart[k];
      if (packed[k] && operands[k].data && !operands[k].stored)
        copy(k, first[k], at[k], true, lanes, apart[k], between[k]);
    }
    void* row[count];
    for (Size lane = 0; lane < lanes; ++lane) {
      for (int k = 0; k < count; ++k) row[k] = at[k] + lane * between[k];
      function(length, row);
    }
    for (int k = 0; k < count; ++k)
      if (packed[k] && operands[k].stored) copy(k, first[k], at[k], false, lanes, apart[k], between[k]);
  }

  // An outer axis along which packed rows stay the same, though they differ along the last one; -1 if there is none.
  int axis_of_same(const OuterAxes& rows) const {
    int found = -1;
    for (int k = 0; k < count; ++k) {
      if (!packed[k] || !operands[k].data || operands[k].stored || operands.gathers) continue;
      if (rows.depth < 2 || rows.along(rows.depth - 1)[k] == 0) continue;
      int axis = rows.depth - 2;
      while (axis >= 0 && rows.along(axis)[k] != 0) --axis;
      if (axis < 0 || (found >= 0 && found != axis)) return -1;
      found = axis;
    }
    return found;
  }

  // How many rows are packed at once: several where their elements are neighbours across them, one elsewhere.
  Size lanes(const Size* apart, Size neighbours) const {
    bool any = false;
    for (int k = 0; k < count; ++k)
      any |= packed[k] && operands[k].data && lies_across(operands[k], apart[k], step(k));
    const Size fitting = least(panel_lanes, panels_bytes / at_least_one(buffer_bytes()));
    return any && !operands.gathers && fitting >= 4 && neighbours >= 4 ? fitting : 1;
  }

  // One row, or some of them, from memory into the buffer, or back.
  void copy(int k, char* element, char* buffer, bool into_buffer, Size lanes = 1, Size apart = 0,
            Size packed_apart = 0) const {
    copy_rows(operands[k], operands.axes, operands.strides(k), operands.extents, length, element, buffer, into_buffer,
              {lanes, apart, packed_apart});
  }
};

}  // namespace detail

OPWRIGHT_ONCE void for_each_whole_row(const Operands& operands, int inner, Size grain, RowFunction function) {
  using namespace detail;
  const int outer = operands.axes - inner;
  OuterAxes rows(operands, outer, __builtin_alloca(OuterAxes::bytes(operands, outer)));
  Size points = 1;
  for (int axis = 0; axis < operands.axes; ++axis) points *= operands.extents[axis];
  const WholeRows whole(operands, inner, points, __builtin_alloca(WholeRows::bytes(operands)));
  Size apart[operands.count], neighbours = 1;
  for (int k = 0; k < operands.count; ++k) apart[k] = rows.depth > 0 ? rows.along(rows.depth - 1)[k] : 0;
  if (rows.depth > 0) neighbours = rows.extents[rows.depth - 1];
  const Size lanes = whole.lanes(apart, neighbours), panels = at_least_one((neighbours + lanes - 1) / lanes);
  const int same = lanes == 1 ? whole.axis_of_same(rows) : -1;
  if (same >= 0) rows.innermost(same);
  if (lanes > 1) rows.in_panels(panels, lanes);
  in_parallel(rows.total(), at_least_one(grain / at_least_one(whole.length * lanes)), [&](Size from, Size to) {
    const RowBuffers buffers = whole.buffers(lanes);
    rows.run(from, to, [&](Size panel, char* const* first) {
      if (lanes == 1) return whole.run(first, buffers, function);
      const Size left = neighbours - panel % panels * lanes;
      whole.run_panel(first, apart, least(lanes, left), lanes, buffers.data, function);
    });
    if (whole.any_past) end_stream();
  });
}
#endif

template <int axes, int count, bool gathers>
inline void for_each_whole_row(const Size (&extents)[axes], const Operand<axes, gathers> (&operands)[count], int inner,
                               Size grain, RowFunction function) {
  for_each_whole_row(all_of(extents, operands), inner, grain, function);
}

}  // namespace opwright
