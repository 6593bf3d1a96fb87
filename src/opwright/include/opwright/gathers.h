// Gathers: the addresses of gathered elements, and checks that all indices are in range.
#pragma once

#include "opwright/once.h"
#include "opwright/tensor.h"

namespace opwright {

// Indices, and the stride in the table, in bytes.
struct Gathers {
  const char* first;
  Size stride, item_bytes;
  Size extent;  // added to negative indices; zero if none are negative
  Size step;

  // The address that the first index points to.
  Size offset() const {
    const Size index =
        item_bytes == 8 ? *reinterpret_cast<const int64_t*>(first) : *reinterpret_cast<const int32_t*>(first);
    return (index < 0 ? index + extent : index) * step;
  }
};

namespace detail {

#ifdef OPWRIGHT_APART
// Gather elements, each by an index of its own, into a buffer; the indices are `stride` apart.
void gather_rows(Size item_bytes, const char* from, Size stride, const Gathers& gathers, Size count, char* into);
#else
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

struct SixteenBytes {
  uint64_t low, high;
};

OPWRIGHT_ONCE void gather_rows(Size item_bytes, const char* from, Size stride, const Gathers& gathers, Size count,
                               char* into) {
  if (item_bytes == 4) return gather_rows<uint32_t>(from, stride, gathers, count, into);
  if (item_bytes == 8) return gather_rows<uint64_t>(from, stride, gathers, count, into);
  if (item_bytes == 2) return gather_rows<uint16_t>(from, stride, gathers, count, into);
  if (item_bytes == 16) return gather_rows<SixteenBytes>(from, stride, gathers, count, into);
  gather_rows<uint8_t>(from, stride, gathers, count, into);
}
#endif

template <class Index>
inline bool is_row_within(const Index* first, Size stride, Size count, Size low, Size high) {
  Size outside = 0;
  if (stride == 1) {
    for (Size j = 0; j < count; ++j) outside |= Size(first[j] < low) | Size(first[j] >= high);
  } else {
    for (Size j = 0; j < count; ++j) outside |= Size(first[j * stride] < low) | Size(first[j * stride] >= high);
  }
  return outside == 0;
}

}  // namespace detail

// Whether all indices are at least `low` and below `high`, so that a gather stays inside its table. A dimension with
// stride zero is checked once.
template <class Index, int rank>
inline bool is_within(const Index* first, const Size (&sizes)[rank], const Size (&strides)[rank], Size low, Size high) {
  Size extents[rank], at[rank] = {};
  for (int axis = 0; axis < rank; ++axis) {
    if (sizes[axis] == 0) return true;
    extents[axis] = strides[axis] == 0 ? 1 : sizes[axis];
  }
  while (true) {
    if (!detail::is_row_within(first, strides[rank - 1], extents[rank - 1], low, high)) return false;
    int axis = rank - 2;
    for (; axis >= 0; --axis) {
      first += strides[axis];
      if (++at[axis] < extents[axis]) break;
      first -= extents[axis] * strides[axis];
      at[axis] = 0;
    }
    if (axis < 0) return true;
  }
}

}  // namespace opwright
