// sinh, cosh and their inverses with atanh. In float they are computed in double and rounded once; tanh is in
// vmath_exponential.h.
//
// Method: (e^x ± e^-x)/2 and the logarithmic forms, with a polynomial for small x where those cancel. In double the
// logarithms are of 1 + t, with t >= 0 as a sum of two parts, and do not cancel.
#pragma once

#include "opwright/vmath_logarithm.h"

namespace opwright {
namespace detail {

// (sinh(x)/x - 1)/x² in x², |x| <= 1; relative error of sinh: 2^-33.4
inline constexpr double kHyperbolicSine[] = {0x1.5555551eaa559p-3, 0x1.111136a10b69dp-7, 0x1.9ffd06219f5bcp-13,
                                             0x1.7a5d194d260dbp-19};

// The same to 2^-61.7
inline constexpr double kDoubleHyperbolicSine[] = {0x1.5555555555556p-3,  0x1.111111111101ep-7,  0x1.a01a01a03726ap-13,
                                                   0x1.71de3a3b06b74p-19, 0x1.ae646ff4feb0dp-26, 0x1.6116f4af3ad92p-33,
                                                   0x1.b5c88f2710166p-41};

// Taylor coefficients of the same form for |x| <= 2^-5; the first term left out is below 2^-40.
inline constexpr double kInverseHyperbolicSine[] = {-1.0 / 6, 3.0 / 40, -15.0 / 336};
inline constexpr double kInverseHyperbolicTangent[] = {1.0 / 3, 1.0 / 5, 1.0 / 7};

inline constexpr double kSmall = 0x1p-5;
inline constexpr double kInverseIsLogarithm = 0x1p60;  // from here on asinh(x) and acosh(x) are log(2x)
inline constexpr double kSinhIsInfinite = 712;

/// (e^x ± e^-x)/2 is half_scaled(high + (low ± reciprocal)), for x >= 0.
struct Exponentials {
  double high, low, reciprocal, quarter;

  /// 2·y·quarter; twice the quarter may be too large for a double where the result is not.
  OPWRIGHT_INLINE double half_scaled(double y) const { return 2 * y * quarter; }
};

OPWRIGHT_INLINE Exponentials exponentials(double x) {
  constexpr int bias = Format<double>::bias, negligible = 500;
  const auto n = Exponent<double, bias>::nearest(x, Exponential<double>::log2_e).at_most(bias + 2);
  const TwoParts e = ordered_sum(1, expm1_of_remainder(n.remainder(x)));
  const double inverse_power = power_from_biased<double>(2 * bias - n.at_most(negligible).biased());
  return {e.high, e.low, inverse_power / e.high * inverse_power, power_from_biased<double>(n.biased() - 2)};
}

}  // namespace detail

OPWRIGHT_INLINE float sinh(float x) {
  const double a = detail::magnitude(x);
  const double e = detail::exp_narrow(detail::at_most(a, 100.0));
  const double y = a < 1 ? detail::odd_polynomial(a, detail::kHyperbolicSine) : 0.5 * (e - 1 / e);
  return detail::with_sign_of(static_cast<float>(y), x);
}
OPWRIGHT_INLINE double sinh(double x) {
  const double a = detail::at_most(detail::magnitude(x), detail::kSinhIsInfinite);
  const detail::Exponentials e = detail::exponentials(a);
  const double beyond = e.half_scaled(e.high + (e.low - e.reciprocal));
  return detail::with_sign_of(a < 1 ? detail::odd_polynomial(a, detail::kDoubleHyperbolicSine) : beyond, x);
}

OPWRIGHT_INLINE float cosh(float x) {
  const double a = detail::magnitude(x);
  const double e = detail::exp_narrow(detail::at_most(a, 100.0));
  return static_cast<float>(0.5 * (e + 1 / e));
}
OPWRIGHT_INLINE double cosh(double x) {
  const double a = detail::at_most(detail::magnitude(x), detail::kSinhIsInfinite);
  const detail::Exponentials e = detail::exponentials(a);
  return e.half_scaled(e.high + (e.low + e.reciprocal));
}

OPWRIGHT_INLINE float asinh(float x) {
  const double a = detail::magnitude(x);
  const double y = a < detail::kSmall ? detail::odd_polynomial(a, detail::kInverseHyperbolicSine)
                                      : detail::log_narrow(a + __builtin_sqrt(a * a + 1));
  return detail::with_sign_of(static_cast<float>(y), x);
}
/// log(1 + x + x²/(1 + √(1 + x²)))
OPWRIGHT_INLINE double asinh(double x) {
  const double a = detail::magnitude(x), square = a * a;
  const bool large = a > detail::kInverseIsLogarithm;
  const detail::TwoParts sum = detail::ordered_sum(a, square / (1 + __builtin_sqrt(1 + square)));
  const double y = detail::log1p_of_sum({large ? a : sum.high, large ? 0.0 : sum.low}, large ? 1.0 : 0.0);
  return detail::with_sign_of(y, x);
}

OPWRIGHT_INLINE float acosh(float x) {
  const double a = x < 1 ? detail::kNan<float> : x;
  return static_cast<float>(detail::log_narrow(a + __builtin_sqrt((a - 1) * (a + 1))));  // a - 1 is exact near 1
}
/// log(1 + w + √(2w + w²)) with w = x - 1, which is exact where it is small; so is the root, with what it rounds away.
OPWRIGHT_INLINE double acosh(double x) {
  const double a = x < 1 ? detail::kNan<double> : x, w = a - 1;
  const bool large = a > detail::kInverseIsLogarithm;
  const detail::TwoParts square = detail::exact_product(w, w), radicand = detail::exact_sum(2 * w, square.high);
  const double root = __builtin_sqrt(radicand.high);
  const detail::TwoParts squared = detail::exact_product(root, root);
  const double left = ((radicand.high - squared.high) - squared.low) + (radicand.low + square.low);
  const detail::TwoParts sum = detail::ordered_sum(root, w);
  const double low = sum.low + left / detail::at_least(2 * root, 0x1p-60);
  return detail::log1p_of_sum({large ? a : sum.high, large ? 0.0 : low}, large ? 1.0 : 0.0);
}

OPWRIGHT_INLINE float atanh(float x) {
  const double a = detail::magnitude(x);
  const double y = a < detail::kSmall ? detail::odd_polynomial(a, detail::kInverseHyperbolicTangent)
                                      : 0.5 * detail::log_narrow((1 + a) / (1 - a));
  return detail::with_sign_of(static_cast<float>(y), x);
}
/// log(1 + 2x/(1 - x))/2
OPWRIGHT_INLINE double atanh(double x) {
  const double a = detail::magnitude(x);
  const detail::TwoParts t = detail::quotient_in_parts(2 * a, detail::ordered_sum(1, -a));
  return detail::with_sign_of(0.5 * detail::log1p_of_sum(t, 0), x);
}

}  // namespace opwright
