// Complex numbers, laid out as torch's: the real part, then the imaginary part. Arithmetic is branch-free and vectorises.
//
// Include the functions of real numbers first: those of vmath.h, or CUDA's.
#pragma once

#include "opwright/bits.h"

namespace opwright {
namespace detail {

/// x·y, rounded by itself: z·conj(z) would not be real if a product were fused with the sum it goes into.
template <class T>
OPWRIGHT_INLINE T rounded_product(T x, T y) {
#if !defined(__CUDACC__) && defined(__has_builtin) && __has_builtin(__builtin_assoc_barrier)
  return __builtin_assoc_barrier(x * y);
#elif defined(__has_builtin) && __has_builtin(__arithmetic_fence)
  return __arithmetic_fence(x * y);
#else
  return x * y;
#endif
}

}  // namespace detail

template <class T>
struct Complex {
  T re, im;

  Complex() = default;
#ifndef __CUDACC__
  // Part by part: GCC vectorises no loop under `omp simd` that copies a struct whole.
  OPWRIGHT_INLINE constexpr Complex(const Complex& z) : re(z.re), im(z.im) {}
  OPWRIGHT_INLINE Complex& operator=(const Complex& z) {
    re = z.re, im = z.im;
    return *this;
  }
#endif
  OPWRIGHT_INLINE constexpr Complex(T real, T imag) : re(real), im(imag) {}
  template <class U>
  OPWRIGHT_INLINE explicit constexpr Complex(U real) : re(static_cast<T>(real)), im(0) {}
  template <class U>
  OPWRIGHT_INLINE explicit constexpr Complex(Complex<U> z) : re(static_cast<T>(z.re)), im(static_cast<T>(z.im)) {}
};

template <class T>
OPWRIGHT_INLINE Complex<T> complex(T real, T imag) {
  return {real, imag};
}
template <class T>
OPWRIGHT_INLINE T real(Complex<T> z) {
  return z.re;
}
template <class T>
OPWRIGHT_INLINE T imag(Complex<T> z) {
  return z.im;
}
template <class T>
OPWRIGHT_INLINE Complex<T> conj(Complex<T> z) {
  return {z.re, -z.im};
}

template <class T>
OPWRIGHT_INLINE Complex<T> operator+(Complex<T> x, Complex<T> y) {
  return {x.re + y.re, x.im + y.im};
}
template <class T>
OPWRIGHT_INLINE Complex<T> operator-(Complex<T> x, Complex<T> y) {
  return {x.re - y.re, x.im - y.im};
}
template <class T>
OPWRIGHT_INLINE Complex<T> operator-(Complex<T> z) {
  return {-z.re, -z.im};
}
template <class T>
OPWRIGHT_INLINE bool operator==(Complex<T> x, Complex<T> y) {
  return (x.re == y.re) & (x.im == y.im);
}
template <class T>
OPWRIGHT_INLINE bool operator!=(Complex<T> x, Complex<T> y) {
  return (x.re != y.re) | (x.im != y.im);
}

template <class T>
OPWRIGHT_INLINE Complex<T> operator*(Complex<T> x, Complex<T> y) {
  using detail::rounded_product;
  return {rounded_product(x.re, y.re) - rounded_product(x.im, y.im),
          rounded_product(x.re, y.im) + rounded_product(x.im, y.re)};
}

/// Smith's algorithm (1962), as in c10/util/complex.h: it overflows only if the quotient does; division by zero gives
/// infinity or NaN in each part.
template <class T>
OPWRIGHT_INLINE Complex<T> operator/(Complex<T> x, Complex<T> y) {
  const T re = detail::magnitude(y.re), im = detail::magnitude(y.im);
  const bool wide = re >= im, by_zero = re + im == 0;  // one mask: GCC 12 leaves loops with some pairs of them scalar
  const T large = wide ? y.re : y.im, small = wide ? y.im : y.re;
  const T first = wide ? x.re : x.im, second = wide ? x.im : x.re;
  const T ratio = small / large, scale = 1 / (large + detail::rounded_product(small, ratio));
  const T sum = (first + detail::rounded_product(second, ratio)) * scale;
  const T difference = (second - detail::rounded_product(first, ratio)) * scale;
  return {by_zero ? x.re / re : sum, by_zero ? x.im / re : (wide ? difference : -difference)};
}

/// √(re² + im²); infinite if a part is, whatever the other.
template <class T>
OPWRIGHT_INLINE T abs(Complex<T> z) {
  return hypot(z.re, z.im);
}

template <class T>
OPWRIGHT_INLINE T angle(Complex<T> z) {
  return atan2(z.im, z.re);
}

/// log|z| + i·angle(z)
template <class T>
OPWRIGHT_INLINE Complex<T> log(Complex<T> z) {
  return {log(abs(z)), angle(z)};
}

/// e^x (cos y + i sin y); real where z is, zero where e^x is, and infinite where e^x is and y has no cosine.
template <class T>
OPWRIGHT_INLINE Complex<T> exp(Complex<T> z) {
  const T radius = exp(z.re);
  const bool is_zero = radius == 0, is_lost = (z.im - z.im != 0) & (radius == detail::kInfinity<T>);
  const T real_angle = is_zero | is_lost ? 0 : z.im, imag_angle = is_zero ? 0 : z.im;
  return {radius * cos(real_angle), (z.im == 0 ? T(1) : radius) * sin(imag_angle)};
}

/// 1/(1 + e^-z)
template <class T>
OPWRIGHT_INLINE Complex<T> sigmoid(Complex<T> z) {
  const Complex<T> one(T(1), T(0));
  return one / (one + exp(-z));
}

}  // namespace opwright
