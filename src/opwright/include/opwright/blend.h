// Choices made of bits, without control flow.
//
// For conditions that are the same for a whole row: GCC vectorises no loop whose condition it knows to be uniform, so such
// a condition is a mask that it knows nothing of. And for loops over elements of several parts: where a value is needed
// on one side of a condition alone, GCC reads it under a mask, and up to GCC 12 at least it then uses the mask of the
// first vector of such a loop for all of them (docs/decisions/0056-choices-of-parts.md).
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

namespace detail {

template <size_t bytes>
struct IntegerOf;
template <>
struct IntegerOf<1> {
  using type = int8_t;
};
template <>
struct IntegerOf<2> {
  using type = int16_t;
};
template <>
struct IntegerOf<4> {
  using type = int32_t;
};
template <>
struct IntegerOf<8> {
  using type = int64_t;
};

}  // namespace detail

/// `a` if the condition holds, else `b`: exact, NaN included; a complex number part by part.
template <class T>
OPWRIGHT_INLINE T choose(bool condition, T a, T b) {
  if constexpr (__is_class(T)) {
    return {choose(condition, a.re, b.re), choose(condition, a.im, b.im)};
  } else {
    using Bits = typename detail::IntegerOf<sizeof(T)>::type;
    const Bits mask = static_cast<Bits>(-static_cast<Bits>(condition));
    const Bits bits = (detail::same_bits<Bits>(a) & mask) | (detail::same_bits<Bits>(b) & ~mask);
    return detail::same_bits<T>(bits);
  }
}

}  // namespace opwright
