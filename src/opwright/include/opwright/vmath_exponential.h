// exp, exp2, expm1, sigmoid and tanh; all but the last one algorithm for float and double.
//
// Method (Cody and Waite 1980): x = n ln2 + r with |r| <= ln2/2 and n ln2 subtracted in two parts, the first of them
// exactly; e^r - 1 = r + r² Q(r) with Q minimax; the result is scaled by 2^n.
//
// Arguments are not clamped: where a function has reached its limit, the limit is selected at the end, which a compiler
// makes of fewer instructions.
#pragma once

#include "opwright/vmath_bits.h"

namespace opwright {
namespace detail {

template <class T>
struct Exponential;

template <>
struct Exponential<float> {
  static constexpr float log2_e = 0x1.715476p+0f;
  static constexpr float ln2_high = 0x1.62e4p-1f;  // 15 bits, so that n·ln2_high is exact
  static constexpr float ln2_low = 0x1.7f7d1cp-20f;
  // (e^r - 1 - r)/r², -ln2/2 <= r <= ln2; relative error of e^r - 1: 2^-28.5, for r > ln2/2 2^-24.5
  static constexpr float Q[] = {0x1p-1f, 0x1.55557p-3f, 0x1.55555p-5f, 0x1.10ebap-7f, 0x1.6cc6d8p-10f, 0x1.d0c35cp-13f};
  static constexpr float exp_is_zero = -105, expm1_is_minus_one = -18, sigmoid_is_one = 20;
  static constexpr int infinite_exponent = 129, sigmoid_scale = 32;
};

template <>
struct Exponential<double> {
  static constexpr double log2_e = 0x1.71547652b82fep+0;
  static constexpr double ln2_high = 0x1.62e42fefa3p-1;  // 42 bits
  static constexpr double ln2_low = 0x1.3de6af278ece6p-42;
  // The same to 2^-61.5, for r > ln2/2 2^-58.5
  static constexpr double Q[] = {0x1p-1,
                                 0x1.5555555555557p-3,
                                 0x1.55555555554d2p-5,
                                 0x1.1111111110c45p-7,
                                 0x1.6c16c16c4037bp-10,
                                 0x1.a01a01a1108c0p-13,
                                 0x1.a01a00f24627cp-16,
                                 0x1.71de3c4893332p-19,
                                 0x1.27e6393102bb1p-22,
                                 0x1.ae4c1099917b3p-26,
                                 0x1.1d79cadbe29afp-29,
                                 0x1.955b3ae434bf5p-33};
  static constexpr double exp_is_zero = -746, expm1_is_minus_one = -38, sigmoid_is_one = 40;
  static constexpr int infinite_exponent = 1025, sigmoid_scale = 64;
};

inline constexpr float kTanhIsOne = 9.1f;
inline constexpr float kFloatTanhNearZeroBound = 0.55f;

// (tanh(x)/x - 1)/x² in x², |x| <= 0.55; relative error of tanh: 2^-24.7
inline constexpr float kFloatTanhNearZero[] = {-0x1.555452p-2f, 0x1.10cefcp-3f, -0x1.af7d36p-5f, 0x1.0d5176p-6f};

// (2^r - 1)/r, |r| <= 1/2; relative error of 2^r: 2^-28.3
inline constexpr float kTanhExp2[] = {0x1.62e43p-1f, 0x1.ebfbdcp-3f,  0x1.c6af7cp-5f,
                                      0x1.3b2dep-7f, 0x1.5f082ep-10f, 0x1.416b52p-13f};

inline constexpr double kDoubleTanhIsOne = 19.2, kTanhNearZeroBound = 0.625;

// (tanh(x)/x - 1)/x² in x², |x| <= 0.625; relative error of tanh: 2^-57.1
inline constexpr double kTanhNearZero[] = {-0x1.5555555555555p-2,  0x1.11111111110ecp-3,   -0x1.ba1ba1ba18816p-5,
                                           0x1.664f4881c3effp-6,   -0x1.226e35310469ap-7,  0x1.d6d3c6a6c15a1p-9,
                                           -0x1.7da29fc409b15p-10, 0x1.354df6785f13ep-11,  -0x1.f4bfe36a3b1e4p-13,
                                           0x1.91a1bdb0ce05cp-14,  -0x1.3339b7bea7258p-15, 0x1.8b73effe24e87p-17,
                                           -0x1.300a1d759ca3ep-19};

// (2^r - 1)/r, |r| <= 1/2; relative error of 2^r: 2^-32.5
inline constexpr float kExp2[] = {0x1.62e43p-1f,   0x1.ebfbe0p-3f,  0x1.c6b06ep-5f, 0x1.3b2a5cp-7f,
                                  0x1.5da586p-10f, 0x1.440e4ap-13f, 0x1.e0af7ep-17f};

// The same for double; relative error 2^-55.5, that of the first coefficient's rounding
inline constexpr double kDoubleExp2[] = {0x1.62e42fefa39efp-1,  0x1.ebfbdff82c58fp-3,  0x1.c6b08d704a0c6p-5,
                                         0x1.3b2ab6fba4e6p-7,   0x1.5d87fe78a3fe5p-10, 0x1.430912f874158p-13,
                                         0x1.ffcbfc6d8d3fbp-17, 0x1.62c0221b64ap-20,   0x1.b524ec0be687ap-24,
                                         0x1.e4cfae513b636p-28, 0x1.e9ebc1f0dad6cp-32, 0x1.c3bd66ebf0381p-36};

// 2^r, |r| <= 1/2; relative error 2^-40.2
inline constexpr double kExp2Narrow[] = {0x1.ffffffffff78ep-1, 0x1.62e42fef85d9ap-1,  0x1.ebfbdff933b49p-3,
                                         0x1.c6b08dd5064bdp-5, 0x1.3b2ab5c348b75p-7,  0x1.5d87477e8e1c7p-10,
                                         0x1.430ace708f23p-13, 0x1.00db4f2a64f78p-16, 0x1.61af38563bc02p-20};

/// An integer n, kept as the sum of round_magic, offset and n, whose low bits are those of n + offset.
template <class T, int offset>
struct Exponent {
  static constexpr T zero = Format<T>::round_magic + offset;
  T sum;

  /// The n nearest to x·y.
  OPWRIGHT_INLINE static Exponent nearest(T x, T y = 1) { return {fused(x, y, zero)}; }

  OPWRIGHT_INLINE Exponent at_most(int bound) const {
    const Bits<T> bits = to_bits(sum), largest = to_bits(zero) + bound;
    return {from_bits<T>(bits < largest ? bits : largest)};
  }

  OPWRIGHT_INLINE T value() const { return sum - zero; }
  OPWRIGHT_INLINE Bits<T> biased() const { return to_bits(sum); }

  /// x - n ln2
  OPWRIGHT_INLINE T remainder(T x) const {
    const T n = value();
    return fused(-n, Exponential<T>::ln2_low, fused(-n, Exponential<T>::ln2_high, x));
  }
};

/// e^r - 1
template <class T>
OPWRIGHT_INLINE T expm1_of_remainder(T r) {
  const T square = r * r;
  return fused(square, interleaved_polynomial(r, square, Exponential<T>::Q), r);
}

/// p·2^n in two steps, the first of them exact, so that subnormal results are rounded once.
template <class T>
OPWRIGHT_INLINE T scale(T p, Exponent<T, 2 * Format<T>::bias> n) {
  const Bits<T> half = n.biased() >> 1;
  return p * power_from_biased<T>(half) * power_from_biased<T>(n.biased() - half);
}

template <class T>
OPWRIGHT_INLINE T exp(T x) {
  using E = Exponential<T>;
  const auto n = Exponent<T, 2 * Format<T>::bias>::nearest(x, E::log2_e).at_most(E::infinite_exponent);
  const T y = scale(1 + expm1_of_remainder(n.remainder(x)), n);
  return x < E::exp_is_zero ? T(0) : y;
}

/// e^x - 1 where -126 ln2 < x. Where 2^n would be infinite but e^x is not yet, n stays behind and e^r reaches 2.
template <class T>
OPWRIGHT_INLINE T expm1_in_range(T x) {
  constexpr int bias = Format<T>::bias;
  const auto n = Exponent<T, bias>::nearest(x, Exponential<T>::log2_e).at_most(bias);
  const T power = power_from_biased<T>(n.biased());
  return fused(power, expm1_of_remainder(n.remainder(x)), power - 1);
}

template <class T>
OPWRIGHT_INLINE T expm1(T x) {
  return with_sign_of(x < Exponential<T>::expm1_is_minus_one ? T(-1) : expm1_in_range(x), x);
}

/// 1/(1 + e^-x), both parts of the quotient scaled: down, so that 2^n is finite for every n, and by 3/2, so that the
/// divisor is not just above a power of two, where its rounding weighs most, when the quotient is just below one, where
/// an ulp is smallest.
template <class T>
OPWRIGHT_INLINE T sigmoid(T x) {
  using E = Exponential<T>;
  constexpr int bias = Format<T>::bias - E::sigmoid_scale;
  const auto n = Exponent<T, bias>::nearest(x, -E::log2_e);
  const T one = T(1.5) * power_of_two<T>(-E::sigmoid_scale);
  const T power = T(1.5) * power_from_biased<T>(n.biased());
  const T y = one / (power + fused(power, expm1_of_remainder(n.remainder(-x)), one));
  const T above_zero = x < E::exp_is_zero ? T(0) : y;
  return x > E::sigmoid_is_one ? T(1) : above_zero;
}

/// x + x³ P(x²) near zero; 1 - 2e/(1 + e) with e = e^-2|x| beyond, where rounding errors of the quotient are damped, so
/// that e needs one step of reduction only. (1 - e)/(1 + e) everywhere would be 1.9 ulp off, and the derivative, which
/// has the square of tanh in it, twice as far as eager's.
OPWRIGHT_INLINE float tanh(float x) {
  constexpr float minus_two_log2_e = -2 * Exponential<float>::log2_e;
  const float a = magnitude(x), square = a * a;
  const auto n = Exponent<float, Format<float>::bias>::nearest(a, minus_two_log2_e);
  const float r = fused(a, minus_two_log2_e, -n.value());
  const float p = fused(r, interleaved_polynomial(r, r * r, kTanhExp2), 1.0f);
  const float power = power_from_biased<float>(n.biased());
  const float beyond = fused(-2.0f, power * p / fused(power, p, 1.0f), 1.0f);
  const float near_zero = fused(a * square, interleaved_polynomial(square, square * square, kFloatTanhNearZero), a);
  const float y = a < kFloatTanhNearZeroBound ? near_zero : beyond;
  return with_sign_of(a > kTanhIsOne ? 1.0f : y, x);
}

/// x + x³ P(x²) near zero; 1 - 2/(e^2|x| + 1) beyond, where rounding errors are damped. More work than in float, but the
/// other form would be 2.1 ulp off.
OPWRIGHT_INLINE double tanh(double x) {
  const double a = at_most(magnitude(x), kDoubleTanhIsOne);
  const double near_zero = odd_polynomial(a, kTanhNearZero);
  const double beyond = 1 - 2 / (expm1_in_range(2 * a) + 2);
  return with_sign_of(a < kTanhNearZeroBound ? near_zero : beyond, x);
}

/// 2^x in double to 2^-40, enough for one rounding to float. Saturates at 2^±1000, beyond every float.
OPWRIGHT_INLINE double exp2_narrow(double x) {
  const double bounded = at_least(at_most(x, 1000.0), -1000.0);
  const Rounded<double> n = round_to_integer(bounded);
  return polynomial(bounded - n.value, kExp2Narrow) * power_of_two<double>(n.integer);
}

/// e^x in double to 2^-40, for |x| < 500.
OPWRIGHT_INLINE double exp_narrow(double x) { return exp2_narrow(x * Exponential<double>::log2_e); }

}  // namespace detail

OPWRIGHT_INLINE float exp(float x) { return detail::exp(x); }
OPWRIGHT_INLINE double exp(double x) { return detail::exp(x); }

/// e^x for x <= 0, to the bits of exp: one power of two reaches all results, raised to where it is normal.
OPWRIGHT_INLINE float exp_to_one(float x) {
  using E = detail::Exponential<float>;
  constexpr int raised = 24;
  const auto n = detail::Exponent<float, detail::Format<float>::bias + raised>::nearest(x, E::log2_e);
  const float p = 1 + detail::expm1_of_remainder(n.remainder(x));
  const float y = p * detail::power_from_biased<float>(n.biased()) * detail::power_of_two<float>(-raised);
  return x < E::exp_is_zero ? 0.0f : y;
}

OPWRIGHT_INLINE float expm1(float x) { return detail::expm1(x); }
OPWRIGHT_INLINE double expm1(double x) { return detail::expm1(x); }

OPWRIGHT_INLINE float sigmoid(float x) { return detail::sigmoid(x); }
OPWRIGHT_INLINE double sigmoid(double x) { return detail::sigmoid(x); }

OPWRIGHT_INLINE float tanh(float x) { return detail::tanh(x); }
OPWRIGHT_INLINE double tanh(double x) { return detail::tanh(x); }

OPWRIGHT_INLINE float exp2(float x) {
  const auto n = detail::Exponent<float, 254>::nearest(x).at_most(129);
  const float r = x - n.value();
  const float y = detail::scale(detail::fused(r, detail::polynomial(r, detail::kExp2), 1.0f), n);
  return x < -151 ? 0.0f : y;
}
OPWRIGHT_INLINE double exp2(double x) {
  const auto n = detail::Exponent<double, 2046>::nearest(x).at_most(1025);
  const double r = x - n.value();
  const double p = detail::fused(r, detail::interleaved_polynomial(r, r * r, detail::kDoubleExp2), 1.0);
  return x < -1076 ? 0.0 : detail::scale(p, n);
}

}  // namespace opwright
