// sqrt, rsqrt and pow.
//
// Method of pow in float: 2^(y log2|x|) in double, rounded once.
#pragma once

#include "opwright/vmath_logarithm.h"

namespace opwright {

OPWRIGHT_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
OPWRIGHT_INLINE double sqrt(double x) { return __builtin_sqrt(x); }

OPWRIGHT_INLINE float rsqrt(float x) { return 1 / __builtin_sqrtf(x); }
OPWRIGHT_INLINE double rsqrt(double x) { return 1 / __builtin_sqrt(x); }

/// x^y with C's rules for zeros, infinities and NaN. Written with & and |, as && and || are control flow to a
/// vectoriser.
OPWRIGHT_INLINE float pow(float x, float y) {
  const float a = detail::magnitude(x), half_y = 0.5f * y;
  const bool is_fractional = __builtin_floorf(y) != y;
  const bool is_odd = !is_fractional & (__builtin_floorf(half_y) != half_y);
  const float power = static_cast<float>(detail::exp2_narrow(static_cast<double>(y) * detail::log2_narrow(a)));
  const float real = is_odd ? detail::with_sign_of(power, x) : power;
  const bool is_complex = is_fractional & (x < 0) & (a < detail::kInfinity<float>);
  const bool is_one = (x == 1) | (y == 0) | ((x == -1) & (detail::magnitude(y) == detail::kInfinity<float>));
  return is_one ? 1.0f : (is_complex ? detail::kNan<float> : real);
}
inline double pow(double x, double y) { return __builtin_pow(x, y); }

}  // namespace opwright
