// The operands of a kernel: their addresses and strides.
#pragma once

#include "opwright/gathers.h"
#include "opwright/once.h"

namespace opwright {

// A row function gets the number of elements of a row, and the address of the first one of each operand.
using RowFunction = void (*)(Size count, void* const* row);

inline Size least(Size a, Size b) { return a < b ? a : b; }

// What of an operand does not depend on the number of its axes.
struct Items {
  char* data;  // the first
  Size item_bytes;
  bool whole_row;  // false: one value for the whole row, and the row function reads only that
  bool stored;
  bool iota;
  Size parts = 1;  // an item may be some numbers
  Size part_stride = 0;
  int gathered_by = -1;    // the operand with the indices of its elements
  Size gather_stride = 0;  // the stride of those indices, in bytes; of an iota, in integers
  Size extent = 0;         // of an operand with indices: added to negative ones
  int past_of = -1;        // the operand whose results this one takes past the caches
  bool quick = false;      // results that are computed in less time than memory takes to store them

  Size part_bytes() const { return item_bytes / parts; }
  bool is_apart() const { return parts > 1 && part_stride != part_bytes(); }  // its parts are not neighbours
};

// One tensor that a kernel loads or stores: its items and their strides. `gathers`: the kernel may gather.
template <int axes, bool gathers = false>
struct Operand : Items {
  Size strides[axes];  // in bytes

  template <bool beside_gathers>
  operator Operand<axes, beside_gathers>() const {
    Operand<axes, beside_gathers> same{{data, item_bytes, whole_row, stored, iota, parts, part_stride}, {}};
    for (int axis = 0; axis < axes; ++axis) same.strides[axis] = strides[axis];
    return same;
  }
};

// Operands of any number, with any number of axes, as functions see them that are compiled once and not for each kernel.
// What they look up takes less time than what they do for a row.
struct Operands {
  int count, axes;
  bool gathers;
  const Size* extents;
  const Items* items;          // of the first
  const Size* steps;           // of the first, along each axis
  Size items_apart, steps_apart;  // from operand to operand, in bytes

  const Items& operator[](int k) const { return *beside(items, k * items_apart); }
  const Size* strides(int k) const { return beside(steps, k * steps_apart); }

  // The same restricted to the last axes.
  Operands along(int last) const {
    Operands rows = *this;
    rows.axes = last, rows.extents += axes - last, rows.steps += axes - last;
    return rows;
  }

 private:
  template <class T>
  static const T* beside(const T* first, Size bytes) {
    return reinterpret_cast<const T*>(reinterpret_cast<const char*>(first) + bytes);
  }
};

template <int axes, int count, bool gathers>
inline Operands all_of(const Size (&extents)[axes], const Operand<axes, gathers> (&operands)[count]) {
  constexpr Size apart = sizeof(operands[0]);
  return {count, axes, gathers, extents, operands, operands[0].strides, apart, apart};
}

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
  Operand<axes> operand{{first, sizeof(T), whole_row, false, false}, {}};
  for (int axis = 0; axis < axes; ++axis) operand.strides[axis] = strides[axis] * Size(sizeof(T));
  return operand;
}

template <int axes, class T>
inline Operand<axes> store(T* data, const Size (&strides)[axes], bool whole_row = true) {
  Operand<axes> operand = load<axes, T>(data, strides, whole_row);
  operand.stored = true;
  return operand;
}

// The same for results that are computed in less time than memory takes to store them.
template <int axes>
inline Operand<axes> quick(Operand<axes> operand) {
  operand.quick = true;
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
  Operand<axes> operand{{reinterpret_cast<char*>(count_base + first), sizeof(Size), whole_row, false, true}, {}};
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
  operand.gather_stride = operand.iota ? stride : stride * operand.item_bytes;
  return operand;
}

// The indices of a gathered operand at a place, `stride` apart.
inline Gathers gathers_at(const Items& operand, const Items& by, const char* place, Size stride) {
  return {place, stride, by.item_bytes, by.extent, operand.gather_stride};
}

// The integer of an iota at a place; a row function gets it if it is one value for the row.
inline Size count_at(const void* place) { return Size(reinterpret_cast<uintptr_t>(place)) - count_base; }

}  // namespace opwright
