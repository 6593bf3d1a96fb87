// abs, fma, rounding to integers, and remainders.
#pragma once

#include "opwright/arithmetic.h"
#include "opwright/vmath_bits.h"

namespace opwright {

OPWRIGHT_INLINE float abs(float x) { return detail::magnitude(x); }
OPWRIGHT_INLINE double abs(double x) { return detail::magnitude(x); }

OPWRIGHT_INLINE float floor(float x) { return __builtin_floorf(x); }
OPWRIGHT_INLINE double floor(double x) { return __builtin_floor(x); }

OPWRIGHT_INLINE float ceil(float x) { return __builtin_ceilf(x); }
OPWRIGHT_INLINE double ceil(double x) { return __builtin_ceil(x); }

OPWRIGHT_INLINE float trunc(float x) { return __builtin_truncf(x); }
OPWRIGHT_INLINE double trunc(double x) { return __builtin_trunc(x); }

/// Half to even, as torch.round.
OPWRIGHT_INLINE float round(float x) { return __builtin_rintf(x); }
OPWRIGHT_INLINE double round(double x) { return __builtin_rint(x); }

/// x·y + z, rounded once where the machine can.
OPWRIGHT_INLINE float fma(float x, float y, float z) { return detail::fused(x, y, z); }
OPWRIGHT_INLINE double fma(double x, double y, double z) { return detail::fused(x, y, z); }

/// |x| with the sign of y, that of a zero or a NaN too.
template <class T>
OPWRIGHT_INLINE T copysign(T x, T y) {
  return detail::with_sign_of(detail::magnitude(x), y);
}

/// √(x² + y²); in float by way of double, where no square overflows. Infinite where one of them is, even beside a NaN.
OPWRIGHT_INLINE float hypot(float x, float y) {
  const double a = x, b = y;
  const bool infinite =
      (detail::magnitude(x) == detail::kInfinity<float>) | (detail::magnitude(y) == detail::kInfinity<float>);
  const float root = static_cast<float>(__builtin_sqrt(a * a + b * b));
  return infinite ? detail::kInfinity<float> : root;
}
inline double hypot(double x, double y) { return __builtin_hypot(x, y); }

/// C's fmod, exact: the sign of x.
///
/// Method: from the largest k down, subtract from |x| the nearest multiple of |y|·2^(bits·k). What is left is below that,
/// and a multiple of a 2^24th of it, so a fused step is exact with a multiplier of 50 bits. Without fused steps, it has
/// 28 bits, and its product with the 24 bits of y is exact. Both cover the range of float, 2^277.
OPWRIGHT_INLINE float fmod(float x, float y) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  constexpr int step_bits = 50, steps = 6;
#else
  constexpr int step_bits = 28, steps = 10;
#endif
  const double a = detail::magnitude(x), b = detail::magnitude(y);
  double left = a;
  double divisor = b * detail::power_of_two<double>(step_bits * (steps - 1));
  double reciprocal = 1 / divisor;
#pragma GCC unroll 10  // a loop inside would keep the loop over elements from becoming vector code
  for (int step = 0; step < steps; ++step) {
    left = detail::fused(-detail::round_to_integer(left * reciprocal).value, divisor, left);
    divisor *= detail::power_of_two<double>(-step_bits);
    reciprocal *= detail::power_of_two<double>(step_bits);
  }
  const double reduced = a < b ? a : (left < 0 ? left + b : left);
  return detail::with_sign_of(static_cast<float>(reduced), x);
}
inline double fmod(double x, double y) { return __builtin_fmod(x, y); }

/// torch.remainder: the sign of y, as Python's %.
OPWRIGHT_INLINE float remainder(float x, float y) { return detail::floored(fmod(x, y), y); }
OPWRIGHT_INLINE double remainder(double x, double y) { return detail::floored(fmod(x, y), y); }

}  // namespace opwright
