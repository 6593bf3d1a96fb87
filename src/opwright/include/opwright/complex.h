// Complex functions for processors. Where torch calls the C library for each element, those of double do so, too; those
// of float are vector code with its rules for infinities and NaN.
#pragma once

#include "opwright/vmath.h"

#include "opwright/complex_arithmetic.h"
#include "opwright/complex_near.h"

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

/// sin, cos, sinh and cosh of a float, in double and to 2^-33: parts of complex functions, which are rounded once, to
/// float. The angle is exact, however large. Of a large y the hyperbolic functions are too large for every product
/// with a float or a sine, and finite, so that a product with zero is zero.
struct SineAndCosine {
  double sine, cosine;
};
OPWRIGHT_INLINE SineAndCosine sine_and_cosine(float x) {
  const QuarterTurns angle = reduce_to_quadrant(x);
  const double s = sine_of_fraction(angle.fraction), c = cosine_of_fraction(angle.fraction);
  const bool odd = (angle.quadrant & 1) != 0, half = (angle.quadrant & 2) != 0;
  const double sine = odd ? c : s, cosine = odd ? -s : c;
  return {half ? -sine : sine, half ? -cosine : cosine};
}
OPWRIGHT_INLINE SineAndCosine hyperbolic_sine_and_cosine(float x, double bound) {
  const double a = at_most(static_cast<double>(magnitude(x)), bound), e = exp_narrow(a), inverse = 1 / e;
  const double sine = a < 1 ? odd_polynomial(a, kHyperbolicSine) : 0.5 * (e - inverse);
  return {with_sign_of(sine, static_cast<double>(x)), 0.5 * (e + inverse)};
}
OPWRIGHT_INLINE bool is_finite(float x) { return x - x == 0; }
OPWRIGHT_INLINE bool is_infinite(float x) { return magnitude(x) == kInfinity<float>; }
constexpr double large_logarithm = 480;  // e^480 times the smallest float is not a float anymore

}  // namespace detail

// Of float: branch-free, in double, rounded once. Where a part has no value for a real argument (the sine of infinity),
// the other one has C's: C Standard, annex G.

inline Complex<double> exp(Complex<double> z) { return detail::from_c(__builtin_cexp(detail::to_c(z))); }
OPWRIGHT_INLINE Complex<float> exp(Complex<float> z) {
  const double most = detail::large_logarithm;
  const double radius = detail::exp_narrow(detail::at_least(detail::at_most(static_cast<double>(z.re), most), -most));
  const detail::SineAndCosine angle = detail::sine_and_cosine(z.im);
  const bool is_lost = !detail::is_finite(z.im) & detail::is_infinite(z.re), is_zero = is_lost & (z.re < 0);
  const float re = static_cast<float>(radius * angle.cosine), im = static_cast<float>(radius * angle.sine);
  return {is_zero ? 0.0f : (is_lost ? z.re : re), is_zero ? detail::with_sign_of(0.0f, z.im) : (z.im == 0 ? z.im : im)};
}

/// sin x cosh y + i cos x sinh y
OPWRIGHT_INLINE Complex<float> sin(Complex<float> z) {
  const detail::SineAndCosine angle = detail::sine_and_cosine(z.re);
  const detail::SineAndCosine hyperbolic = detail::hyperbolic_sine_and_cosine(z.im, detail::large_logarithm);
  const bool has_angle = detail::is_finite(z.re), is_lost = detail::is_infinite(z.im) & !has_angle;
  const float im = static_cast<float>(angle.cosine * hyperbolic.sine);
  return {z.re == 0 ? z.re : static_cast<float>(angle.sine * hyperbolic.cosine),
          is_lost ? detail::kInfinity<float> : ((z.im == 0) & !has_angle ? z.im : im)};
}
inline Complex<double> sin(Complex<double> z) { return detail::from_c(__builtin_csin(detail::to_c(z))); }

/// cos x cosh y - i sin x sinh y
OPWRIGHT_INLINE Complex<float> cos(Complex<float> z) {
  const detail::SineAndCosine angle = detail::sine_and_cosine(z.re);
  const detail::SineAndCosine hyperbolic = detail::hyperbolic_sine_and_cosine(z.im, detail::large_logarithm);
  const bool is_lost = detail::is_infinite(z.im) & !detail::is_finite(z.re);
  const bool is_zero = ((z.im == 0) & !detail::is_finite(z.re)) | ((z.re == 0) & (z.im != z.im));
  return {is_lost ? detail::kInfinity<float> : static_cast<float>(angle.cosine * hyperbolic.cosine),
          is_zero ? (z.re == 0 ? z.re : 0.0f) : -static_cast<float>(angle.sine * hyperbolic.sine)};
}
inline Complex<double> cos(Complex<double> z) { return detail::from_c(__builtin_ccos(detail::to_c(z))); }

/// (sinh x cosh x + i sin y cos y) / (sinh² x + cos² y), in which nothing cancels
OPWRIGHT_INLINE Complex<float> tanh(Complex<float> z) {
  const detail::SineAndCosine angle = detail::sine_and_cosine(z.im);
  const detail::SineAndCosine hyperbolic = detail::hyperbolic_sine_and_cosine(z.re, 100);
  const double divisor = hyperbolic.sine * hyperbolic.sine + angle.cosine * angle.cosine;
  const double re = hyperbolic.sine * hyperbolic.cosine / divisor, im = angle.sine * angle.cosine / divisor;
  const bool is_one = detail::is_infinite(z.re), has_angle = detail::is_finite(z.im);
  return {is_one ? detail::with_sign_of(1.0f, z.re) : (z.re == 0 ? z.re : static_cast<float>(re)),
          is_one & !has_angle ? detail::with_sign_of(0.0f, z.im) : (z.im == 0 ? z.im : static_cast<float>(im))};
}
inline Complex<double> tanh(Complex<double> z) { return detail::from_c(__builtin_ctanh(detail::to_c(z))); }

/// The part of the root that does not cancel, and half the imaginary part by it.
OPWRIGHT_INLINE Complex<float> sqrt(Complex<float> z) {
  const double re = z.re, im = detail::magnitude(z.im);
  const double large = __builtin_sqrt(0.5 * (__builtin_sqrt(re * re + im * im) + detail::magnitude(re)));
  const double small = large == 0 ? 0 : 0.5 * im / large;
  const bool is_infinite = detail::is_infinite(z.im), is_far = detail::is_infinite(z.re) & !is_infinite;
  const float wide = is_infinite | is_far ? detail::kInfinity<float> : static_cast<float>(large);
  const float narrow =
      is_infinite ? detail::kInfinity<float> : (is_far ? static_cast<float>(0 * im) : static_cast<float>(small));
  const bool behind = (z.re < 0) & !is_infinite;
  return {behind ? narrow : wide, detail::with_sign_of(detail::magnitude(behind ? wide : narrow), z.im)};
}
inline Complex<double> sqrt(Complex<double> z) { return detail::from_c(__builtin_csqrt(detail::to_c(z))); }

/// x^y = e^(y log x), with the C library's rules; anything to the power of zero is one.
inline Complex<float> pow(Complex<float> x, Complex<float> y) {
  return detail::from_c(__builtin_cpowf(detail::to_c(x), detail::to_c(y)));
}
inline Complex<double> pow(Complex<double> x, Complex<double> y) {
  return detail::from_c(__builtin_cpow(detail::to_c(x), detail::to_c(y)));
}

// Of float, by kernels that look first where the parts of their arguments are (vmath_circular.h): rounded several times.

/// The farther one of a magnitude and those of a complex number, as bits. In sin and cos, its real part is an angle and
/// its imaginary part an exponent, of which 64 is as far as an angle of 2^20.
OPWRIGHT_INLINE std::int32_t farther(std::int32_t farthest, Complex<float> z) {
  return farther(farther(farthest, z.re), z.im * 0x1p14f);
}

/// The same of an argument of exp, whose real part is the exponent.
OPWRIGHT_INLINE std::int32_t farther_in_exp(std::int32_t farthest, Complex<float> z) {
  return farther(farther(farthest, z.im), z.re * 0x1p14f);
}

template <Angles angles>
OPWRIGHT_INLINE Complex<float> exp(Complex<float> z) {
  if constexpr (angles == Angles::anywhere) return exp(z);
  const detail::NearSineAndCosine angle = detail::near_sine_and_cosine(z.im);
  const float radius = detail::near_exp(z.re);
  return {radius * angle.cosine, radius * angle.sine};
}
template <Angles angles>
OPWRIGHT_INLINE Complex<float> sin(Complex<float> z) {
  if constexpr (angles == Angles::anywhere) return sin(z);
  const detail::NearSineAndCosine angle = detail::near_sine_and_cosine(z.re);
  const detail::NearSineAndCosine hyperbolic = detail::near_hyperbolic_sine_and_cosine(z.im);
  return {angle.sine * hyperbolic.cosine, angle.cosine * hyperbolic.sine};
}
template <Angles angles>
OPWRIGHT_INLINE Complex<float> cos(Complex<float> z) {
  if constexpr (angles == Angles::anywhere) return cos(z);
  const detail::NearSineAndCosine angle = detail::near_sine_and_cosine(z.re);
  const detail::NearSineAndCosine hyperbolic = detail::near_hyperbolic_sine_and_cosine(z.im);
  return {angle.cosine * hyperbolic.cosine, -(angle.sine * hyperbolic.sine)};
}

/// Stores a number as one word, from a loop with the functions above. Of two stores side by side, GCC makes vectors in
/// which the parts of a number stay neighbours, and of the real part of a factor one that has it twice; it then computes
/// the functions for both.
OPWRIGHT_INLINE void store_whole(Complex<float>& place, Complex<float> z) {
  const std::uint64_t re = static_cast<std::uint32_t>(detail::to_bits(z.re));
  const std::uint64_t im = static_cast<std::uint32_t>(detail::to_bits(z.im));
  const std::uint64_t word = re | im << 32;
  __builtin_memcpy(static_cast<void*>(&place), &word, sizeof(word));
}

}  // namespace opwright
