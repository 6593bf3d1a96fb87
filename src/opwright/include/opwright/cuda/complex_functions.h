// Complex functions that torch takes from thrust on a GPU. Those of complex64 are computed in double and rounded once.
#pragma once

#include "opwright/complex_arithmetic.h"

// They are large: a kernel calls them.
#ifdef __CUDACC__
#define OPWRIGHT_CALLED inline __device__ __noinline__
#else
#define OPWRIGHT_CALLED inline
#endif

namespace opwright {
namespace detail {

/// x·y, and 0 if x = 0, even for an infinite y.
OPWRIGHT_INLINE double scaled(double x, double y) { return x == 0 ? x : x * y; }

}  // namespace detail

/// √z with the larger part first, so that nothing cancels; on the side of the negative axis that im is on.
OPWRIGHT_CALLED Complex<double> sqrt(Complex<double> z) {
  const double a = fabs(z.re), b = fabs(z.im), infinity = detail::kInfinity<double>;
  if (b == infinity) return {infinity, z.im};
  if (a == infinity) {
    const double other = z.im != z.im ? z.im : 0.0;
    return z.re > 0 ? Complex<double>(infinity, z.im != z.im ? z.im : copysign(0.0, z.im))
                    : Complex<double>(other, copysign(infinity, z.im));
  }
  if (a == 0 && b == 0) return {0.0, z.im};
  const double large = a > b ? a : b;
  const double scale = large > 0x1p1000 ? 0.25 : (large < 0x1p-1000 ? 0x1p54 : 1.0);  // a power of four
  const double root = sqrt((a * scale + hypot(a * scale, b * scale)) * 0.5);
  const double back = scale == 0.25 ? 2.0 : (scale == 1.0 ? 1.0 : 0x1p-27);
  const double first = root * back, second = b * scale / (2 * root) * back;
  return z.re >= 0 ? Complex<double>(first, copysign(second, z.im)) : Complex<double>(second, copysign(first, z.im));
}

/// sin(x + iy) = sin x cosh y + i cos x sinh y
OPWRIGHT_CALLED Complex<double> sin(Complex<double> z) {
  return {detail::scaled(sin(z.re), cosh(z.im)), detail::scaled(sinh(z.im), cos(z.re))};
}

/// cos(x + iy) = cos x cosh y - i sin x sinh y
OPWRIGHT_CALLED Complex<double> cos(Complex<double> z) {
  return {detail::scaled(cos(z.re), cosh(z.im)), -detail::scaled(sinh(z.im), sin(z.re))};
}

/// Kahan's formula (1987): with t = tan y, b = 1 + t² and s = sinh x, the divisor 1 + b s² cannot cancel.
OPWRIGHT_CALLED Complex<double> tanh(Complex<double> z) {
  if (fabs(z.re) > 22) {
    const double small = z.im - z.im != 0 ? 0.0 : 4 * sin(z.im) * cos(z.im) * ::exp(-2 * fabs(z.re));
    return {copysign(1.0, z.re), small};
  }
  const double t = tan(z.im), b = 1 + t * t, s = sinh(z.re), divisor = 1 + b * s * s;
  return {b * sqrt(1 + s * s) * s / divisor, t / divisor};
}

/// x^y = e^(y log x); anything to the power of zero is one.
OPWRIGHT_CALLED Complex<double> pow(Complex<double> x, Complex<double> y) {
  return y.re == 0 && y.im == 0 ? Complex<double>(1.0, 0.0) : exp(y * log(x));
}

OPWRIGHT_CALLED Complex<float> sqrt(Complex<float> z) { return Complex<float>(sqrt(Complex<double>(z))); }
OPWRIGHT_CALLED Complex<float> sin(Complex<float> z) { return Complex<float>(sin(Complex<double>(z))); }
OPWRIGHT_CALLED Complex<float> cos(Complex<float> z) { return Complex<float>(cos(Complex<double>(z))); }
OPWRIGHT_CALLED Complex<float> tanh(Complex<float> z) { return Complex<float>(tanh(Complex<double>(z))); }
OPWRIGHT_CALLED Complex<float> pow(Complex<float> x, Complex<float> y) {
  return Complex<float>(pow(Complex<double>(x), Complex<double>(y)));
}

}  // namespace opwright
