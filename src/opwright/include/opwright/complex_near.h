// What exp, sin and cos of complex floats are made of where their angle is near zero and their other part, the exponent,
// is small: in float, without a table.
//
// Kernels look at the arguments of a run first (vmath_circular.h), so there are no infinities and no NaN here, and e^x is
// a normal number. Method: sines as of real angles; for e^±x = 2^±n e^±r, a polynomial for each of cosh r and sinh r, so
// that nothing is divided, and nothing cancels near zero.
#pragma once

#include "opwright/vmath_circular.h"
#include "opwright/vmath_exponential.h"

namespace opwright::detail {

// (cosh(r) - 1)/r² and (sinh(r)/r - 1)/r² in r², |r| <= ln2/2; relative errors of the results 2^-34 and 2^-26.2
inline constexpr float kCoshOfRemainder[] = {0x1p-1f, 0x1.55547ep-5f, 0x1.6d9792p-10f};
inline constexpr float kSinhOfRemainder[] = {0x1.5554bp-3f, 0x1.122802p-7f};

struct NearSineAndCosine {
  float sine, cosine;
};

/// The sine and the cosine of x near zero.
OPWRIGHT_INLINE NearSineAndCosine near_sine_and_cosine(float x) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  const NearZero<float> angle(x);
  const float t = angle.t, square = t * t;
  const float s = fused(t * square, polynomial(square, NearAngles<float>::sine), angle.rest) + t;
  const float c = fused(square, fused(square, polynomial(square, NearAngles<float>::cosine), -0.5f), 1.0f);
  const bool odd = (angle.n & 1) != 0;
  const float sine = from_bits<float>(to_bits(odd ? c : s) ^ ((angle.n & 2) << 30));
  const float cosine = from_bits<float>(to_bits(odd ? s : c) ^ (((angle.n + 1) & 2) << 30));
  return {x == 0 ? x : sine, cosine};  // -0 stays
#else
  return {sin<Angles::near>(x), cos<Angles::near>(x)};
#endif
}

/// The hyperbolic sine and cosine of a small x. With h = (2^n + 2^-n)/2 and k = (2^n - 2^-n)/2, they are
/// k cosh r + h sinh r and h cosh r + k sinh r; k is zero where n is.
OPWRIGHT_INLINE NearSineAndCosine near_hyperbolic_sine_and_cosine(float x) {
  const auto n = Exponent<float, Format<float>::bias>::nearest(x, Exponential<float>::log2_e);
  const float r = n.remainder(x), square = r * r;
  const float power = 0.5f * power_from_biased<float>(n.biased());
  const float inverse = 0.5f * power_from_biased<float>(2 * Format<float>::bias - n.biased());
  const float h = power + inverse, k = power - inverse;
  const float cosh_less_one = square * polynomial(square, kCoshOfRemainder);
  const float sinh = fused(r * square, polynomial(square, kSinhOfRemainder), r);
  const float sine = k + fused(h, sinh, k * cosh_less_one), cosine = h + fused(k, sinh, h * cosh_less_one);
  return {with_sign_of(sine, x), cosine};
}

/// e^x of a small x.
OPWRIGHT_INLINE float near_exp(float x) {
  const auto n = Exponent<float, Format<float>::bias>::nearest(x, Exponential<float>::log2_e);
  const float power = power_from_biased<float>(n.biased());
  return fused(power, expm1_of_remainder(n.remainder(x)), power);
}

}  // namespace opwright::detail
