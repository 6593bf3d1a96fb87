// Floating-point numbers as integers in the same order, NaN above all: integer maxima can be reordered, and so
// vectorised, which floating-point ones cannot.
#pragma once

#include "opwright/bits.h"

namespace opwright {

template <class T>
OPWRIGHT_INLINE detail::Bits<T> order_of(T x) {
  const detail::Bits<T> bits = detail::to_bits(x);
  // All bits of a negative number but its sign, without a branch: a processor cannot foretell signs.
  const detail::Bits<T> ordered = bits ^ ((bits >> (8 * sizeof(T) - 1)) & ~detail::kSignBit<T>);
  return x != x ? static_cast<detail::Bits<T>>(~detail::kSignBit<T>) : ordered;
}

template <class T>
OPWRIGHT_INLINE T from_order(detail::Bits<T> ordered) {
  return detail::from_bits<T>(ordered < 0 ? ordered ^ ~detail::kSignBit<T> : ordered);
}

}  // namespace opwright
