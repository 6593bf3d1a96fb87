// What a kernel is launched with: plain values, laid out alike on the host and on the device.
//
// A kernel's axes are two groups. Along the inner ones a thread takes `width` neighbours together, a pack; the outer ones,
// if there are any, lead from row to row, or over what a column reduces.
#pragma once

#include "opwright/bits.h"

namespace opwright {

// A tensor: its first element, and how far one step along each axis goes, in elements.
template <class T, int axes>
struct Elements {
  T* data;
  int64_t strides[axes];
};

// The integers first, first + stride, …, which are counted and take no memory.
template <int axes>
struct Counter {
  int64_t first;
  int64_t strides[axes];
};

// Division of n < 2^31 by a number that is known at the launch, as a multiplication and a shift (Granlund and
// Montgomery 1994): with s = ⌈log2 d⌉ and m = ⌊2^32 (2^s - d)/d⌋ + 1, n/d is (⌊m n/2^32⌋ + n)/2^s.
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
