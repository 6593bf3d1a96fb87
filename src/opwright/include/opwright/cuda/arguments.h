// Kernel arguments: plain values with the same layout on host and device.
//
// A kernel has inner and outer axes. Along the inner ones, a thread takes a pack of `width` neighbours; the outer ones,
// if any, go from row to row, or along a reduced column.
#pragma once

#include "opwright/bits.h"

namespace opwright {

// A tensor: its first element, and its strides in elements.
template <class T, int axes>
struct Elements {
  T* data;
  int64_t strides[axes];
};

// An iota: the integers first, first + stride, …, computed and not stored.
template <int axes>
struct Counter {
  int64_t first;
  int64_t strides[axes];
};

// Division of n < 2^31 by a number known at launch, by multiplication and shift (Granlund and Montgomery 1994): with s
// = ⌈log2 d⌉ and m = ⌊2^32 (2^s - d)/d⌋ + 1, n/d is (⌊m n/2^32⌋ + n)/2^s.
struct Divider {
  uint32_t factor, shift;
};

// Axes that are walked along, outermost first, pack by pack along the last one.
template <int axes>
struct Walk {
  int64_t extents[axes];  // in elements
  int64_t packs;          // along the last axis
  int64_t total;          // packs in all
  Divider dividers[axes];
};

}  // namespace opwright
