// exp, exp2, expm1, sigmoid and tanh, one algorithm for float and double.
//
// Method (Cody and Waite 1980): x = n ln2 + r with |r| <= ln2/2 and n ln2 subtracted in two parts, the first of them
// exactly; e^r - 1 = r + r² Q(r) with Q minimax; the result is scaled by 2^n.
#pragma once

#include <cmath>

#include "opwright/vmath_bits.h"

namespace opwright {
namespace detail {

template <class T> struct Exponential;

template <> struct Exponential<float> {
  static constexpr float log2_e = 0x1.715476p+0f;
  static constexpr float ln2_high = 0x1.62e4p-1f; // 15 bits, so that n·ln2_high is exact
  static constexpr float ln2_low = 0x1.7f7d1cp-20f;
  // (e^r - 1 - r)/r², |r| <= ln2/2; relative error of e^r - 1: 2^-31.1
  static constexpr float Q[] = {0x1p-1f,        0x1.555554p-3f,  0x1.5554f8p-5f,
                                0x1.1112d6p-7f, 0x1.6d3a5ep-10f, 0x1.9e77ecp-13f};
  static constexpr float exp_is_zero = -105.0f, exp_is_infinite = 89.0f;
  static constexpr float expm1_is_minus_one = -18.0f;
};

template <> struct Exponential<double> {
  static constexpr double log2_e = 0x1.71547652b82fep+0;
  static constexpr double ln2_high = 0x1.62e42fefa3p-1; // 42 bits
  static constexpr double ln2_low = 0x1.3de6af278ece6p-42;
  // The same to 2^-59.7
  static constexpr double Q[] = {0x1p-1,
                                 0x1.5555555555559p-3,
                                 0x1.555555555553ep-5,
                                 0x1.111111110f6aap-7,
                                 0x1.6c16c16c1f176p-10,
                                 0x1.a01a01afe9adp-13,
                                 0x1.a01a017b92619p-16,
                                 0x1.71ddf841eac8ap-19,
                                 0x1.27e536650d9cbp-22,
                                 0x1.af5ee87d4fae5p-26,
                                 0x1.1ee8824ebe6bep-29};
  static constexpr double exp_is_zero = -746.0, exp_is_infinite = 709.8;
  static constexpr double expm1_is_minus_one = -38.0;
};

template <class T> struct HyperbolicTangent;

template <> struct HyperbolicTangent<float> {
  static constexpr float near_zero = 0.625f, is_one = 9.2f;
  // (tanh(x)/x - 1)/x² in x², |x| <= 0.625; relative error of tanh: 2^-27.6
  static constexpr float P[] = {-0x1.55553ap-2f, 0x1.110842p-3f, -0x1.b859d6p-5f, 0x1.52c84cp-6f, -0x1.785546p-8f};
};

template <> struct HyperbolicTangent<double> {
  static constexpr double near_zero = 0.625, is_one = 19.2;
  // The same to 2^-57.1
  static constexpr double P[] = {-0x1.5555555555555p-2,  0x1.11111111110ecp-3,   -0x1.ba1ba1ba18816p-5,
                                 0x1.664f4881c3effp-6,   -0x1.226e35310469ap-7,  0x1.d6d3c6a6c15a1p-9,
                                 -0x1.7da29fc409b15p-10, 0x1.354df6785f13ep-11,  -0x1.f4bfe36a3b1e4p-13,
                                 0x1.91a1bdb0ce05cp-14,  -0x1.3339b7bea7258p-15, 0x1.8b73effe24e87p-17,
                                 -0x1.300a1d759ca3ep-19};
};

// (2^r - 1)/r, |r| <= 1/2; relative error of 2^r: 2^-32.5
inline constexpr float kExp2[] = {0x1.62e43p-1f,   0x1.ebfbe0p-3f,  0x1.c6b06ep-5f, 0x1.3b2a5cp-7f,
                                  0x1.5da586p-10f, 0x1.440e4ap-13f, 0x1.e0af7ep-17f};

// 2^r, |r| <= 1/2; relative error 2^-40.2
inline constexpr double kExp2Narrow[] = {0x1.ffffffffff78ep-1, 0x1.62e42fef85d9ap-1,  0x1.ebfbdff933b49p-3,
                                         0x1.c6b08dd5064bdp-5, 0x1.3b2ab5c348b75p-7,  0x1.5d87477e8e1c7p-10,
                                         0x1.430ace708f23p-13, 0x1.00db4f2a64f78p-16, 0x1.61af38563bc02p-20};

/// x = exponent·ln2 + remainder + correction, the correction below half an ulp of the remainder.
template <class T> struct ExponentSplit {
  T remainder;
  T correction;
  Bits<T> exponent;
};

template <class T> OPWRIGHT_INLINE ExponentSplit<T> split_exponent(T x) {
  using E = Exponential<T>;
  const Rounded<T> n = round_to_integer(x * E::log2_e);
  const T high = x - n.value * E::ln2_high;
  const T remainder = high - n.value * E::ln2_low;
  return {remainder, (high - remainder) - n.value * E::ln2_low, n.integer};
}

/// p·2^n in two steps, the first of them exact, so that subnormal results are rounded once.
template <class T> OPWRIGHT_INLINE T scale(T p, Bits<T> n) {
  const Bits<T> half = n >> 1;
  return p * power_of_two<T>(half) * power_of_two<T>(n - half);
}

/// e^(remainder of x), about 1. What 1 + r rounds away is added to the tail, so the only whole rounding is the last.
template <class T> OPWRIGHT_INLINE T exp_mantissa(const ExponentSplit<T>& x) {
  const T r = x.remainder;
  const T sum = 1 + r;
  const T lost = (1 - sum) + r;
  return sum + (r * r * polynomial(r, Exponential<T>::Q) + (lost + x.correction));
}

/// e^x where neither x nor the result leaves the normal numbers.
template <class T> OPWRIGHT_INLINE T exp_in_range(T x) {
  const ExponentSplit<T> split = split_exponent(x);
  return exp_mantissa(split) * power_of_two<T>(split.exponent);
}

template <class T> OPWRIGHT_INLINE T exp(T x) {
  using E = Exponential<T>;
  const ExponentSplit<T> split = split_exponent(at_least(at_most(x, E::exp_is_infinite), E::exp_is_zero));
  return scale(exp_mantissa(split), split.exponent);
}

/// (e^x - 1)/2, because 2^(n-1) does not overflow where 2^n does: at n = 128 (1024 in double). The sum is ordered so
/// that its only cancellation, 2^n r + (2^n - 1) at n = 1, is exact.
template <class T> OPWRIGHT_INLINE T half_expm1(T x) {
  const ExponentSplit<T> split = split_exponent(x);
  const T r = split.remainder;
  const T tail = r * r * polynomial(r, Exponential<T>::Q) + split.correction;
  const T half_power = power_of_two<T>(split.exponent - 1);
  return (half_power * r + (half_power - T(0.5))) + half_power * tail;
}

/// Where e^x - 1 is x to all digits it is x itself, -0 and subnormal numbers included.
template <class T> OPWRIGHT_INLINE T expm1(T x) {
  using E = Exponential<T>;
  const T y = 2 * half_expm1(at_least(at_most(x, E::exp_is_infinite), E::expm1_is_minus_one));
  return magnitude(x) < std::numeric_limits<T>::epsilon() / 4 ? x : y;
}

/// 1/(1 + e^-x), with e^-|x| alone so that nothing overflows and small results keep their digits. What 1 + e rounds
/// away is put back where it weighs, at small e, by 1/(d + lost) ~ (1 - lost)/d.
template <class T> OPWRIGHT_INLINE T sigmoid(T x) {
  const T e = exp(-magnitude(x));
  const T denominator = 1 + e;
  const T lost = (1 - denominator) + e;
  const T quotient = (x < 0 ? e : T(1)) / denominator;
  return quotient - quotient * lost;
}

/// x + x³ P(x²) near zero; 1 - 2/(e^2|x| + 1) beyond, where rounding errors are damped.
template <class T> OPWRIGHT_INLINE T tanh(T x) {
  const T a = at_most(magnitude(x), HyperbolicTangent<T>::is_one);
  const T near_zero = odd_polynomial(a, HyperbolicTangent<T>::P);
  const T beyond = 1 - 2 / (exp_in_range(2 * a) + 1);
  return with_sign_of(a < HyperbolicTangent<T>::near_zero ? near_zero : beyond, x);
}

/// 2^x in double to 2^-40, enough for one rounding to float. Saturates at 2^±1000, beyond every float.
OPWRIGHT_INLINE double exp2_narrow(double x) {
  const double bounded = at_least(at_most(x, 1000.0), -1000.0);
  const Rounded<double> n = round_to_integer(bounded);
  return polynomial(bounded - n.value, kExp2Narrow) * power_of_two<double>(n.integer);
}

/// e^x in double to 2^-40, for |x| < 500.
OPWRIGHT_INLINE double exp_narrow(double x) { return exp2_narrow(x * Exponential<double>::log2_e); }

} // namespace detail

OPWRIGHT_INLINE float exp(float x) { return detail::exp(x); }
OPWRIGHT_INLINE double exp(double x) { return detail::exp(x); }

OPWRIGHT_INLINE float expm1(float x) { return detail::expm1(x); }
OPWRIGHT_INLINE double expm1(double x) { return detail::expm1(x); }

OPWRIGHT_INLINE float sigmoid(float x) { return detail::sigmoid(x); }
OPWRIGHT_INLINE double sigmoid(double x) { return detail::sigmoid(x); }

OPWRIGHT_INLINE float tanh(float x) { return detail::tanh(x); }
OPWRIGHT_INLINE double tanh(double x) { return detail::tanh(x); }

OPWRIGHT_INLINE float exp2(float x) {
  const float bounded = detail::at_least(detail::at_most(x, 129.0f), -151.0f);
  const detail::Rounded<float> n = detail::round_to_integer(bounded);
  const float r = bounded - n.value;
  return detail::scale(1 + r * detail::polynomial(r, detail::kExp2), n.integer);
}
inline double exp2(double x) { return std::exp2(x); }

} // namespace opwright
