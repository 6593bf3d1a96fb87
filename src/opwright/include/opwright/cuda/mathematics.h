// Functions of real numbers that CUDA lacks or names differently. All others are CUDA's accurate versions: no
// fast-math, no approximate division.
#pragma once

#include "opwright/arithmetic.h"

namespace opwright {

// Complex numbers have overloads of these.
using ::atan2;
using ::cos;
using ::cosh;
using ::exp;
using ::hypot;
using ::log;
using ::pow;
using ::sin;
using ::sinh;
using ::sqrt;
using ::tan;
using ::tanh;

template <class T>
OPWRIGHT_INLINE constexpr T infinity() {
  return detail::kInfinity<T>;
}
template <class T>
OPWRIGHT_INLINE constexpr T not_a_number() {
  return detail::kNan<T>;
}

/// 1/(1 + e^-x)
OPWRIGHT_INLINE float sigmoid(float x) { return 1 / (1 + expf(-x)); }
OPWRIGHT_INLINE double sigmoid(double x) { return 1 / (1 + ::exp(-x)); }

/// torch.remainder: the sign of y, as Python's %.
OPWRIGHT_INLINE float remainder(float x, float y) { return detail::floored(fmodf(x, y), y); }
OPWRIGHT_INLINE double remainder(double x, double y) { return detail::floored(::fmod(x, y), y); }

template <class T>
OPWRIGHT_INLINE bool is_nan(T x) {
  return x != x;
}

/// The difference of two infinities is NaN.
template <class T>
OPWRIGHT_INLINE bool is_infinite(T x) {
  return x == x && x - x != x - x;
}

}  // namespace opwright
