// Mathematics for emitted kernels: plain inline functions, overloaded for float and double, that a compiler vectorises
// inside `#pragma omp simd` loops without -ffast-math.
//
// Contract. In float every function is within 2 ulp of the exact result for every input, subnormal ones included; NaN,
// infinities and the sign of zero are torch's. docs/vmath.md has the measured figures. The same holds in double, but for
// erfc, fmod and hypot, which are those of the standard library, as are sin, cos and tan of angles that are not near
// zero (vmath_circular.h), and remainder, which is made of fmod.
//
// Built without FMA instructions the functions keep the contract; no constant below relies on them.
//
// The polynomial coefficients were computed for this file with Remez' exchange in 160-bit arithmetic or finer, then
// rounded to nearest (most of double) or one after the other, lowest first, with the rest fitted anew each time.
#pragma once

#include "opwright/vmath_arithmetic.h"
#include "opwright/vmath_circular.h"
#include "opwright/vmath_error_function.h"
#include "opwright/vmath_exponential.h"
#include "opwright/vmath_hyperbolic.h"
#include "opwright/vmath_inverse_circular.h"
#include "opwright/vmath_logarithm.h"
#include "opwright/vmath_parts.h"
#include "opwright/vmath_power.h"
