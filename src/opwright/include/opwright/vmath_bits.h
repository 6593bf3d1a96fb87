// Bit patterns of IEEE floating-point numbers, and the small tools that the functions of vmath.h are built from.
//
// Everything is branch-free: a choice is a select between two values that are both computed, so a loop over any of
// these functions vectorises. The compiler's own functions serve instead of <cmath> and <limits>, because those headers
// would take a third of the time that building a kernel takes.
#pragma once

#include <cstddef>
#include <cstdint>

#define OPWRIGHT_INLINE [[gnu::always_inline]] inline

namespace opwright::detail {

/// The layout of a floating-point type. Adding `round_magic` to |x| < 2^(mantissa_bits - 2) rounds x to an integer
/// (half to even) that then stands in the low bits of the sum.
template <class T>
struct Format;

template <>
struct Format<float> {
  using Bits = std::int32_t;
  using Unsigned = std::uint32_t;
  static constexpr int mantissa_bits = 23;
  static constexpr Bits bias = 127;
  static constexpr float round_magic = 0x1.8p23f;
  static constexpr float smallest_normal = 0x1p-126f;
};

template <>
struct Format<double> {
  using Bits = std::int64_t;
  using Unsigned = std::uint64_t;
  static constexpr int mantissa_bits = 52;
  static constexpr Bits bias = 1023;
  static constexpr double round_magic = 0x1.8p52;
  static constexpr double smallest_normal = 0x1p-1022;
};

template <class T>
using Bits = typename Format<T>::Bits;

template <class T>
inline constexpr T kInfinity = T(__builtin_inf());
template <class T>
inline constexpr T kNan = T(__builtin_nan(""));
template <class T>
inline constexpr Bits<T> kSignBit = Bits<T>{1} << (8 * sizeof(T) - 1);
template <class T>
inline constexpr Bits<T> kExponentMask = -(Bits<T>{1} << Format<T>::mantissa_bits);

template <class T>
OPWRIGHT_INLINE Bits<T> to_bits(T x) {
  Bits<T> bits;
  __builtin_memcpy(&bits, &x, sizeof x);
  return bits;
}

template <class T>
OPWRIGHT_INLINE T from_bits(Bits<T> bits) {
  T x;
  __builtin_memcpy(&x, &bits, sizeof x);
  return x;
}

template <class T>
OPWRIGHT_INLINE T magnitude(T x) {
  return from_bits<T>(to_bits(x) & ~kSignBit<T>);
}

/// Gives y >= +0 the sign of x. Also right where y has that sign already, so it restores a lost -0.
template <class T>
OPWRIGHT_INLINE T with_sign_of(T y, T x) {
  return from_bits<T>(to_bits(y) | (to_bits(x) & kSignBit<T>));
}

/// The smaller of x and the bound; NaN stays NaN.
template <class T>
OPWRIGHT_INLINE T at_most(T x, T bound) {
  return x > bound ? bound : x;
}

/// The larger of x and the bound; NaN stays NaN.
template <class T>
OPWRIGHT_INLINE T at_least(T x, T bound) {
  return x < bound ? bound : x;
}

/// 2^(n - bias) for the n in the low bits; those above the exponent field do not matter.
template <class T>
OPWRIGHT_INLINE T power_from_biased(Bits<T> n) {
  return from_bits<T>(static_cast<typename Format<T>::Unsigned>(n) << Format<T>::mantissa_bits);
}

/// 2^n for n in the range of normal numbers.
template <class T>
OPWRIGHT_INLINE T power_of_two(Bits<T> n) {
  return power_from_biased<T>(n + Format<T>::bias);
}

/// The integer n as T, for |n| < 2^(mantissa_bits - 2): no conversion instruction, which AVX2 lacks for 64 bits.
template <class T>
OPWRIGHT_INLINE T from_integer(Bits<T> n) {
  constexpr T magic = Format<T>::round_magic;
  return from_bits<T>(to_bits(magic) + n) - magic;
}

/// x rounded to an integer, as T and as an integer. The integer is meaningless where x is NaN.
template <class T>
struct Rounded {
  T value;
  Bits<T> integer;
};

template <class T>
OPWRIGHT_INLINE Rounded<T> round_to_integer(T x) {
  constexpr T magic = Format<T>::round_magic;
  const T sum = x + magic;
  return {sum - magic, to_bits(sum) - to_bits(magic)};
}

/// x·y + z, rounded once where the machine can and never a call where it cannot. Nothing else is contracted, so that an
/// expression has the same value wherever it stands.
OPWRIGHT_INLINE float fused(float x, float y, float z) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fmaf(x, y, z);
#else
  return x * y + z;
#endif
}
OPWRIGHT_INLINE double fused(double x, double y, double z) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return __builtin_fma(x, y, z);
#else
  return x * y + z;
#endif
}

/// Σ coefficients[i]·xⁱ by Horner's rule, unrolled at compile time.
template <std::size_t first = 0, class T, std::size_t count>
OPWRIGHT_INLINE T polynomial(T x, const T (&coefficients)[count]) {
  if constexpr (first + 1 == count) {
    return coefficients[first];
  } else {
    return fused(x, polynomial<first + 1>(x, coefficients), coefficients[first]);
  }
}

/// The same by Estrin's rule, in pairs of coefficients. The result is ready sooner, which counts in a kernel that
/// computes one function of another.
template <std::size_t first = 0, class T, std::size_t count>
OPWRIGHT_INLINE T interleaved_polynomial(T x, T square, const T (&coefficients)[count]) {
  const T pair = fused(x, coefficients[first + 1], coefficients[first]);
  if constexpr (first + 2 == count) {
    return pair;
  } else {
    return fused(square, interleaved_polynomial<first + 2>(x, square, coefficients), pair);
  }
}

/// x + x³ P(x²), with P the polynomial of the coefficients: full accuracy for small x.
template <class T, std::size_t count>
OPWRIGHT_INLINE T odd_polynomial(T x, const T (&coefficients)[count]) {
  const T square = x * x;
  return fused(x, square * polynomial(square, coefficients), x);
}

}  // namespace opwright::detail
