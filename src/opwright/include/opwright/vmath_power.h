// sqrt, rsqrt and pow.
//
// Method of pow in float: 2^(y log2|x|) in double, rounded once. In double e^(y log|x|), with the logarithm and the
// product as sums of two doubles: where the power is largest, an error of the logarithm is 710 times as large in it.
#pragma once

#include "opwright/vmath_logarithm.h"

namespace opwright {
namespace detail {

// (log((1 + s)/(1 - s))/s - 2 - 2s²/3)/s⁴ in s², |s| <= (√2 - 1)/(√2 + 1); relative error of the logarithm: 2^-66.3
inline constexpr double kFifthPowerOn[] = {0x1.9999999999996p-2, 0x1.249249249302dp-2, 0x1.c71c71c5814e9p-3,
                                           0x1.745d1831eb83ep-3, 0x1.3b1362cfef02dp-3, 0x1.1120b1f366883p-3,
                                           0x1.de33fe939fe18p-4, 0x1.eb0cbb0937d77p-4};
inline constexpr TwoParts kTwoThirds = {0x1.5555555555555p-1, 0x1.5555555555555p-55};

/// log(x) to 2^-63, for positive and finite x: with s = f/(2 + f), log(1 + f) is s (2 + s² (2/3 + s² W(s²))). 1 + f is
/// about 1 evenly, so that little cancels where n is not 0.
OPWRIGHT_INLINE TwoParts log_in_parts(double x) {
  const auto [n, f] = scaled_from(kSqrtHalf, x);
  const TwoParts s = quotient_in_parts(f, ordered_sum(2, f)), square = product_in_parts(s, s);
  const TwoParts third = ordered_sum(kTwoThirds.high, square.high * polynomial(square.high, kFifthPowerOn));
  const TwoParts cubic = product_in_parts(s, product_in_parts(square, {third.high, third.low + kTwoThirds.low}));
  const TwoParts linear = ordered_sum(n * Exponential<double>::ln2_high, 2 * s.high);
  const TwoParts sum = ordered_sum(linear.high, cubic.high);
  const double low = fused(n, Exponential<double>::ln2_low, fused(2.0, s.low, linear.low) + cubic.low);
  return ordered_sum(sum.high, sum.low + low);
}

/// e^(y·logarithm), rounded about once, so that powers which are doubles come out exactly; 0 and Inf where the product
/// is beyond those of doubles.
OPWRIGHT_INLINE double exp_of_product(double y, TwoParts logarithm) {
  using E = Exponential<double>;
  constexpr double most = 0x1p65;  // the least logarithm times this is beyond every exponent
  const double bounded = at_least(at_most(y, most), -most);
  const TwoParts x = exact_product(bounded, logarithm.high);
  const auto n = Exponent<double, 2 * Format<double>::bias>::nearest(x.high, E::log2_e).at_most(E::infinite_exponent);
  const double low = fused(-n.value(), E::ln2_low, fused(bounded, logarithm.low, x.low));
  const TwoParts r = exact_sum(fused(-n.value(), E::ln2_high, x.high), low), sum = ordered_sum(1, r.high);
  const double square = r.high * r.high;
  const double rest = fused(square, interleaved_polynomial(r.high, square, E::Q), r.low);
  return x.high < E::exp_is_zero ? 0.0 : scale(sum.high + (sum.low + rest), n);
}

/// x^y with C's rules for zeros, infinities and NaN, where power is |x|^y. Written with & and |, as && and || are
/// control flow to a vectoriser.
template <class T>
OPWRIGHT_INLINE T with_rules_of_powers(T power, T x, T y, bool is_fractional, bool is_odd) {
  const T a = magnitude(x), real = is_odd ? with_sign_of(power, x) : power;
  const bool is_complex = is_fractional & (x < 0) & (a < kInfinity<T>);
  const bool is_one = (x == 1) | (y == 0) | ((x == -1) & (magnitude(y) == kInfinity<T>));
  return is_one ? T(1) : (is_complex ? kNan<T> : real);
}

}  // namespace detail

OPWRIGHT_INLINE float sqrt(float x) { return __builtin_sqrtf(x); }
OPWRIGHT_INLINE double sqrt(double x) { return __builtin_sqrt(x); }

OPWRIGHT_INLINE float rsqrt(float x) { return 1 / __builtin_sqrtf(x); }
OPWRIGHT_INLINE double rsqrt(double x) { return 1 / __builtin_sqrt(x); }

OPWRIGHT_INLINE float pow(float x, float y) {
  const float half_y = 0.5f * y;
  const bool is_fractional = __builtin_floorf(y) != y;
  const bool is_odd = !is_fractional & (__builtin_floorf(half_y) != half_y);
  const double logarithm = detail::log2_narrow(detail::magnitude(x));
  const float power = static_cast<float>(detail::exp2_narrow(static_cast<double>(y) * logarithm));
  return detail::with_rules_of_powers(power, x, y, is_fractional, is_odd);
}
OPWRIGHT_INLINE double pow(double x, double y) {
  const double a = detail::magnitude(x), half_y = 0.5 * y;
  const bool is_fractional = __builtin_floor(y) != y;
  const bool is_odd = !is_fractional & (__builtin_floor(half_y) != half_y);
  const double finite = detail::exp_of_product(y, detail::log_in_parts(a));
  const bool is_zero = a == 0, is_limit = is_zero | (a == detail::kInfinity<double>);
  const double limit = is_zero == (y < 0) ? detail::kInfinity<double> : 0.0;
  const double power = (x != x) | (y != y) ? x + y : (is_limit ? limit : finite);
  return detail::with_rules_of_powers(power, x, y, is_fractional, is_odd);
}

}  // namespace opwright
