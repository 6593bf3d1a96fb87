// asin, acos, atan and atan2.
//
// Method: a minimax polynomial on the part of the range where the function is nearly linear, and the classical
// identities for the rest: asin(x) = π/2 - 2 asin(√((1 - x)/2)), atan(x) = π/2 - atan(1/x). asin and acos are computed
// in double, because near 1/2 a root rounded to float costs more than 2 ulp.
#pragma once

#include "opwright/vmath_bits.h"

namespace opwright {
namespace detail {

// (asin(x)/x - 1)/x² in x², |x| <= 1/2; relative error of asin: 2^-34.9
inline constexpr double kArcSine[] = {0x1.555555be82886p-3, 0x1.3332c73e4d660p-4, 0x1.6dd719039ae3fp-5,
                                      0x1.ed885142a458cp-6, 0x1.92f560b90ff98p-6, 0x1.e59e14c818caep-8,
                                      0x1.1dcfedec88875p-5};

// (atan(x)/x - 1)/x² in x², |x| <= 1; relative error of atan: 2^-28.3
inline constexpr float kArcTangent[] = {-0x1.555548p-2f, 0x1.9993dep-3f,  -0x1.243328p-3f,
                                        0x1.c13e86p-4f,  -0x1.59eedap-4f, 0x1.e04ff2p-5f,
                                        -0x1.049ae6p-5f, 0x1.704616p-7f,  -0x1.e865dp-10f};

inline constexpr double kPi = 0x1.921fb54442d18p+1;
inline constexpr float kPiHigh = 0x1.921fb6p+1f, kPiLow = -0x1.777a5cp-24f;  // π = kPiHigh + kPiLow
inline constexpr float kHalfPiHigh = 0x1.921fb6p+0f, kHalfPiLow = -0x1.777a5cp-25f;

/// asin(x) for 0 <= x <= 1/2, asin(√((1 - x)/2)) for 1/2 < x <= 1, NaN beyond.
OPWRIGHT_INLINE double half_arc_sine(double x) {
  const double root = __builtin_sqrt(0.5 - 0.5 * x);
  return odd_polynomial(x > 0.5 ? root : x, kArcSine);
}

/// atan of the quotient y/x of two numbers, 0 <= y <= x.
OPWRIGHT_INLINE float arc_tangent_below_one(float quotient) { return odd_polynomial(quotient, kArcTangent); }

}  // namespace detail

OPWRIGHT_INLINE float asin(float x) {
  const double a = detail::magnitude(x);
  const double angle = detail::half_arc_sine(a);
  return detail::with_sign_of(static_cast<float>(a > 0.5 ? detail::kPi / 2 - 2 * angle : angle), x);
}
inline double asin(double x) { return __builtin_asin(x); }

OPWRIGHT_INLINE float acos(float x) {
  const double a = detail::magnitude(x);
  const double angle = detail::half_arc_sine(a);
  const double of_magnitude = a > 0.5 ? 2 * angle : detail::kPi / 2 - angle;
  return static_cast<float>(x < 0 ? detail::kPi - of_magnitude : of_magnitude);
}
inline double acos(double x) { return __builtin_acos(x); }

OPWRIGHT_INLINE float atan(float x) {
  const float a = detail::magnitude(x);
  const bool beyond = a > 1;
  const float angle = detail::arc_tangent_below_one(beyond ? 1 / a : a);
  return detail::with_sign_of(beyond ? detail::kHalfPiHigh - (angle - detail::kHalfPiLow) : angle, x);
}
inline double atan(double x) { return __builtin_atan(x); }

/// The angle of the point (x, y), in (-π, π]; C's rules for zeros and infinities.
OPWRIGHT_INLINE float atan2(float y, float x) {
  const float a = detail::magnitude(x), b = detail::magnitude(y);
  const bool steep = b > a;
  const float smaller = steep ? a : b, larger = steep ? b : a;
  const float ratio = smaller / larger;
  const float quotient = larger == 0 ? 0.0f : (smaller == detail::kInfinity<float> ? 1.0f : ratio);
  const float angle = detail::arc_tangent_below_one(quotient);
  const float acute = steep ? detail::kHalfPiHigh - (angle - detail::kHalfPiLow) : angle;
  const float unsigned_angle = detail::to_bits(x) < 0 ? detail::kPiHigh - (acute - detail::kPiLow) : acute;
  return ((x != x) | (y != y)) ? x + y : detail::with_sign_of(unsigned_angle, y);
}
inline double atan2(double y, double x) { return __builtin_atan2(y, x); }

}  // namespace opwright
