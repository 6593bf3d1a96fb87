// Exact arithmetic, the same on every backend.
#pragma once

#include "opwright/bits.h"

namespace opwright {

/// |x| of an integer; the smallest one is its own, as in torch.
template <class T>
OPWRIGHT_INLINE T abs(T x) {
  return x < 0 ? static_cast<T>(0 - static_cast<uint64_t>(x)) : x;
}

/// torch.minimum: NaN if either is NaN, the first if they are equal.
template <class T>
OPWRIGHT_INLINE T min(T x, T y) {
  return y < x || y != y ? y : x;
}

/// torch.maximum: NaN if either is NaN, the first if they are equal.
template <class T>
OPWRIGHT_INLINE T max(T x, T y) {
  return y > x || y != y ? y : x;
}

/// 0 - x, which is 0 for 0. In one expression with a conversion or |x| GCC 12 makes -x of it, which is -0.
template <class T>
OPWRIGHT_INLINE T from_zero(T x) {
  return T(0) - x;
}

/// A number without what is behind the point, as an integer. Where that is converted back, GCC makes trunc(x) of both,
/// which is -0 where the integer is 0, and goes on beyond the last integer.
template <class Integer, class T>
OPWRIGHT_INLINE Integer truncated(T x) {
#if defined(__has_builtin) && !defined(__CUDACC__)
#if __has_builtin(__builtin_assoc_barrier)
  return __builtin_assoc_barrier(static_cast<Integer>(x));
#endif
#endif
  return static_cast<Integer>(x);
}

/// torch.sign: -1, 0 or 1; 0 for NaN.
template <class T>
OPWRIGHT_INLINE T sign(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}

/// torch.bitwise_left_shift: zero where all bits are shifted out.
template <class T>
OPWRIGHT_INLINE T shift_left(T x, T y) {
  constexpr T width = 8 * sizeof(T);
  const T shifted = static_cast<T>(static_cast<uint64_t>(x) << (y & (width - 1)));
  return (y < 0) | (y >= width) ? T(0) : shifted;
}

/// torch.bitwise_right_shift: zero or minus one, by the sign, where all bits are shifted out.
template <class T>
OPWRIGHT_INLINE T shift_right(T x, T y) {
  constexpr T last = 8 * sizeof(T) - 1;
  const bool out = (y < 0) | (y > last);
  const T shifted = static_cast<T>(x >> (out ? last : y));
  return out && T(-1) > T(0) ? T(0) : shifted;
}

namespace detail {

/// The remainder with the sign of y, from the one with the sign of x.
template <class T>
OPWRIGHT_INLINE T floored(T r, T y) {
  return r != 0 && (r < 0) != (y < 0) ? static_cast<T>(r + y) : r;
}

}  // namespace detail

/// torch.remainder of integers; y must not be 0.
template <class T>
OPWRIGHT_INLINE T remainder(T x, T y) {
  return detail::floored(static_cast<T>(x % y), y);
}

/// torch.floor_divide of integers; y must not be 0.
template <class T>
OPWRIGHT_INLINE T floor_divide(T x, T y) {
  const T quotient = static_cast<T>(x / y);
  return x % y != 0 && (x < 0) != (y < 0) ? static_cast<T>(quotient - 1) : quotient;
}

}  // namespace opwright
