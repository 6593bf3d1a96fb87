// Gathers: the addresses of gathered elements, and checks that all indices are in range.
#pragma once

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
