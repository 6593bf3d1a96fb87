// Calls a row function for every row: a row is the innermost axis of a kernel.
//
// Axes that are contiguous in every operand are merged first, so that rows are long. A row function reads and writes
// with unit stride; a row with another stride (transposed, sliced with a step, expanded) is first packed into a small
// buffer. Results larger than any cache go through that buffer too, and are then stored past the caches.
#pragma once

#include "opwright/parallel.h"
#include "opwright/gathers.h"
#include "opwright/stream.h"

namespace opwright {

// One tensor that a kernel loads or stores: its first element and its strides. `gathers`: the kernel may gather.
template <int axes, bool gathers = false>
struct Operand {
  char* data;
  Size item_bytes;
  bool whole_row;  // false: one value for the whole row, and the row function reads only that
  bool stored;
  bool iota;
  Size strides[axes];  // in bytes
  Size parts = 1;      // an item may be some numbers
  Size part_stride = 0;
  int gathered_by = -1;    // the operand with the indices of its elements
  Size gather_stride = 0;  // the stride of those indices, in bytes
  Size extent = 0;         // of an operand with indices: added to negative ones

  template <bool beside_gathers>
  operator Operand<axes, beside_gathers>() const {
    Operand<axes, beside_gathers> same{data, item_bytes, whole_row, stored, iota, {}, parts, part_stride};
    for (int axis = 0; axis < axes; ++axis) same.strides[axis] = strides[axis];
    return same;
  }

  Size part_bytes() const { return item_bytes / parts; }
  bool is_apart() const { return parts > 1 && part_stride != part_bytes(); }  // its parts are not neighbours
};

// An iota has no memory: its "addresses" are its integers, plus this number so that none is null.
constexpr Size count_base = Size(1) << 40;

template <class T>
struct Mutable {
  using type = T;
};
template <class T>
struct Mutable<const T> {
  using type = T;
};

template <int axes, class T>
inline Operand<axes> load(T* data, const Size (&strides)[axes], bool whole_row = true) {
  char* const first = reinterpret_cast<char*>(const_cast<typename Mutable<T>::type*>(data));
  Operand<axes> operand{first, sizeof(T), whole_row, false, false, {}};
  for (int axis = 0; axis < axes; ++axis) operand.strides[axis] = strides[axis] * Size(sizeof(T));
  return operand;
}

template <int axes, class T>
inline Operand<axes> store(T* data, const Size (&strides)[axes], bool whole_row = true) {
  Operand<axes> operand = load<axes, T>(data, strides, whole_row);
  operand.stored = true;
  return operand;
}

// The same with items of some numbers each, such as the coordinates of a point.
template <int axes>
inline Operand<axes> in_parts(Operand<axes> operand, Size parts, Size part_stride) {
  operand.part_stride = part_stride * operand.item_bytes;
  operand.item_bytes *= parts;
  operand.parts = parts;
  return operand;
}

template <int axes>
inline Operand<axes> iota(Size first, const Size (&strides)[axes], bool whole_row = true) {
  Operand<axes> operand{reinterpret_cast<char*>(count_base + first), sizeof(Size), whole_row, false, true, {}};
  for (int axis = 0; axis < axes; ++axis) operand.strides[axis] = strides[axis];
  return operand;
}

// Indices, read in place; and an operand that they index.
template <int axes, class T>
inline Operand<axes, true> indices(T* data, const Size (&strides)[axes], Size extent) {
  Operand<axes, true> operand = load<axes, T>(data, strides, false);
  operand.extent = extent;
  return operand;
}

template <int axes>
inline Operand<axes, true> gathered(const Operand<axes>& beginning, int by, Size stride) {
  Operand<axes, true> operand = beginning;
  operand.gathered_by = by;
  operand.gather_stride = stride * operand.item_bytes;
  return operand;
}

// The indices of a gathered operand at a place, `stride` apart.
template <int axes>
inline Gathers gathers_at(const Operand<axes, true>* operands, int k, const char* place, Size stride) {
  const Operand<axes, true>& by = operands[operands[k].gathered_by];
  return {place, stride, by.item_bytes, by.extent, operands[k].gather_stride};
}

// The integer of an iota at a place; a row function gets it if it is one value for the row.
inline Size count_at(const void* place) { return Size(reinterpret_cast<uintptr_t>(place)) - count_base; }

using RowFunction = void (*)(Size count, void* const* row);

namespace detail {

constexpr Size packed_count = 256;
constexpr Size packed_bytes = packed_count * 8;  // half as many elements where items are larger
#ifdef OPWRIGHT_LEAST_STREAMED_BYTES             // by tests
constexpr Size least_streamed_bytes = OPWRIGHT_LEAST_STREAMED_BYTES;
#else
constexpr Size least_streamed_bytes = Size(32) << 20;
#endif

template <class T>
inline void gather(const char* from, Size stride, Size count, char* into) {
  T* target = reinterpret_cast<T*>(into);
  if (stride == 0) {  // a loop that the compiler vectorises
    const T repeated = *reinterpret_cast<const T*>(from);
    for (Size j = 0; j < count; ++j) target[j] = repeated;
    return;
  }
  for (Size j = 0; j < count; ++j) target[j] = *reinterpret_cast<const T*>(from + j * stride);
}

template <class T>
inline void scatter(const char* from, Size stride, Size count, char* into) {
  const T* source = reinterpret_cast<const T*>(from);
  for (Size j = 0; j < count; ++j) *reinterpret_cast<T*>(into + j * stride) = source[j];
}

inline void gather(Size item_bytes, const char* from, Size stride, Size count, char* into) {
  if (item_bytes == 4) return gather<uint32_t>(from, stride, count, into);
  if (item_bytes == 8) return gather<uint64_t>(from, stride, count, into);
  if (item_bytes == 2) return gather<uint16_t>(from, stride, count, into);
  if (item_bytes == 16) return gather<SixteenBytes>(from, stride, count, into);
  gather<uint8_t>(from, stride, count, into);
}

inline void scatter(Size item_bytes, const char* from, Size stride, Size count, char* into) {
  if (item_bytes == 4) return scatter<uint32_t>(from, stride, count, into);
  if (item_bytes == 8) return scatter<uint64_t>(from, stride, count, into);
  if (item_bytes == 2) return scatter<uint16_t>(from, stride, count, into);
  if (item_bytes == 16) return scatter<SixteenBytes>(from, stride, count, into);
  scatter<uint8_t>(from, stride, count, into);
}

// The address of an item, its parts, and the items after it.
struct Spacing {
  Size stride, part_stride;
};

template <class T>
inline void copy_parts(const char* from, Spacing apart, char* into, Spacing there, Size count, Size parts) {
  for (Size j = 0; j < count; ++j)
    for (Size part = 0; part < parts; ++part)
      *reinterpret_cast<T*>(into + j * there.stride + part * there.part_stride) =
          *reinterpret_cast<const T*>(from + j * apart.stride + part * apart.part_stride);
}

inline void copy_parts(Size part_bytes, const char* from, Spacing apart, char* into, Spacing there, Size count,
                       Size parts) {
  if (part_bytes == 4) return copy_parts<uint32_t>(from, apart, into, there, count, parts);
  if (part_bytes == 8) return copy_parts<uint64_t>(from, apart, into, there, count, parts);
  if (part_bytes == 2) return copy_parts<uint16_t>(from, apart, into, there, count, parts);
  if (part_bytes == 16) return copy_parts<SixteenBytes>(from, apart, into, there, count, parts);
  copy_parts<uint8_t>(from, apart, into, there, count, parts);
}

// Items of an operand, `stride` apart, into a buffer, and back.
template <int axes, bool gathers>
inline void fetch(const Operand<axes, gathers>& operand, const char* from, Size stride, Size count, char* into) {
  if (operand.parts > 1)
    return copy_parts(operand.part_bytes(), from, {stride, operand.part_stride}, into,
                      {operand.item_bytes, operand.part_bytes()}, count, operand.parts);
  if (!operand.iota) return gather(operand.item_bytes, from, stride, count, into);
  const Size first = count_at(from);
  Size* target = reinterpret_cast<Size*>(into);
  for (Size j = 0; j < count; ++j) target[j] = first + j * stride;
}

template <int axes, bool gathers>
inline void put_back(const Operand<axes, gathers>& operand, const char* from, Size stride, Size count, char* into) {
  if (operand.parts > 1)
    return copy_parts(operand.part_bytes(), from, {operand.item_bytes, operand.part_bytes()}, into,
                      {stride, operand.part_stride}, count, operand.parts);
  scatter(operand.item_bytes, from, stride, count, into);
}

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
      visit_row(first, offset, some, visit);
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

// An array that is freed with its scope; its members are made by their default constructor.
template <class T>
struct Array {
  T* data;
  explicit Array(Size count) : data(count > 0 ? new T[count] : nullptr) {}
  ~Array() { delete[] data; }
  Array(const Array&) = delete;
  T& operator[](Size position) const { return data[position]; }
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

    static void run(Size begin, Size end, void* context) {
      const Task& task = *static_cast<const Task*>(context);
      task.walk.visit(task.first, begin, end, task.function);
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
  run_in_parallel(total, grain, &Task::run, &task);
}

}  // namespace opwright
