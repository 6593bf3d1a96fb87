// bfloat16 and float16 as elements of memory, converted by the GPU's own instructions, which round to nearest even.
#pragma once

#ifdef __CUDACC__
#include "opwright/bits.h"

namespace opwright {

enum class BFloat16 : uint16_t {};
enum class Float16 : uint16_t {};

OPWRIGHT_INLINE float to_float(BFloat16 x) { return __uint_as_float(static_cast<uint32_t>(x) << 16); }

OPWRIGHT_INLINE BFloat16 to_bfloat16(float x) {
  uint16_t bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return static_cast<BFloat16>(bits);
}

OPWRIGHT_INLINE float to_float(Float16 x) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<uint16_t>(x)));
  return value;
}

OPWRIGHT_INLINE Float16 to_float16(float x) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(x));
  return static_cast<Float16>(bits);
}

}  // namespace opwright
#else
#include "opwright/half.h"  // the same conversions in integer arithmetic, where kernels are executed on the host
#endif
