// The operands of a kernel: their addresses and strides, and how a row of one is copied to a buffer and back.
#pragma once

#include "opwright/gathers.h"
#include "opwright/transpose.h"

namespace opwright {

// What of an operand does not depend on the number of its axes. Functions of this alone are compiled once for a library,
// and not for each kernel.
struct Items {
  char* data;  // the first
  Size item_bytes;
  bool whole_row;  // false: one value for the whole row, and the row function reads only that
  bool stored;
  bool iota;
  Size parts = 1;  // an item may be some numbers
  Size part_stride = 0;
  int gathered_by = -1;    // the operand with the indices of its elements
  Size gather_stride = 0;  // the stride of those indices, in bytes
  Size extent = 0;         // of an operand with indices: added to negative ones

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
  operand.gather_stride = stride * operand.item_bytes;
  return operand;
}

// The indices of a gathered operand at a place, `stride` apart.
inline Gathers gathers_at(const Items& operand, const Items& by, const char* place, Size stride) {
  return {place, stride, by.item_bytes, by.extent, operand.gather_stride};
}

// The integer of an iota at a place; a row function gets it if it is one value for the row.
inline Size count_at(const void* place) { return Size(reinterpret_cast<uintptr_t>(place)) - count_base; }

namespace detail {

// Whether rows whose elements are neighbours across them, as with channels last, are packed several at a time. That
// takes the compiler 0.2 s a kernel, so one that is built for row-major tensors takes each row by itself.
#ifdef OPWRIGHT_ROW_MAJOR
constexpr bool has_panels = false;
#else
constexpr bool has_panels = true;
#endif

inline bool lies_across(const Items& operand, Size apart, Size stride) {
  return has_panels && apart == operand.item_bytes && stride != apart && stride != 0 && apart <= 8 && operand.parts == 1 &&
         !operand.iota;
}

// The address of an item, its parts, and the items after it.
struct Spacing {
  Size stride, part_stride;
};

#ifdef OPWRIGHT_APART
// Items of an operand, `stride` apart, into a buffer, and back.
void fetch(const Items& operand, const char* from, Size stride, Size count, char* into);
void put_back(const Items& operand, const char* from, Size stride, Size count, char* into);

// The same for `lanes` rows, `apart` bytes from one another in memory and `packed_apart` in the buffer.
void fetch_rows(const Items& operand, const char* from, Size apart, Size lanes, Size stride, Size count, char* into,
                Size packed_apart);
void put_back_rows(const Items& operand, const char* from, Size packed_apart, Size lanes, Size stride, Size count,
                   char* into, Size apart);

// The same for neighbours, without parts.
void gather(Size item_bytes, const char* from, Size stride, Size count, char* into);
#else
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

OPWRIGHT_ONCE void gather(Size item_bytes, const char* from, Size stride, Size count, char* into) {
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

OPWRIGHT_ONCE void fetch(const Items& operand, const char* from, Size stride, Size count, char* into) {
  if (operand.parts > 1)
    return copy_parts(operand.part_bytes(), from, {stride, operand.part_stride}, into,
                      {operand.item_bytes, operand.part_bytes()}, count, operand.parts);
  if (!operand.iota) return gather(operand.item_bytes, from, stride, count, into);
  const Size first = count_at(from);
  Size* target = reinterpret_cast<Size*>(into);
  for (Size j = 0; j < count; ++j) target[j] = first + j * stride;
}

OPWRIGHT_ONCE void put_back(const Items& operand, const char* from, Size stride, Size count, char* into) {
  if (operand.parts > 1)
    return copy_parts(operand.part_bytes(), from, {operand.item_bytes, operand.part_bytes()}, into,
                      {stride, operand.part_stride}, count, operand.parts);
  scatter(operand.item_bytes, from, stride, count, into);
}

OPWRIGHT_ONCE void fetch_rows(const Items& operand, const char* from, Size apart, Size lanes, Size stride, Size count,
                              char* into, Size packed_apart) {
  if constexpr (has_panels)
    if (lies_across(operand, apart, stride))
      return transpose(operand.item_bytes, from, stride, into, packed_apart, count, lanes);
  for (Size lane = 0; lane < lanes; ++lane)
    fetch(operand, from + lane * apart, stride, count, into + lane * packed_apart);
}

OPWRIGHT_ONCE void put_back_rows(const Items& operand, const char* from, Size packed_apart, Size lanes, Size stride,
                                 Size count, char* into, Size apart) {
  if constexpr (has_panels)
    if (lies_across(operand, apart, stride))
      return transpose(operand.item_bytes, from, packed_apart, into, stride, lanes, count);
  for (Size lane = 0; lane < lanes; ++lane)
    put_back(operand, from + lane * packed_apart, stride, count, into + lane * apart);
}
#endif

}  // namespace detail
}  // namespace opwright
