// log, log1p (one algorithm for float and double), log2 and log10.
//
// Method: x = 2^n (1 + f) with 1 + f in [2/3, 4/3]; log(1 + f) = f - f²/2 + f³ R(f) with R minimax, added to n ln2 in
// two parts. log1p scales x and 1 separately, so that f carries what 1 + x rounds away. For log2 and log10 in double,
// and for functions made of logarithms, the logarithm is a sum of two doubles itself.
#pragma once

#include "opwright/vmath_exponential.h"
#include "opwright/vmath_parts.h"

namespace opwright {
namespace detail {

template <class T>
struct Logarithm;

template <>
struct Logarithm<float> {
  // (log(1 + f) - f + f²/2)/f³, -1/3 <= f <= 1/3; relative error of the logarithm: 2^-27.7
  static constexpr float R[] = {0x1.555506p-2f, -0x1.fffefap-3f, 0x1.99d05cp-3f, -0x1.559c34p-3f,
                                0x1.1ed450p-3f, -0x1.f33b50p-4f, 0x1.1e72b8p-3f, -0x1.07ad7ap-3f};
};

template <>
struct Logarithm<double> {
  // The same to 2^-58.8
  static constexpr double R[] = {
      0x1.5555555555538p-2, -0x1.fffffffffff36p-3, 0x1.99999999a00a1p-3, -0x1.5555555565123p-3,
      0x1.24924920b89eap-3, -0x1.fffffff105947p-4, 0x1.c71c74098e4dcp-4, -0x1.99999d53e12bap-4,
      0x1.745cb65a68edfp-4, -0x1.5554c8504bb57p-4, 0x1.3b1dad35ea2fbp-4, -0x1.249f6f9e2c1adp-4,
      0x1.1069fcc520666p-4, -0x1.fe6a44a9c0a86p-5, 0x1.efb7270b6b1b0p-5, -0x1.d6cce89cbe48cp-5,
      0x1.563aef5f38752p-5, -0x1.3a7b53faf54bfp-5, 0x1.5bfe7df6106adp-4, -0x1.5563c2b281a47p-4};
};

// log2((1 + s)/(1 - s))/s in s², |s| <= (√2 - 1)/(√2 + 1); relative error 2^-37.8
inline constexpr double kLog2Narrow[] = {0x1.71547652bef98p+1, 0x1.ec709d10c5697p-1, 0x1.2777817459d84p-1,
                                         0x1.a58ccbc7fa10dp-2, 0x1.5cf64119123a5p-2};

/// The logarithm of 2 to some base, and 1 / ln of that base. Of the first, 42 bits are in the upper part, so that its
/// product with an exponent is exact; of the second 26.
struct LogarithmBase {
  TwoParts of_two, per_natural;
};
inline constexpr LogarithmBase kBaseTwo = {{1, 0}, {0x1.7154768p+0, -0x1.6a3e80f444178p-27}};
inline constexpr LogarithmBase kBaseTen = {{0x1.34413509f78p-2, 0x1.fef311f12b358p-46},
                                           {0x1.bcb7b18p-2, -0x1.6c8d78e6acaa4p-29}};

// log1p(x)/x - 1 in x - 1/2, 0 <= x <= 1; relative error of log1p: 2^-27
inline constexpr float kLog1pToOne[] = {-0x1.833704p-3f, -0x1.2773a6p-2f, 0x1.0f952ep-3f, -0x1.15401cp-4f,
                                        0x1.2c2740p-5f,  -0x1.50f0bep-6f, 0x1.7a7eb8p-7f, -0x1.bc0734p-8f,
                                        0x1.5b6900p-8f,  -0x1.a386e0p-9f};

inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;
inline constexpr double kSqrtHalf = 0x1.6a09e667f3bcdp-1;
inline constexpr double kLog10Of2 = 0x1.34413509f79ffp-2;

/// The bits of 2^n for the n that brings x / 2^n into [low, 2 low).
template <class T>
OPWRIGHT_INLINE Bits<T> exponent_bits(T x, T low) {
  return (to_bits(x) - to_bits(low)) & kExponentMask<T>;
}

/// n ln2 + log(1 + f).
template <class T>
OPWRIGHT_INLINE T log_of_parts(T n, T f) {
  const T square = f * f;
  const T rest = fused(T(-0.5), square, n * Exponential<T>::ln2_low);
  const T low = fused(f * square, polynomial(f, Logarithm<T>::R), rest);
  return fused(n, Exponential<T>::ln2_high, f) + low;
}

/// The logarithm y of u where u is positive and finite, else its limit: -Inf at 0, Inf at Inf, NaN below 0 and at NaN.
template <class T>
OPWRIGHT_INLINE T with_log_limits(T y, T u) {
  const T finite = u > 0 ? y : (u == 0 ? -kInfinity<T> : kNan<T>);
  return u == kInfinity<T> ? u : finite;
}

/// 2^n (1 + f).
template <class T>
struct Scaled {
  T n, f;
};

/// x > 0 with 1 + f in [low, 2 low).
template <class T>
OPWRIGHT_INLINE Scaled<T> scaled_from(T low, T x) {
  constexpr int digits = Format<T>::mantissa_bits;
  const bool subnormal = x < Format<T>::smallest_normal;
  const T normal = subnormal ? x * power_of_two<T>(digits) : x;
  const Bits<T> bits = exponent_bits(normal, low);
  const T f = from_bits<T>(to_bits(normal) - bits) - 1;
  return {from_integer<T>(bits >> digits) - (subnormal ? T(digits) : T(0)), f};
}

template <class T>
OPWRIGHT_INLINE T log(T x) {
  const Scaled<T> scaled = scaled_from(T(2) / 3, x);
  return with_log_limits(log_of_parts(scaled.n, scaled.f), x);
}

template <class T>
OPWRIGHT_INLINE T log1p(T x) {
  const T u = 1 + x;
  const Bits<T> bits = exponent_bits(u, T(2) / 3);
  const T four_scaled = from_bits<T>(to_bits(T(4)) - bits);  // 4·2^-n, normal for every n
  const T f = from_bits<T>(to_bits(x) - bits) + (T(0.25) * four_scaled - 1);
  const T n = from_integer<T>(bits >> Format<T>::mantissa_bits);
  return with_sign_of(with_log_limits(log_of_parts(n, f), u), x);
}

/// The logarithm of x to a base. That of 1 + f is split so that its upper part has an exact product with 1 / ln base.
OPWRIGHT_INLINE double log_to_base(double x, LogarithmBase base) {
  const auto [n, f] = scaled_from(2.0 / 3, x);
  const double square = f * f, half_square = 0.5 * square;
  const double high = upper_half(f - half_square);
  const double low = fused(f * square, polynomial(f, Logarithm<double>::R), (f - high) - half_square);
  const TwoParts sum = ordered_sum(n * base.of_two.high, high * base.per_natural.high);
  const double rest = fused(low, base.per_natural.high, fused(high + low, base.per_natural.low, n * base.of_two.low));
  return with_log_limits(sum.high + (sum.low + rest), x);
}

/// n ln2 + log(1 + f) with about one rounding, where log_of_parts has up to three that count.
OPWRIGHT_INLINE double log_of_sum(double n, TwoParts f) {
  const double square = f.high * f.high;
  const TwoParts sum = ordered_sum(n * Exponential<double>::ln2_high, f.high);
  const double slope = square + (1 - f.high);  // of the logarithm, near enough for the low part
  const double rest = fused(f.low, slope, fused(n, Exponential<double>::ln2_low, sum.low));
  const double low = fused(-0.5, square, rest);
  return sum.high + fused(f.high * square, polynomial(f.high, Logarithm<double>::R), low);
}

/// log(1 + t) + n ln2 for t >= 0, as accurate; NaN where t is NaN or below -1.
OPWRIGHT_INLINE double log1p_of_sum(TwoParts t, double n) {
  const double u = 1 + t.high;
  const Bits<double> bits = exponent_bits(u, 2.0 / 3);
  const double scale = 0.25 * from_bits<double>(to_bits(4.0) - bits);
  const TwoParts f = exact_sum(from_bits<double>(to_bits(t.high) - bits), scale - 1);
  const double exponent = from_integer<double>(bits >> Format<double>::mantissa_bits);
  return with_log_limits(log_of_sum(n + exponent, {f.high, fused(t.low, scale, f.low)}), u);
}

/// log2(x) in double to 2^-37, relative also near x = 1: enough for one rounding to float. For x not subnormal.
OPWRIGHT_INLINE double log2_narrow(double x) {
  const Bits<double> bits = exponent_bits(x, kSqrtHalf);
  const double m = from_bits<double>(to_bits(x) - bits);
  const double s = (m - 1) / (m + 1);
  const double n = from_integer<double>(bits >> Format<double>::mantissa_bits);
  return with_log_limits(fused(s, polynomial(s * s, kLog2Narrow), n), x);
}

/// log(x) in double to 2^-37. For x not subnormal.
OPWRIGHT_INLINE double log_narrow(double x) { return kLn2 * log2_narrow(x); }

}  // namespace detail

OPWRIGHT_INLINE float log(float x) { return detail::log(x); }
OPWRIGHT_INLINE double log(double x) { return detail::log(x); }

OPWRIGHT_INLINE float log1p(float x) { return detail::log1p(x); }
OPWRIGHT_INLINE double log1p(double x) { return detail::log1p(x); }

/// log(1 + x) for 0 <= x <= 1, in a third of the instructions. In powers of x - 1/2 no coefficient cancels another.
OPWRIGHT_INLINE float log1p_to_one(float x) {
  const float from_middle = x - 0.5f, square = from_middle * from_middle;
  return detail::fused(x, detail::interleaved_polynomial(from_middle, square, detail::kLog1pToOne), x);
}

OPWRIGHT_INLINE float log2(float x) { return static_cast<float>(detail::log2_narrow(x)); }
OPWRIGHT_INLINE double log2(double x) { return detail::log_to_base(x, detail::kBaseTwo); }

OPWRIGHT_INLINE float log10(float x) { return static_cast<float>(detail::kLog10Of2 * detail::log2_narrow(x)); }
OPWRIGHT_INLINE double log10(double x) { return detail::log_to_base(x, detail::kBaseTen); }

}  // namespace opwright
