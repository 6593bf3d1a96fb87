// sinh, cosh and their inverses with atanh. In float they are computed in double and rounded once; tanh is in
// vmath_exponential.h.
//
// Method: (e^x ± e^-x)/2 and the logarithmic forms, with a polynomial for small x where those cancel.
#pragma once

#include "opwright/vmath_logarithm.h"

namespace opwright {
namespace detail {

// (sinh(x)/x - 1)/x² in x², |x| <= 1; relative error of sinh: 2^-33.4
inline constexpr double kHyperbolicSine[] = {0x1.5555551eaa559p-3, 0x1.111136a10b69dp-7, 0x1.9ffd06219f5bcp-13,
                                             0x1.7a5d194d260dbp-19};

// Taylor coefficients of the same form for |x| <= 2^-5; the first term left out is below 2^-40.
inline constexpr double kInverseHyperbolicSine[] = {-1.0 / 6, 3.0 / 40, -15.0 / 336};
inline constexpr double kInverseHyperbolicTangent[] = {1.0 / 3, 1.0 / 5, 1.0 / 7};

inline constexpr double kSmall = 0x1p-5;

}  // namespace detail

OPWRIGHT_INLINE float sinh(float x) {
  const double a = detail::magnitude(x);
  const double e = detail::exp_narrow(detail::at_most(a, 100.0));
  const double y = a < 1 ? detail::odd_polynomial(a, detail::kHyperbolicSine) : 0.5 * (e - 1 / e);
  return detail::with_sign_of(static_cast<float>(y), x);
}
inline double sinh(double x) { return __builtin_sinh(x); }

OPWRIGHT_INLINE float cosh(float x) {
  const double a = detail::magnitude(x);
  const double e = detail::exp_narrow(detail::at_most(a, 100.0));
  return static_cast<float>(0.5 * (e + 1 / e));
}
inline double cosh(double x) { return __builtin_cosh(x); }

OPWRIGHT_INLINE float asinh(float x) {
  const double a = detail::magnitude(x);
  const double y = a < detail::kSmall ? detail::odd_polynomial(a, detail::kInverseHyperbolicSine)
                                      : detail::log_narrow(a + __builtin_sqrt(a * a + 1));
  return detail::with_sign_of(static_cast<float>(y), x);
}
inline double asinh(double x) { return __builtin_asinh(x); }

OPWRIGHT_INLINE float acosh(float x) {
  const double a = x < 1 ? detail::kNan<float> : x;
  return static_cast<float>(detail::log_narrow(a + __builtin_sqrt((a - 1) * (a + 1))));  // a - 1 is exact near 1
}
inline double acosh(double x) { return __builtin_acosh(x); }

OPWRIGHT_INLINE float atanh(float x) {
  const double a = detail::magnitude(x);
  const double y = a < detail::kSmall ? detail::odd_polynomial(a, detail::kInverseHyperbolicTangent)
                                      : 0.5 * detail::log_narrow((1 + a) / (1 - a));
  return detail::with_sign_of(static_cast<float>(y), x);
}
inline double atanh(double x) { return __builtin_atanh(x); }

}  // namespace opwright
