// bfloat16 and float16 as elements of memory; arithmetic is done in float.
//
// The conversions are integer arithmetic and selects, so that loops over them vectorise: GCC 12 vectorises neither its
// own `_Float16` nor the processor's conversion instructions. Rounding is to nearest, half to even; NaN stays NaN.
#pragma once

#include "opwright/bits.h"

namespace opwright {

// Enumerations, because a loop that makes objects of a class is not vectorised.
enum class BFloat16 : uint16_t {};
enum class Float16 : uint16_t {};

OPWRIGHT_INLINE float to_float(BFloat16 x) { return detail::float_from(static_cast<uint32_t>(x) << 16); }

OPWRIGHT_INLINE BFloat16 to_bfloat16(float x) {
  const uint32_t bits = detail::float_bits(x);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  return static_cast<BFloat16>(x != x ? 0x7fc0 : rounded);
}

OPWRIGHT_INLINE float to_float(Float16 x) {
  constexpr uint32_t exponent = 0x0f800000, least_normal = 0x38800000;
  const uint32_t half = static_cast<uint32_t>(x), bits = (half & 0x7fff) << 13, found = bits & exponent;
  const float tiny = detail::float_from(bits + least_normal) - detail::float_from(least_normal);
  const float usual = detail::float_from(bits + (found == exponent ? 0x70000000 : 0x38000000));
  return detail::float_from(detail::float_bits(found == 0 ? tiny : usual) | (half & 0x8000) << 16);
}

// Method: a normal number has its exponent moved by 112; what lies below the normal numbers is added to a number whose
// last place is the smallest float16, so that the addition itself rounds (F. Giesen, float->half variants, 2012).
OPWRIGHT_INLINE Float16 to_float16(float x) {
  constexpr uint32_t infinity = 0x7c00, quiet_nan = 0x7e00, overflow = 0x47800000, least_normal = 0x38800000;
  const uint32_t sign = detail::float_bits(x) & 0x80000000, bits = detail::float_bits(x) ^ sign;
  const uint32_t normal = (bits - 0x38000000 + 0xfff + ((bits >> 13) & 1)) >> 13;
  const uint32_t tiny = detail::float_bits(detail::float_from(bits) + 0.5f) - 0x3f000000;
  const uint32_t special = bits > 0x7f800000 ? quiet_nan : infinity;
  const uint32_t finite = bits < least_normal ? tiny : normal;
  return static_cast<Float16>((bits >= overflow ? special : finite) | (sign >> 16));
}

}  // namespace opwright
