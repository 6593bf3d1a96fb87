// Choices that are the same for a whole row. GCC vectorises no loop whose condition it knows to be uniform, so such a
// condition is a mask that it knows nothing of, and the choice is made of bits.
#pragma once

#include "opwright/bits.h"

namespace opwright {

/// All bits or none; for the compiler it could be any integer.
OPWRIGHT_INLINE int32_t mask_of(bool condition) {
  int32_t mask = -static_cast<int32_t>(condition);
  __asm__("" : "+r"(mask));
  return mask;
}

/// `a` where the mask has all bits, `b` where it has none: exact, NaN included.
template <class T>
OPWRIGHT_INLINE T blend(int32_t mask, T a, T b) {
  static_assert(sizeof(T) == 4 || sizeof(T) == 8);
  if constexpr (sizeof(T) == 4) {
    const int32_t bits = (detail::same_bits<int32_t>(a) & mask) | (detail::same_bits<int32_t>(b) & ~mask);
    return detail::same_bits<T>(bits);
  } else {
    const int64_t wide = mask;
    const int64_t bits = (detail::same_bits<int64_t>(a) & wide) | (detail::same_bits<int64_t>(b) & ~wide);
    return detail::same_bits<T>(bits);
  }
}

}  // namespace opwright
