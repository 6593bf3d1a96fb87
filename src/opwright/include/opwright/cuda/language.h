// The names that headers for C++ and CUDA share, in CUDA. NVRTC has no standard headers.
#pragma once

#ifdef __CUDACC_RTC__
using int8_t = signed char;
using int16_t = short;
using int32_t = int;
using int64_t = long long;
using uint8_t = unsigned char;
using uint16_t = unsigned short;
using uint32_t = unsigned int;
using uint64_t = unsigned long long;

#define INT8_MIN (-128)
#define INT16_MIN (-32768)
#define INT32_MIN (-2147483647 - 1)
#define INT64_MIN (-9223372036854775807LL - 1)
#define INT8_MAX 127
#define INT16_MAX 32767
#define INT32_MAX 2147483647
#define INT64_MAX 9223372036854775807LL
#define UINT8_MAX 255
#else
#include <cstddef>
#include <cstdint>
#endif

#define OPWRIGHT_INLINE __device__ __forceinline__
#define OPWRIGHT_INFINITY __builtin_bit_cast(double, 0x7ff0000000000000ull)
#define OPWRIGHT_NAN __builtin_bit_cast(double, 0x7ff8000000000000ull)

namespace opwright::detail {

/// Bit cast.
template <class To, class From>
OPWRIGHT_INLINE To same_bits(From x) {
  return __builtin_bit_cast(To, x);
}

}  // namespace opwright::detail
