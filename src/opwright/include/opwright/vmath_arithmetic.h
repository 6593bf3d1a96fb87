// abs, sign, min, max, fma, rounding to integers, and what is left of a division.
#pragma once

#include "opwright/vmath_bits.h"

namespace opwright {

OPWRIGHT_INLINE float abs(float x) { return detail::magnitude(x); }
OPWRIGHT_INLINE double abs(double x) { return detail::magnitude(x); }

/// |x| of an integer; the smallest one is its own, as in torch.
template <class T>
OPWRIGHT_INLINE T abs(T x) {
  return x < 0 ? static_cast<T>(0 - static_cast<std::uint64_t>(x)) : x;
}

OPWRIGHT_INLINE float floor(float x) { return __builtin_floorf(x); }
OPWRIGHT_INLINE double floor(double x) { return __builtin_floor(x); }

OPWRIGHT_INLINE float ceil(float x) { return __builtin_ceilf(x); }
OPWRIGHT_INLINE double ceil(double x) { return __builtin_ceil(x); }

OPWRIGHT_INLINE float trunc(float x) { return __builtin_truncf(x); }
OPWRIGHT_INLINE double trunc(double x) { return __builtin_trunc(x); }

/// Half to even, as torch.round.
OPWRIGHT_INLINE float round(float x) { return __builtin_rintf(x); }
OPWRIGHT_INLINE double round(double x) { return __builtin_rint(x); }

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

/// x·y + z, rounded once where the machine can.
OPWRIGHT_INLINE float fma(float x, float y, float z) { return detail::fused(x, y, z); }
OPWRIGHT_INLINE double fma(double x, double y, double z) { return detail::fused(x, y, z); }

/// torch.sign: -1, 0 or 1; 0 for NaN.
template <class T>
OPWRIGHT_INLINE T sign(T x) {
  return static_cast<T>((x > 0) - (x < 0));
}

/// |x| with the sign of y, that of a zero or a NaN too.
template <class T>
OPWRIGHT_INLINE T copysign(T x, T y) {
  return detail::with_sign_of(detail::magnitude(x), y);
}

/// √(x² + y²); in float by way of double, where no square overflows. Infinite where one of them is, even beside a NaN.
OPWRIGHT_INLINE float hypot(float x, float y) {
  const double a = x, b = y;
  const bool infinite = (detail::magnitude(x) == detail::kInfinity<float>) | (detail::magnitude(y) == detail::kInfinity<float>);
  const float root = static_cast<float>(__builtin_sqrt(a * a + b * b));
  return infinite ? detail::kInfinity<float> : root;
}
inline double hypot(double x, double y) { return __builtin_hypot(x, y); }

/// torch.bitwise_left_shift: zero where all bits are shifted out.
template <class T>
OPWRIGHT_INLINE T shift_left(T x, T y) {
  constexpr T width = 8 * sizeof(T);
  const T shifted = static_cast<T>(static_cast<std::uint64_t>(x) << (y & (width - 1)));
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

/// C's fmod, exact: the sign of x.
///
/// Method: from the largest k down, subtract from |x| the nearest multiple of |y|·2^28k. The multiplier has 28 bits and
/// y has 24, so each step is exact in double; ten steps cover the range of float.
OPWRIGHT_INLINE float fmod(float x, float y) {
  constexpr int step_bits = 28, steps = 10;
  const double a = detail::magnitude(x), b = detail::magnitude(y);
  double left = a;
  double divisor = b * detail::power_of_two<double>(step_bits * (steps - 1));
  double reciprocal = 1 / divisor;
  for (int step = 0; step < steps; ++step) {
    left -= detail::round_to_integer(left * reciprocal).value * divisor;
    divisor *= detail::power_of_two<double>(-step_bits);
    reciprocal *= detail::power_of_two<double>(step_bits);
  }
  const double reduced = a < b ? a : (left < 0 ? left + b : left);
  return detail::with_sign_of(static_cast<float>(reduced), x);
}
inline double fmod(double x, double y) { return __builtin_fmod(x, y); }

namespace detail {

/// The remainder with the sign of y, from the one with the sign of x.
template <class T>
OPWRIGHT_INLINE T floored(T r, T y) {
  return r != 0 && (r < 0) != (y < 0) ? static_cast<T>(r + y) : r;
}

}  // namespace detail

/// torch.remainder: the sign of y, as Python's %.
OPWRIGHT_INLINE float remainder(float x, float y) { return detail::floored(fmod(x, y), y); }
OPWRIGHT_INLINE double remainder(double x, double y) { return detail::floored(fmod(x, y), y); }

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
