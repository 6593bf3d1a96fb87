// Bit patterns of IEEE floating-point numbers, for processors and GPUs.
#pragma once

#ifdef __CUDACC__
#include "opwright/cuda/language.h"
#else
#include <cstddef>
#include <cstdint>

#ifdef __OPTIMIZE__
#define OPWRIGHT_INLINE [[gnu::always_inline]] inline
#else  // which compiles in less time
#define OPWRIGHT_INLINE inline
#endif
#define OPWRIGHT_INFINITY __builtin_inf()
#define OPWRIGHT_NAN __builtin_nan("")

namespace opwright::detail {

/// Bit cast.
template <class To, class From>
OPWRIGHT_INLINE To same_bits(From x) {
  To y;
  __builtin_memcpy(&y, &x, sizeof x);
  return y;
}

}  // namespace opwright::detail
#endif

namespace opwright::detail {

/// The layout of a floating-point type. Adding `round_magic` to |x| < 2^(mantissa_bits - 2) rounds x to an integer
/// (half to even) that then stands in the low bits of the sum.
template <class T>
struct Format;

template <>
struct Format<float> {
  using Bits = int32_t;
  using Unsigned = uint32_t;
  static constexpr int mantissa_bits = 23;
  static constexpr Bits bias = 127;
  static constexpr float round_magic = 0x1.8p23f;
  static constexpr float smallest_normal = 0x1p-126f;
};

template <>
struct Format<double> {
  using Bits = int64_t;
  using Unsigned = uint64_t;
  static constexpr int mantissa_bits = 52;
  static constexpr Bits bias = 1023;
  static constexpr double round_magic = 0x1.8p52;
  static constexpr double smallest_normal = 0x1p-1022;
};

template <class T>
using Bits = typename Format<T>::Bits;

template <class T>
inline constexpr T kInfinity = T(OPWRIGHT_INFINITY);
template <class T>
inline constexpr T kNan = T(OPWRIGHT_NAN);
template <class T>
inline constexpr Bits<T> kSignBit = Bits<T>{1} << (8 * sizeof(T) - 1);
template <class T>
inline constexpr Bits<T> kExponentMask = -(Bits<T>{1} << Format<T>::mantissa_bits);

template <class T>
OPWRIGHT_INLINE Bits<T> to_bits(T x) {
  return same_bits<Bits<T>>(x);
}

template <class T>
OPWRIGHT_INLINE T from_bits(Bits<T> bits) {
  return same_bits<T>(bits);
}

OPWRIGHT_INLINE uint32_t float_bits(float x) { return static_cast<uint32_t>(to_bits(x)); }
OPWRIGHT_INLINE float float_from(uint32_t bits) { return from_bits<float>(static_cast<int32_t>(bits)); }

template <class T>
OPWRIGHT_INLINE T magnitude(T x) {
  return from_bits<T>(to_bits(x) & ~kSignBit<T>);
}

/// Gives y >= +0 the sign of x. Also right where y has that sign already, so it restores a lost -0.
template <class T>
OPWRIGHT_INLINE T with_sign_of(T y, T x) {
  return from_bits<T>(to_bits(y) | (to_bits(x) & kSignBit<T>));
}

}  // namespace opwright::detail
