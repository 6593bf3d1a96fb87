// sin, cos and tan over the whole range of float.
//
// Method: x·2/π = 4m + n + t with n in 0..3 and |t| <= 1/2, computed in double (Payne and Hanek 1983, with the bits of
// 2/π that only make multiples of 4 left out in a table), then minimax polynomials in t.
#pragma once

#include "opwright/vmath_bits.h"
#include "opwright/vmath_two_over_pi.h"

namespace opwright {
namespace detail {

// sin(tπ/2)/t in t², |t| <= 1/2; relative error 2^-37.7
inline constexpr double kSine[] = {0x1.921fb5443af1ep+0, -0x1.4abbce5647df9p-1, 0x1.466bba884e94dp-4,
                                   -0x1.32ca8399c9f89p-8, 0x1.4bc1da260c45bp-13};

// cos(tπ/2) in t², |t| <= 1/2; relative error 2^-43.8
inline constexpr double kCosine[] = {0x1.ffffffffffdafp-1,  -0x1.3bd3cc9bd08e5p+0, 0x1.03c1f073c76p-2,
                                     -0x1.55d3b96dd06d5p-6, 0x1.e1e75e53ef46p-11,  -0x1.a0d80ca9ce7b7p-16};

/// An angle of (quadrant + fraction)·π/2, the quadrant modulo 4.
struct QuarterTurns {
  double fraction;
  std::int64_t quadrant;
};

/// x has 24 bits and the row's first part at most 29, so their product is exact; the second part adds bits down to
/// 2^-57, while no float comes closer than 2^-31 to a multiple of π/2. Inf gives NaN.
OPWRIGHT_INLINE QuarterTurns reduce_to_quadrant(float x) {
  const std::int32_t exponent = (to_bits(x) >> Format<float>::mantissa_bits) & 0xff;
  const std::int32_t above = exponent - kTwoOverPiFirstExponent;
  const std::int32_t positive = above > 0 ? above : 0;
  const std::int32_t row = positive < kTwoOverPiRows ? positive : kTwoOverPiRows - 1;
  const double high = static_cast<double>(x) * kTwoOverPiHigh[row];
  const double low = static_cast<double>(x) * kTwoOverPiLow[row];
  const Rounded<double> n = round_to_integer(high + low);
  return {(high - n.value) + low, n.integer};
}

OPWRIGHT_INLINE double sine_of_fraction(double t) { return t * polynomial(t * t, kSine); }
OPWRIGHT_INLINE double cosine_of_fraction(double t) { return polynomial(t * t, kCosine); }

/// The sine of an angle given in quarter turns.
OPWRIGHT_INLINE float sine(double fraction, std::int64_t quadrant) {
  const bool odd = (quadrant & 1) != 0;
  const double y = odd ? cosine_of_fraction(fraction) : sine_of_fraction(fraction);
  return static_cast<float>((quadrant & 2) != 0 ? -y : y);
}

}  // namespace detail

OPWRIGHT_INLINE float sin(float x) {
  const detail::QuarterTurns angle = detail::reduce_to_quadrant(x);
  return detail::sine(angle.fraction, angle.quadrant);
}
inline double sin(double x) { return __builtin_sin(x); }

OPWRIGHT_INLINE float cos(float x) {
  const detail::QuarterTurns angle = detail::reduce_to_quadrant(x);
  return detail::sine(angle.fraction, angle.quadrant + 1);
}
inline double cos(double x) { return __builtin_cos(x); }

OPWRIGHT_INLINE float tan(float x) {
  const detail::QuarterTurns angle = detail::reduce_to_quadrant(x);
  const double s = detail::sine_of_fraction(angle.fraction), c = detail::cosine_of_fraction(angle.fraction);
  const bool odd = (angle.quadrant & 1) != 0;
  return static_cast<float>((odd ? -c : s) / (odd ? s : c));
}
inline double tan(double x) { return __builtin_tan(x); }

}  // namespace opwright
