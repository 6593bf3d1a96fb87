// log, log1p (one algorithm for float and double), log2 and log10.
//
// Method: x = 2^n (1 + f) with 1 + f in [2/3, 4/3]; log(1 + f) = f - f²/2 + f³ R(f) with R minimax, added to n ln2 in
// two parts. log1p scales x and 1 separately, so that f carries what 1 + x rounds away.
#pragma once

#include "opwright/vmath_exponential.h"

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

inline constexpr double kLn2 = 0x1.62e42fefa39efp-1;
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

template <class T>
OPWRIGHT_INLINE T log(T x) {
  constexpr int digits = Format<T>::mantissa_bits;
  const bool subnormal = x < Format<T>::smallest_normal;
  const T normal = subnormal ? x * power_of_two<T>(digits) : x;
  const Bits<T> bits = exponent_bits(normal, T(2) / 3);
  const T f = from_bits<T>(to_bits(normal) - bits) - 1;
  const T n = from_integer<T>(bits >> digits) - (subnormal ? T(digits) : T(0));
  return with_log_limits(log_of_parts(n, f), x);
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

/// log2(x) in double to 2^-37, relative also near x = 1: enough for one rounding to float. For x not subnormal.
OPWRIGHT_INLINE double log2_narrow(double x) {
  constexpr double sqrt_half = 0x1.6a09e667f3bcdp-1;
  const Bits<double> bits = exponent_bits(x, sqrt_half);
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

OPWRIGHT_INLINE float log2(float x) { return static_cast<float>(detail::log2_narrow(x)); }
inline double log2(double x) { return __builtin_log2(x); }

OPWRIGHT_INLINE float log10(float x) { return static_cast<float>(detail::kLog10Of2 * detail::log2_narrow(x)); }
inline double log10(double x) { return __builtin_log10(x); }

}  // namespace opwright
