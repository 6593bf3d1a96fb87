// Quotients of many numbers by one: a division takes a processor up to ten times as long as a product.
//
// Method (Markstein 1990): the product with the rounded reciprocal is less than an ulp off, its residue is exact, and a
// fused step by that rounds to the quotient that a division gives. Where a number or a quotient is below 2^-100, residues
// may be too small to be exact, and the quotient is within an ulp.
#pragma once

#include "opwright/vmath_bits.h"

namespace opwright {

#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
// What quotients by a number are made of. The scale is a power of two with the sign of the number, which brings both
// parts of the quotient to where reciprocals are normal numbers. Zero and infinity need no correction, and have none.
struct Divisor {
  float scale, scaled, reciprocal, correction;
};

OPWRIGHT_INLINE Divisor divisor_of(float number) {
  constexpr float large = 0x1p100f, small = 0x1p-100f;
  const float size = detail::magnitude(number);
  const float scale = size > large ? 0x1p-64f : size < small ? 0x1p64f : 1.0f;
  const float scaled = size * scale, reciprocal = 1 / scaled;
  const bool is_corrected = size > 0 && size < __builtin_inff();
  const float signed_scale = detail::with_sign_of(scale, number);
  return {signed_scale, is_corrected ? scaled : 1.0f, reciprocal, is_corrected ? -reciprocal : -0.0f};
}

OPWRIGHT_INLINE float operator/(float number, Divisor by) {
  const float scaled = number * by.scale, quotient = scaled * by.reciprocal;
  const float excess = detail::fused(by.scaled, quotient, -scaled);
  const float corrected = detail::fused(by.correction, excess, quotient);
  return detail::magnitude(excess) < __builtin_inff() ? corrected : quotient;
}
#else
struct Divisor {
  float number;
};

OPWRIGHT_INLINE Divisor divisor_of(float number) { return {number}; }

OPWRIGHT_INLINE float operator/(float number, Divisor by) { return number / by.number; }
#endif

}  // namespace opwright
