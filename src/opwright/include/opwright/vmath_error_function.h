// erf and erfc.
//
// Method: erf(x) = x + x P(x²) near zero and 1 - e^-q(x) beyond, all in float or all in double. erfc of float needs
// relative accuracy down to 1e-45, so it is e^(-x²) times a polynomial in t = (4 - x)/(4 + x), in double, for x >= 0, and
// 2 - erfc(-x) for x < 0. 1 + erf(x/√2) needs no more than absolute accuracy: e^(-x²/2) times a polynomial in x/(15/4 + x).
#pragma once

#include "opwright/vmath_exponential.h"

namespace opwright {
namespace detail {

inline constexpr float kErfNearZeroBound = 0.92f;

// erf(x)/x - 1 in x², |x| <= 0.92; relative error of erf: 2^-26
inline constexpr float kErfNearZero[] = {0x1.06eba6p-3f, -0x1.8126eap-2f, 0x1.ce1b0ep-4f,
                                         -0x1.b6939p-6f, 0x1.476882p-8f,  -0x1.3ac594p-11f};

// -log(erfc(x)), 0.92 <= x <= 3.95; relative error of erf: 2^-29.3
inline constexpr float kErfBeyond[] = {0x1.9a6024p-13f, 0x1.20af5ap+0f, 0x1.463cbcp-1f,  0x1.a9b45ep-4f,
                                       -0x1.6c2aecp-6f, 0x1.8ee276p-9f, -0x1.9aeab6p-13f};

inline constexpr float kErfIsOne = 3.95f;

// erf(x)/x - 1 in x², |x| <= 1; relative error of erf: 2^-56.3
inline constexpr double kDoubleErfNearZero[] = {0x1.06eba8214db69p-3,   -0x1.812746b0379e6p-2,  0x1.ce2f21a042b2p-4,
                                                -0x1.b82ce3128499dp-6,  0x1.565bcd0db02ecp-8,   -0x1.c02db3d8ed35ep-11,
                                                0x1.f9a321a11f8f4p-14,  -0x1.f4d1df396a566p-17, 0x1.b9def19f6f3bap-20,
                                                -0x1.5f1d36ce719ffp-23, 0x1.f7a412ad04d35p-27,  -0x1.386ac23da7caap-30,
                                                0x1.0579ae80e7a44p-34};

// -log(erfc(x)) in x - 3/2, 1 <= x <= 6; relative error of erf: 2^-57
inline constexpr double kDoubleErfBeyond[] = {
    0x1.b137096b18e96p+1,   0x1.c1206279e92bdp+1,  0x1.c90827462a17ap-1,   0x1.a71a4bde017p-6,
    -0x1.89a87b4900033p-8,  0x1.499262369be09p-10, -0x1.c4e86a9f4b2d5p-13, 0x1.790bc25db4ba5p-16,
    0x1.63408a36a30fcp-19,  -0x1.3e35839b1045p-19, 0x1.b79284941b64p-21,   -0x1.9d9993e9b5fe4p-23,
    0x1.de5b52fdbf03ep-26,  0x1.2deb426e1ed0ep-30, -0x1.467d9dc502061p-29, 0x1.ff330f5adc9bfp-31,
    -0x1.fa0a145409a19p-33, 0x1.4f003a3a50555p-35, -0x1.0e920558264efp-38, 0x1.91ba05a171c4cp-43};

inline constexpr double kDoubleErfIsOne = 6;
inline constexpr double kErfcIsZero = 10.1;

// e^(x²) erfc(x) in t = (4 - x)/(4 + x), 0 <= x <= 10.1; relative error 2^-37.2
inline constexpr double kErfc[] = {
    0x1.18932bf089711p-3,   0x1.0949227329af1p-2,   0x1.bff01a634a335p-3,   0x1.50666728e932fp-3, 0x1.be502b044748dp-4,
    0x1.027d4e56744fdp-4,   0x1.00670e925a1f4p-5,   0x1.a4e13c3c12d1bp-7,   0x1.0a09f74d98906p-8, 0x1.a28dd5ff11676p-11,
    -0x1.2c8cfe9da81c9p-16, -0x1.51529b51f9512p-14, -0x1.dfe361df91fa9p-16, 0x1.4a7340f58294dp-17};

// (e^(x²/2) erfc(x/√2) - 1)/w in w = x/(15/4 + x), x >= 0; error of erfc after the multiplication by e^(-x²/2): 2^-28.2
inline constexpr float kNormalTail[] = {-0x1.7efc0ap+1f, 0x1.028174p+2f, -0x1.7a232ap+1f,
                                        0x1.79edb2p-1f,  0x1.ca1c22p-2f, -0x1.27ec8cp-2f};

inline constexpr float kMinusHalfLog2E = -0x1.715476p-1f;
inline constexpr float kBellIsZero = 13.18f;  // where it is no normal number any more

}  // namespace detail

OPWRIGHT_INLINE float erf(float x) {
  const float a = detail::at_most(detail::magnitude(x), detail::kErfIsOne);
  const float near_zero = detail::fused(a, detail::polynomial(a * a, detail::kErfNearZero), a);
  const float beyond = -detail::expm1_in_range(-detail::polynomial(a, detail::kErfBeyond));
  return detail::with_sign_of(a < detail::kErfNearZeroBound ? near_zero : beyond, x);
}
OPWRIGHT_INLINE double erf(double x) {
  const double a = detail::at_most(detail::magnitude(x), detail::kDoubleErfIsOne);
  const double near_zero = detail::fused(a, detail::polynomial(a * a, detail::kDoubleErfNearZero), a);
  const double beyond = -detail::expm1_in_range(-detail::polynomial(a - 1.5, detail::kDoubleErfBeyond));
  return detail::with_sign_of(a < 1 ? near_zero : beyond, x);
}

/// e^(-x²/2) to 1e-7 x² of it, 0 where it is below 2e-38. One step of reduction and one scale, since x² bounds the error.
OPWRIGHT_INLINE float normal_bell(float x) {
  const float a = detail::at_most(detail::magnitude(x), detail::kBellIsZero), square = a * a;
  const auto n = detail::Exponent<float, detail::Format<float>::bias>::nearest(square, detail::kMinusHalfLog2E);
  const float r = detail::fused(square, detail::kMinusHalfLog2E, -n.value());
  const float power = detail::fused(r, detail::interleaved_polynomial(r, r * r, detail::kTanhExp2), 1.0f);
  const float bell = power * detail::power_from_biased<float>(n.biased());
  return detail::magnitude(x) > detail::kBellIsZero ? 0.0f : bell;
}

/// 1 + erf(x/√2) to 1.6e-7, as the sum has it that is rounded after an erf, and for x < 0 without cancellation. The
/// gradient of gelu has the same bell, and compilers compute it once for both.
OPWRIGHT_INLINE float twice_normal_cdf(float x) {
  const float a = detail::at_most(detail::magnitude(x), detail::kBellIsZero);
  const float w = a / (3.75f + a);
  const float tail = normal_bell(x) * detail::fused(w, detail::polynomial(w, detail::kNormalTail), 1.0f);
  return x < 0 ? tail : 2 - tail;
}

OPWRIGHT_INLINE float erfc(float x) {
  const double a = detail::at_most(static_cast<double>(detail::magnitude(x)), detail::kErfcIsZero);
  const double y = detail::exp_narrow(-(a * a)) * detail::polynomial((4 - a) / (4 + a), detail::kErfc);
  return static_cast<float>(x < 0 ? 2 - y : y);
}
inline double erfc(double x) { return __builtin_erfc(x); }

}  // namespace opwright
