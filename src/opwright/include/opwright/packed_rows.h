// Rows that are packed into a buffer before a row function gets them, and unpacked afterwards.
//
#pragma once

#include "opwright/moves.h"
#include "opwright/parallel.h"
#include "opwright/stream.h"

namespace opwright {

namespace detail {

constexpr Size packed_count = 256;
constexpr Size packed_bytes = packed_count * 8;         // half as many elements where items are larger
constexpr Size panel_lanes = 32, panel_columns = 256;  // at most

#ifdef OPWRIGHT_LEAST_STREAMED_BYTES  // by tests
constexpr Size least_streamed_bytes = OPWRIGHT_LEAST_STREAMED_BYTES, always_streamed_bytes = least_streamed_bytes;
constexpr Size least_streamed_row = 1;
#else
constexpr Size least_streamed_bytes = Size(8) << 20, always_streamed_bytes = Size(32) << 20;
constexpr Size least_streamed_row = 256;  // elements; shorter rows go where they belong at once
#endif

// Whether results of so many bytes go past the caches: all of them are larger than a cache that threads share; or those
// of each thread than its own caches, if they are computed in less time than memory takes to store them.
inline bool go_past_caches(Size bytes, bool quick) {
  if (!can_stream || bytes < least_streamed_bytes) return false;
  return bytes >= always_streamed_bytes || (quick && bytes >= least_streamed_bytes * sharing_threads());
}

// Whether an operand is a result that is written where nothing was read.
inline bool is_written_only(const Operands& operands, int k) {
  for (int other = 0; other < operands.count; ++other)
    if (!operands[other].stored && operands[other].data == operands[k].data) return false;
  return operands[k].stored;
}

// The bytes that results take at each point of a kernel.
inline Size stored_bytes(const Operands& operands) {
  Size bytes = 0;
  for (int k = 0; k < operands.count; ++k)
    bytes += operands[k].stored && operands[k].whole_row ? operands[k].item_bytes : 0;
  return bytes;
}

// An array that is freed with its scope; its members are made by their default constructor.
template <class T>
struct Array {
  T* data;
  explicit Array(Size count) : data(count > 0 ? new T[count] : nullptr) {}
  ~Array() { delete[] data; }
  Array(const Array&) = delete;
  T& operator[](Size position) const { return data[position]; }
};

inline char* next_line(char* memory) {
  return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(memory) + 63) / 64 * 64);
}

// Memory that begins with a line of the caches, freed with its scope. A vector as long as a line takes twice as long to
// read or write where it lies in two of them.
struct Lines {
  const Array<char> memory;
  char* const data;
  explicit Lines(Size bytes) : memory(bytes > 0 ? bytes + 63 : 0), data(next_line(memory.data)) {}
};

// Arrays of a function that knows their lengths only when it runs, one after another in memory of its own.
struct Arrays {
  char* rest;

  template <class T>
  T* take(Size count) {
    T* const array = reinterpret_cast<T*>(rest);
    rest += count * sizeof(T);
    return array;
  }
};

// A walk over the rows of some operands (rows.h).
struct Walk {
  Operands operands;
  int count, depth;  // operands, axes; the last axis is the row
  bool gathers, any_packed = false;
  Size packed_most = packed_count;  // elements packed at a time
  Size points = 0;                  // of the whole kernel, where these are a part of them
  Size *extents, *steps;            // the steps of all operands along the first axis, then along the next one
  bool *packed, *streamed;

  static Size bytes(const Operands& operands) {
    return operands.axes * (1 + operands.count) * Size(sizeof(Size)) + 2 * operands.count;
  }

  Walk(const Operands& given, void* memory)
      : operands(given), count(given.count), depth(given.axes), gathers(given.gathers) {
    Arrays arrays{static_cast<char*>(memory)};
    extents = arrays.take<Size>(depth), steps = arrays.take<Size>(depth * count);
    packed = arrays.take<bool>(count), streamed = arrays.take<bool>(count);
    for (int axis = 0; axis < depth; ++axis) extents[axis] = given.extents[axis];
    for (int k = 0; k < count; ++k) {
      const Size* const strides = given.strides(k);
      for (int axis = 0; axis < depth; ++axis) steps_along(axis)[k] = strides[axis];
    }
  }

  Size* steps_along(int axis) const { return steps + axis * count; }
  Size row() const { return extents[depth - 1]; }
  Size row_step(int k) const { return steps_along(depth - 1)[k]; }
  Size total() const {
    Size product = 1;
    for (int axis = 0; axis < depth; ++axis) product *= extents[axis];
    return product;
  }

  // Whether each element of a row has an index of its own.
  bool gathers_vary(int k) const {
    const int by = gathers ? operands[k].gathered_by : -1;
    return by >= 0 && row() > 1 && row_step(by) != 0;
  }
};

// Move to the elements that a piece of a row of a gathered operand means; returns whether elements with indices of
// their own were gathered into the buffer.
inline bool follow_gathers(const Walk& walk, char* const* first, int k, Size offset, Size piece, char*& element,
                           char* buffer) {
  const Items& operand = walk.operands[k];
  const int by = operand.gathered_by;
  if (by < 0) return false;
  const Size apart = walk.row_step(by);
  const Gathers found = gathers_at(operand, walk.operands[by], first[by] + offset * apart, apart);
  if (!walk.gathers_vary(k)) {
    element += found.offset();
    return false;
  }
  gather_rows(operand, element, walk.row_step(k), found, piece, buffer);
  return true;
}

// Calls visit(count, row of each operand) for a part of a row.
template <bool gathers, class Visit>
__attribute__((noinline)) void visit_packed(const Walk& walk, char* const* first, Size offset, Size some,
                                            Visit& visit) {
  const int count = walk.count;
  char memory[count * packed_bytes + 63];
  char* const buffers = next_line(memory);
  void* row[count];
  for (Size done = 0; done < some; done += walk.packed_most) {
    const Size piece = some - done < walk.packed_most ? some - done : walk.packed_most;
    for (int k = 0; k < count; ++k) {
      const Items& operand = walk.operands[k];
      const Size stride = walk.row_step(k);
      char* const buffer = buffers + k * packed_bytes;
      char* element = first[k] + (offset + done) * stride;
      bool collected = false;
      if constexpr (gathers) collected = follow_gathers(walk, first, k, offset + done, piece, element, buffer);
      row[k] = walk.packed[k] ? buffer : element;
      const bool is_there = done > 0 && stride == 0 && !gathers;  // one value repeated, from the piece before
      if (walk.packed[k] && !operand.stored && !collected && !is_there)
        fetch(operand, element, stride, piece, buffer);
    }
    visit(piece, row);
    for (int k = 0; k < count; ++k) {
      const Items& operand = walk.operands[k];
      if (!walk.packed[k] || !operand.stored) continue;
      const Size stride = walk.row_step(k);
      char* const element = first[k] + (offset + done) * stride;
      if (walk.streamed[k]) {
        stream(buffers + k * packed_bytes, piece * stride, element);
      } else {
        put_back(operand, buffers + k * packed_bytes, stride, piece, element);
      }
    }
  }
}

// Whether rows that are so many bytes apart are better packed together.
inline bool in_panels(const Walk& walk, const Size* apart, Size lanes, bool gathers) {
  bool any = false;
  for (int k = 0; k < walk.count; ++k)
    any |= walk.packed[k] && lies_across(walk.operands[k], apart[k], walk.row_step(k));
  return any && !gathers && lanes >= 4 && walk.row() >= 4;
}

// As many rows as one line of memory has items of.
inline Size lanes_of_panel(const Walk& walk) {
  Size item_bytes = 4;
  for (int k = 0; k < walk.count; ++k)
    if (walk.packed[k] && walk.operands[k].item_bytes < item_bytes) item_bytes = walk.operands[k].item_bytes;
  return item_bytes == 4 ? panel_lanes / 2 : panel_lanes;
}

inline Size panel_bytes(const Walk& walk) {
  Size bytes = 0;
  for (int k = 0; k < walk.count; ++k)
    bytes += walk.packed[k] ? panel_lanes * panel_columns * walk.operands[k].item_bytes : 0;
  return bytes;
}

// Calls visit(lane, count, row of each operand) for the same part of some rows.
template <class Visit>
__attribute__((noinline)) void visit_panel(const Walk& walk, char* const* first, const Size* apart, Size lanes,
                                           Size offset, Size some, char* buffers, Visit& visit) {
  const int count = walk.count;
  char* at[count];
  Size between[count];
  void* row[count];
  for (Size done = 0; done < some; done += panel_columns) {
    const Size piece = some - done < panel_columns ? some - done : panel_columns;
    char* buffer = buffers;
    for (int k = 0; k < count; ++k) {
      const Items& operand = walk.operands[k];
      char* const element = first[k] + (offset + done) * walk.row_step(k);
      at[k] = walk.packed[k] ? buffer : element;
      between[k] = walk.packed[k] ? panel_columns * operand.item_bytes : apart[k];
      if (!walk.packed[k]) continue;
      if (!operand.stored)
        fetch_rows(operand, element, apart[k], lanes, walk.row_step(k), piece, buffer, between[k]);
      buffer += panel_lanes * between[k];
    }
    for (Size lane = 0; lane < lanes; ++lane) {
      for (int k = 0; k < count; ++k) row[k] = at[k] + lane * between[k];
      visit(lane, piece, row);
    }
    for (int k = 0; k < count; ++k) {
      const Items& operand = walk.operands[k];
      if (!walk.packed[k] || !operand.stored) continue;
      char* const element = first[k] + (offset + done) * walk.row_step(k);
      if (walk.streamed[k]) {
        for (Size lane = 0; lane < lanes; ++lane)
          stream(at[k] + lane * between[k], piece * operand.item_bytes, element + lane * apart[k]);
      } else {
        put_back_rows(operand, at[k], between[k], lanes, walk.row_step(k), piece, element, apart[k]);
      }
    }
  }
}

// Panels of the last two axes, with pieces of rows: neighbours in memory follow one another.
struct Panels {
  Size lanes, across, along, total;
};

inline Panels panels_of(const Walk& walk, bool gathers) {
  const int depth = walk.depth;
  if (depth < 2) return {0, 0, 0, 0};
  const Size rows = walk.extents[depth - 2];
  if (!in_panels(walk, walk.steps_along(depth - 2), rows, gathers)) return {0, 0, 0, 0};
  const Size lanes = lanes_of_panel(walk), across = (rows + lanes - 1) / lanes;
  const Size along = (walk.row() + panel_columns - 1) / panel_columns;
  Size total = across * along;
  for (int axis = 0; axis < depth - 2; ++axis) total *= walk.extents[axis];
  return {lanes, across, along, total};
}

// Calls a row function for the rows of some panels.
inline void visit_panels(const Walk& walk, char* const* data, const Panels& panels, Size begin, Size end,
                         RowFunction function) {
  const int count = walk.count, depth = walk.depth;
  const Lines buffers(panel_bytes(walk));
  const Size* const apart = walk.steps_along(depth - 2);
  auto visit = [&](Size, Size piece, void* const* row) { function(piece, row); };
  char* first[count];
  for (; begin < end; ++begin) {
    const Size lane = begin % panels.across * panels.lanes,
               offset = begin / panels.across % panels.along * panel_columns;
    Size rest = begin / panels.across / panels.along;
    for (int k = 0; k < count; ++k) first[k] = data[k] + lane * apart[k];
    for (int axis = depth - 3; axis >= 0; --axis) {
      const Size* const steps = walk.steps_along(axis);
      for (int k = 0; k < count; ++k) first[k] += rest % walk.extents[axis] * steps[k];
      rest /= walk.extents[axis];
    }
    const Size lanes = walk.extents[depth - 2] - lane, some = walk.row() - offset;
    visit_panel(walk, first, apart, lanes < panels.lanes ? lanes : panels.lanes, offset,
                some < panel_columns ? some : panel_columns, buffers.data, visit);
  }
}

}  // namespace detail
}  // namespace opwright
