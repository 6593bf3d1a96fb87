// Numbers as unevaluated sums of two doubles, for the steps of a function where one rounding more would show.
//
// Method (Dekker 1971, Knuth): what a sum or a product of two doubles rounds away is a double itself, and few exact
// operations find it. Nothing may be contracted or reassociated here.
#pragma once

#include "opwright/vmath_bits.h"

namespace opwright::detail {

/// The sum of two numbers, the second of them about an ulp of the first or less.
struct TwoParts {
  double high, low;
};

/// a + b exactly, where |a| >= |b| or a = 0.
OPWRIGHT_INLINE TwoParts ordered_sum(double a, double b) {
  const double high = a + b;
  return {high, (a - high) + b};
}

/// a + b exactly.
OPWRIGHT_INLINE TwoParts exact_sum(double a, double b) {
  const double high = a + b, rounded_b = high - a, rounded_a = high - rounded_b;
  return {high, (a - rounded_a) + (b - rounded_b)};
}

/// x rounded to 26 bits: its product with another such number is exact, and what is left of x has 26 bits, too.
OPWRIGHT_INLINE double upper_half(double x) {
  constexpr std::int64_t lower_bits = (std::int64_t{1} << 27) - 1;
  return from_bits<double>((to_bits(x) + (lower_bits + 1) / 2) & ~lower_bits);
}

/// x·y exactly, unless the lower part is subnormal.
OPWRIGHT_INLINE TwoParts exact_product(double x, double y) {
  const double high = x * y;
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return {high, __builtin_fma(x, y, -high)};
#else
  const double x_high = upper_half(x), x_low = x - x_high, y_high = upper_half(y), y_low = y - y_high;
  return {high, ((x_high * y_high - high) + x_high * y_low + x_low * y_high) + x_low * y_low};
#endif
}

/// x / divisor, to about 100 bits.
OPWRIGHT_INLINE TwoParts quotient_in_parts(double x, TwoParts divisor) {
  const double inverse = 1 / divisor.high, high = x * inverse;
  const TwoParts product = exact_product(high, divisor.high);
  return {high, (((x - product.high) - product.low) - high * divisor.low) * inverse};
}

/// x·y, to about 100 bits.
OPWRIGHT_INLINE TwoParts product_in_parts(TwoParts x, TwoParts y) {
  const TwoParts exact = exact_product(x.high, y.high);
  return {exact.high, exact.low + fused(x.high, y.low, x.low * y.high)};
}

}  // namespace opwright::detail
