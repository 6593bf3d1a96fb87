// asin, acos, atan and atan2.
//
// Method: a minimax polynomial on the part of the range where the function is nearly linear, and the classical
// identities for the rest: asin(x) = π/2 - 2 asin(√((1 - x)/2)), atan(x) = π/2 - atan(1/x). asin and acos are computed
// in double, because near 1/2 a root rounded to float costs more than 2 ulp. In double all four are
// k·π/2 + x + x³ P(x²), the sum of the first two with what it rounds away.
#pragma once

#include "opwright/vmath_parts.h"

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

// The same for double: 2^-58.8, |x| <= 1/2
inline constexpr double kDoubleArcSine[] = {
    0x1.5555555555577p-3, 0x1.333333332e1p-4,    0x1.6db6db7214386p-5, 0x1.f1c71a94606ep-6,  0x1.6e8bdeee483f1p-6,
    0x1.1c49ef7c5998ep-6, 0x1.ca1fa07c027bbp-7,  0x1.7584fab1ce43fp-7, 0x1.613f72c9bc2cep-7, 0x1.e5cca082b1bf3p-9,
    0x1.63a8225f46506p-6, -0x1.580d1b2f7c637p-6, 0x1.0b4b5faef5953p-5};

// 2^-56.1, |x| <= 1
inline constexpr double kDoubleArcTangent[] = {
    -0x1.5555555555526p-2, 0x1.99999999955e4p-3,  -0x1.249249238064cp-3, 0x1.c71c7181aa174p-4,   -0x1.745d11fd95432p-4,
    0x1.3b136cb1c2bb2p-4,  -0x1.110e97edd79fcp-4, 0x1.e1bfe37859155p-5,  -0x1.ae754a28f014fp-5,  0x1.8334d443cf85cp-5,
    -0x1.5aad99801f922p-5, 0x1.2e82556fda903p-5,  -0x1.f1f92101564b7p-6, 0x1.72bebd874d826p-6,   -0x1.dc85affc7152p-7,
    0x1.f6e77f6f3e51fp-8,  -0x1.9bbaf7e486f74p-9, 0x1.e51d677af51c1p-11, -0x1.6b357ec7fd9e6p-13, 0x1.0241876f4cb6ap-16};

inline constexpr double kHalfPiOfDouble = 0x1.921fb54442d18p+0, kHalfPiBelowDouble = 0x1.1a62633145c07p-54;

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

/// quarters·π/2 + x + x·rest, for small rest, 0, 1 or 2 quarters, and |x| <= 1.
OPWRIGHT_INLINE double turned(double quarters, double x, double rest) {
  const TwoParts sum = ordered_sum(quarters * kHalfPiOfDouble, x);
  return sum.high + fused(x, rest, fused(quarters, kHalfPiBelowDouble, sum.low));
}

/// x and (asin(x) - x)/x for the x whose arc sine gives asin and acos of a >= 0: a up to 1/2, √((1 - a)/2) from there
/// to 1, NaN beyond.
struct ArcSine {
  bool halved;
  double x, rest;
};
OPWRIGHT_INLINE ArcSine arc_sine(double a) {
  const bool halved = a > 0.5;
  const double half_distance = 0.5 - 0.5 * a, square = halved ? half_distance : a * a;
  const double root = __builtin_sqrt(half_distance);
  return {halved, halved ? root : a, square * polynomial(square, kDoubleArcSine)};
}

/// quarters·π/2 + atan(x), |x| <= 1
OPWRIGHT_INLINE double turned_arc_tangent(double quarters, double x) {
  const double square = x * x;
  return turned(quarters, x, square * polynomial(square, kDoubleArcTangent));
}

}  // namespace detail

OPWRIGHT_INLINE float asin(float x) {
  const double a = detail::magnitude(x);
  const double angle = detail::half_arc_sine(a);
  return detail::with_sign_of(static_cast<float>(a > 0.5 ? detail::kPi / 2 - 2 * angle : angle), x);
}
OPWRIGHT_INLINE double asin(double x) {
  const detail::ArcSine angle = detail::arc_sine(detail::magnitude(x));
  const double y = detail::turned(angle.halved ? 1 : 0, angle.halved ? -2 * angle.x : angle.x, angle.rest);
  return detail::with_sign_of(y, x);
}

OPWRIGHT_INLINE float acos(float x) {
  const double a = detail::magnitude(x);
  const double angle = detail::half_arc_sine(a);
  const double of_magnitude = a > 0.5 ? 2 * angle : detail::kPi / 2 - angle;
  return static_cast<float>(x < 0 ? detail::kPi - of_magnitude : of_magnitude);
}
OPWRIGHT_INLINE double acos(double x) {
  const detail::ArcSine angle = detail::arc_sine(detail::magnitude(x));
  const double quarters = angle.halved ? (x < 0 ? 2 : 0) : 1, size = angle.halved ? 2 * angle.x : angle.x;
  return detail::turned(quarters, angle.halved == (x < 0) ? -size : size, angle.rest);
}

OPWRIGHT_INLINE float atan(float x) {
  const float a = detail::magnitude(x);
  const bool beyond = a > 1;
  const float angle = detail::arc_tangent_below_one(beyond ? 1 / a : a);
  return detail::with_sign_of(beyond ? detail::kHalfPiHigh - (angle - detail::kHalfPiLow) : angle, x);
}
OPWRIGHT_INLINE double atan(double x) {
  const double a = detail::magnitude(x);
  const bool beyond = a > 1;
  return detail::with_sign_of(detail::turned_arc_tangent(beyond ? 1 : 0, beyond ? -1 / a : a), x);
}

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
OPWRIGHT_INLINE double atan2(double y, double x) {
  const double a = detail::magnitude(x), b = detail::magnitude(y);
  const bool steep = b > a, behind = detail::to_bits(x) < 0;
  const double smaller = steep ? a : b, larger = steep ? b : a;
  const double ratio = smaller / larger;
  const double quotient = larger == 0 ? 0.0 : (smaller == detail::kInfinity<double> ? 1.0 : ratio);
  const double quarters = steep ? 1 : (behind ? 2 : 0);
  const double angle = detail::turned_arc_tangent(quarters, steep != behind ? -quotient : quotient);
  return ((x != x) | (y != y)) ? x + y : detail::with_sign_of(angle, y);
}

}  // namespace opwright
