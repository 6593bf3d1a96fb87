// Copies between memory and buffers: items of an operand, rows of them, and what indices point to.
#pragma once

#include "opwright/once.h"
#include "opwright/operands.h"
#include "opwright/transpose.h"

namespace opwright::detail {

// Whether neighbours in memory belong to rows beside one another, as with channels last.
inline bool lies_across(const Items& operand, Size apart, Size stride) {
  return apart == operand.item_bytes && stride != apart && stride != 0 && apart <= 8 && operand.parts == 1 &&
         !operand.iota;
}

// The address of an item, its parts, and the items after it.
struct Spacing {
  Size stride, part_stride;
};

#ifdef OPWRIGHT_WALKS_APART
// Elements that are so many bytes apart, into a buffer, and back; the last have parts.
void gather(Size item_bytes, const char* from, Size stride, Size count, char* into);
void scatter(Size item_bytes, const char* from, Size stride, Size count, char* into);
void copy_parts(Size part_bytes, const char* from, Spacing apart, char* into, Spacing there, Size count, Size parts);

// Elements, each by an index of its own, into a buffer; the indices are `stride` apart.
void gather_rows(const Items& operand, const char* from, Size stride, const Gathers& gathers, Size count, char* into);

// Items of an operand, `stride` apart, into a buffer, and back.
void fetch(const Items& operand, const char* from, Size stride, Size count, char* into);
void put_back(const Items& operand, const char* from, Size stride, Size count, char* into);

// The same for `lanes` rows, `apart` bytes from one another in memory and `packed_apart` in the buffer.
void fetch_rows(const Items& operand, const char* from, Size apart, Size lanes, Size stride, Size count, char* into,
                Size packed_apart);
void put_back_rows(const Items& operand, const char* from, Size packed_apart, Size lanes, Size stride, Size count,
                   char* into, Size apart);
#else
struct SixteenBytes {
  uint64_t low, high;
};

// Strides are in elements here.
template <class T, class Index>
inline void gather_rows(const T* from, Size stride, const Index* index, Size apart, Size extent, Size step, Size count,
                        T* into) {
  if (stride == 0 && step == 1 && apart == 1 && extent == 0) {
    for (Size j = 0; j < count; ++j) into[j] = from[index[j]];
    return;
  }
  for (Size j = 0; j < count; ++j) {
    const Size gathered = index[j * apart];
    into[j] = from[j * stride + (gathered + (gathered < 0 ? extent : 0)) * step];
  }
}

template <class T>
inline void gather_rows(const char* from, Size stride, const Gathers& gathers, Size count, char* into) {
  const T* const source = reinterpret_cast<const T*>(from);
  T* const target = reinterpret_cast<T*>(into);
  const Size bytes = sizeof(T), apart = gathers.stride / gathers.item_bytes, step = gathers.step / bytes;
  if (gathers.item_bytes == 8) {
    const int64_t* const index = reinterpret_cast<const int64_t*>(gathers.first);
    return gather_rows(source, stride / bytes, index, apart, gathers.extent, step, count, target);
  }
  const int32_t* const index = reinterpret_cast<const int32_t*>(gathers.first);
  gather_rows(source, stride / bytes, index, apart, gathers.extent, step, count, target);
}

// The integers of an iota, each moved by what its index adds.
inline void count_rows(Size first, Size stride, Gathers gathers, Size count, Size* into) {
  for (Size j = 0; j < count; ++j, gathers.first += gathers.stride) into[j] = first + j * stride + gathers.offset();
}

OPWRIGHT_ONCE void gather_rows(const Items& operand, const char* from, Size stride, const Gathers& gathers, Size count,
                               char* into) {
  if (operand.iota) return count_rows(count_at(from), stride, gathers, count, reinterpret_cast<Size*>(into));
  const Size item_bytes = operand.item_bytes;
  if (item_bytes == 4) return gather_rows<uint32_t>(from, stride, gathers, count, into);
  if (item_bytes == 8) return gather_rows<uint64_t>(from, stride, gathers, count, into);
  if (item_bytes == 2) return gather_rows<uint16_t>(from, stride, gathers, count, into);
  if (item_bytes == 16) return gather_rows<SixteenBytes>(from, stride, gathers, count, into);
  gather_rows<uint8_t>(from, stride, gathers, count, into);
}

template <class T>
inline void gather(const char* from, Size stride, Size count, char* into) {
  T* target = reinterpret_cast<T*>(into);
  if (stride == 0) {  // a loop that the compiler vectorises
    const T repeated = *reinterpret_cast<const T*>(from);
#pragma omp simd
    for (Size j = 0; j < count; ++j) target[j] = repeated;
    return;
  }
#pragma omp simd
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

OPWRIGHT_ONCE void scatter(Size item_bytes, const char* from, Size stride, Size count, char* into) {
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

OPWRIGHT_ONCE void copy_parts(Size part_bytes, const char* from, Spacing apart, char* into, Spacing there, Size count,
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
#pragma omp simd
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
  if (lies_across(operand, apart, stride))
    return transpose(operand.item_bytes, from, stride, into, packed_apart, count, lanes);
  for (Size lane = 0; lane < lanes; ++lane)
    fetch(operand, from + lane * apart, stride, count, into + lane * packed_apart);
}

OPWRIGHT_ONCE void put_back_rows(const Items& operand, const char* from, Size packed_apart, Size lanes, Size stride,
                                 Size count, char* into, Size apart) {
  if (lies_across(operand, apart, stride))
    return transpose(operand.item_bytes, from, packed_apart, into, stride, lanes, count);
  for (Size lane = 0; lane < lanes; ++lane)
    put_back(operand, from + lane * packed_apart, stride, count, into + lane * apart);
}
#endif

}  // namespace opwright::detail
