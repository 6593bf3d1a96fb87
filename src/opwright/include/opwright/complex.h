// Complex functions for processors. Where torch calls the C++ library for each element, these call the C library, with
// its rules for infinities and NaN.
#pragma once

#include "opwright/vmath.h"

#include "opwright/complex_arithmetic.h"

namespace opwright {
namespace detail {

inline _Complex float to_c(Complex<float> z) {
  _Complex float c;
  __real__ c = z.re;
  __imag__ c = z.im;
  return c;
}
inline _Complex double to_c(Complex<double> z) {
  _Complex double c;
  __real__ c = z.re;
  __imag__ c = z.im;
  return c;
}
inline Complex<float> from_c(_Complex float c) { return {__real__ c, __imag__ c}; }
inline Complex<double> from_c(_Complex double c) { return {__real__ c, __imag__ c}; }

}  // namespace detail

inline Complex<double> exp(Complex<double> z) { return detail::from_c(__builtin_cexp(detail::to_c(z))); }
inline Complex<float> sqrt(Complex<float> z) { return detail::from_c(__builtin_csqrtf(detail::to_c(z))); }
inline Complex<double> sqrt(Complex<double> z) { return detail::from_c(__builtin_csqrt(detail::to_c(z))); }
inline Complex<float> sin(Complex<float> z) { return detail::from_c(__builtin_csinf(detail::to_c(z))); }
inline Complex<double> sin(Complex<double> z) { return detail::from_c(__builtin_csin(detail::to_c(z))); }
inline Complex<float> cos(Complex<float> z) { return detail::from_c(__builtin_ccosf(detail::to_c(z))); }
inline Complex<double> cos(Complex<double> z) { return detail::from_c(__builtin_ccos(detail::to_c(z))); }
inline Complex<float> tanh(Complex<float> z) { return detail::from_c(__builtin_ctanhf(detail::to_c(z))); }
inline Complex<double> tanh(Complex<double> z) { return detail::from_c(__builtin_ctanh(detail::to_c(z))); }

/// x^y = e^(y log x), with the C library's rules; anything to the power of zero is one.
inline Complex<float> pow(Complex<float> x, Complex<float> y) {
  return detail::from_c(__builtin_cpowf(detail::to_c(x), detail::to_c(y)));
}
inline Complex<double> pow(Complex<double> x, Complex<double> y) {
  return detail::from_c(__builtin_cpow(detail::to_c(x), detail::to_c(y)));
}

}  // namespace opwright
