// sin, cos and tan over the whole range of float, sin and cos of doubles that are near zero.
//
// Two methods. Near zero: x = n·π/2 + t with |t| <= π/4, and n·π/2 subtracted in three parts with fused multiplications
// (Cody and Waite 1980). Anywhere, for float: x·2/π = 4m + n + t with n in 0..3 and |t| <= 1/2, in double (Payne and
// Hanek 1983, with the bits of 2/π that only make multiples of 4 left out in a table). Then minimax polynomials in t.
//
// The first takes a quarter of the time of the second, and vector code that chooses between them would compute both. So
// kernels look at the angles of a run before they begin, and are compiled for each of the two.
#pragma once

#include "opwright/vmath_bits.h"
#include "opwright/vmath_two_over_pi.h"

namespace opwright {

/// Where the angles of a run are.
enum class Angles { near, anywhere };

constexpr std::ptrdiff_t angle_run = 1024;  // points whose angles are looked at together

namespace detail {

template <class T>
struct NearAngles;

template <>
struct NearAngles<float> {
  static constexpr float end = 0x1p20f;
  static constexpr float two_over_pi = 0x1.45f306p-1f;
  static constexpr float half_pi[] = {0x1.921fb6p+0f, -0x1.777a5cp-25f, -0x1.ee59dap-50f};
  // (sin(t)/t - 1)/t² and (cos(t) - 1 + t²/2)/t⁴ in t², |t| <= π/4; relative errors of the results 2^-27.8 and 2^-32.9
  static constexpr float sine[] = {-0x1.555544p-3f, 0x1.1106c6p-7f, -0x1.991c26p-13f};
  static constexpr float cosine[] = {0x1.55554ap-5f, -0x1.6c0c24p-10f, 0x1.99e61cp-16f};
};

template <>
struct NearAngles<double> {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  static constexpr double end = 0x1p28;
#else
  static constexpr double end = 0;  // the parts of π/2 have too many bits for products that are rounded
#endif
  static constexpr double two_over_pi = 0x1.45f306dc9c883p-1;
  static constexpr double half_pi[] = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110};
  // The same to 2^-57.4 and 2^-59.5
  static constexpr double sine[] = {-0x1.5555555555548p-3, 0x1.111111110f70bp-7,   -0x1.a01a019be4586p-13,
                                    0x1.71de3550e788bp-19, -0x1.ae5e481782fadp-26, 0x1.5d8a51ac5a7ecp-33};
  static constexpr double cosine[] = {0x1.555555555554ap-5,   -0x1.6c16c16c14eb0p-10, 0x1.a01a019c6dc4dp-16,
                                      -0x1.27e4f7da1addap-22, 0x1.1ee9cc2225639p-29,  -0x1.8f9e7caedc5b1p-37};
};

/// x = n·π/2 + t + rest with |t| <= π/4 and the rest below an ulp of t, for x near zero.
template <class T>
struct NearZero {
  T t, rest;
  Bits<T> n;  // modulo 4, in its low bits

  OPWRIGHT_INLINE explicit NearZero(T x) {
    constexpr T magic = Format<T>::round_magic;
    const auto& half_pi = NearAngles<T>::half_pi;
    const T sum = fused(x, NearAngles<T>::two_over_pi, magic), whole_n = sum - magic;
    const T whole = fused(-whole_n, half_pi[0], x);  // exact
    const T part = whole_n * half_pi[1], lost = fused(whole_n, half_pi[1], -part);
    t = whole - part;
    rest = ((whole - t) - part) - fused(whole_n, half_pi[2], lost);
    n = to_bits(sum);
  }
};

/// The sine of x + quarters·π/2 for x near zero. The rest counts in the sine of t alone, because no cosine there is so
/// small that it would.
template <int quarters, class T>
OPWRIGHT_INLINE T near_sine(T x) {
  const NearZero<T> angle(x);
  const T t = angle.t, square = t * t;
  const T sine = fused(t * square, polynomial(square, NearAngles<T>::sine), angle.rest) + t;
  const T cosine = fused(square, fused(square, polynomial(square, NearAngles<T>::cosine), T(-0.5)), T(1));
  const Bits<T> quadrant = angle.n + quarters;
  const T y = (quadrant & 1) != 0 ? cosine : sine;
  const T turned = from_bits<T>(to_bits(y) ^ ((quadrant & 2) << (8 * sizeof(T) - 2)));
  return quarters == 0 && x == 0 ? x : turned;  // -0 stays
}

/// The tangent of x near zero: a quotient of a sine and a cosine, each in two parts, with the remainder of the division.
OPWRIGHT_INLINE double near_tangent(double x) {
  const NearZero<double> angle(x);
  const double t = angle.t, square = t * t, half = 0.5 * square, one_less = 1 - half;
  const double small_sine = fused(t * square, polynomial(square, NearAngles<double>::sine), angle.rest);
  const double sine = t + small_sine, sine_rest = (t - sine) + small_sine;
  const double lost = ((1 - one_less) - half) - t * angle.rest;
  const double small_cosine = fused(square * square, polynomial(square, NearAngles<double>::cosine), lost);
  const double cosine = one_less + small_cosine, cosine_rest = (one_less - cosine) + small_cosine;
  const bool odd = (angle.n & 1) != 0;
  const double above = odd ? -cosine : sine, above_rest = odd ? -cosine_rest : sine_rest;
  const double below = odd ? sine : cosine, below_rest = odd ? sine_rest : cosine_rest;
  const double y = above / below;
  const double remainder = fused(-y, below, above) + fused(-y, below_rest, above_rest);
  return x == 0 ? x : y + remainder / below;
}

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
/// 2^-57, while no float comes closer than 2^-31 to a multiple of π/2. Inf gives NaN. All that is near has the first row.
template <Angles angles = Angles::anywhere>
OPWRIGHT_INLINE QuarterTurns reduce_to_quadrant(float x) {
  const std::int32_t exponent = (to_bits(x) >> Format<float>::mantissa_bits) & 0xff;
  const std::int32_t above = angles == Angles::near ? 0 : exponent - kTwoOverPiFirstExponent;
  const std::int32_t positive = above > 0 ? above : 0;
  const std::int32_t row = positive < kTwoOverPiRows ? positive : kTwoOverPiRows - 1;
  const double high = static_cast<double>(x) * kTwoOverPiHigh[row];
  const double low = static_cast<double>(x) * kTwoOverPiLow[row];
  const Rounded<double> n = round_to_integer(high + low);
  return {(high - n.value) + low, n.integer};
}

OPWRIGHT_INLINE double sine_of_fraction(double t) { return t * polynomial(t * t, kSine); }
OPWRIGHT_INLINE double cosine_of_fraction(double t) { return polynomial(t * t, kCosine); }

/// The sine of x + quarters·π/2.
template <Angles angles, int quarters>
OPWRIGHT_INLINE float sine(float x) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  if constexpr (angles == Angles::near) return near_sine<quarters>(x);
#endif
  const QuarterTurns angle = reduce_to_quadrant<angles>(x);
  const std::int64_t quadrant = angle.quadrant + quarters;
  const bool odd = (quadrant & 1) != 0;
  const double y = odd ? cosine_of_fraction(angle.fraction) : sine_of_fraction(angle.fraction);
  return static_cast<float>((quadrant & 2) != 0 ? -y : y);
}

}  // namespace detail

/// The larger one of a magnitude and that of an angle, as bits; infinity and NaN are the largest.
template <class T>
OPWRIGHT_INLINE detail::Bits<T> farther(detail::Bits<T> farthest, T angle) {
  const detail::Bits<T> own = detail::to_bits(angle) & ~detail::kSignBit<T>;
  return own > farthest ? own : farthest;
}

/// Whether all angles are near, up to the farthest one.
inline bool are_near(std::int32_t farthest) { return farthest < detail::to_bits(detail::NearAngles<float>::end); }
inline bool are_near(std::int64_t farthest) { return farthest < detail::to_bits(detail::NearAngles<double>::end); }

template <Angles angles = Angles::anywhere>
OPWRIGHT_INLINE float sin(float x) {
  return detail::sine<angles, 0>(x);
}
template <Angles angles = Angles::anywhere>
OPWRIGHT_INLINE double sin(double x) {
  if constexpr (angles == Angles::near) return detail::near_sine<0>(x);
  return __builtin_sin(x);
}

template <Angles angles = Angles::anywhere>
OPWRIGHT_INLINE float cos(float x) {
  return detail::sine<angles, 1>(x);
}
template <Angles angles = Angles::anywhere>
OPWRIGHT_INLINE double cos(double x) {
  if constexpr (angles == Angles::near) return detail::near_sine<1>(x);
  return __builtin_cos(x);
}

template <Angles angles = Angles::anywhere>
OPWRIGHT_INLINE float tan(float x) {
  const detail::QuarterTurns angle = detail::reduce_to_quadrant<angles>(x);
  const double s = detail::sine_of_fraction(angle.fraction), c = detail::cosine_of_fraction(angle.fraction);
  const bool odd = (angle.quadrant & 1) != 0;
  return static_cast<float>((odd ? -c : s) / (odd ? s : c));
}
template <Angles angles = Angles::anywhere>
OPWRIGHT_INLINE double tan(double x) {
  if constexpr (angles == Angles::near) return detail::near_tangent(x);
  return __builtin_tan(x);
}

}  // namespace opwright
