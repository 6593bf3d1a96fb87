// Bit patterns of IEEE floating-point numbers, and the small tools that the functions of vmath.h are built from.
//
// Everything is branch-free: a choice is a select between two values that are both computed, so a loop over any of
// these functions vectorises. The compiler's own functions serve instead of <cmath> and <limits>, because those headers
// would take a third of the time that building a kernel takes.
#pragma once

#include "opwright/bits.h"

namespace opwright::detail {

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
