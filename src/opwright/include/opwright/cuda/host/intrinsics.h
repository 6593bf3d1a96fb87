// CUDA's functions that the C library does not have: bits, rounding, memory, atomics.
#pragma once

#include <math.h>  // declares the C library's functions, and their overloads, in the global namespace

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <type_traits>

using std::max;
using std::min;

namespace opwright::cuda::host {

template <class To, class From>
inline To same_bits(From value) {
  static_assert(sizeof(To) == sizeof(From));
  To result;
  std::memcpy(&result, &value, sizeof result);
  return result;
}

}  // namespace opwright::cuda::host

// Functions of one and of two arguments, written as an expression of them.
#define OPWRIGHT_UNARY(R, name, T, value) \
  inline R name(T x) { return value; }
#define OPWRIGHT_BINARY(R, name, T, value) \
  inline R name(T x, T y) { return value; }

OPWRIGHT_UNARY(int, __float_as_int, float, opwright::cuda::host::same_bits<int>(x))
OPWRIGHT_UNARY(unsigned, __float_as_uint, float, opwright::cuda::host::same_bits<unsigned>(x))
OPWRIGHT_UNARY(float, __int_as_float, int, opwright::cuda::host::same_bits<float>(x))
OPWRIGHT_UNARY(float, __uint_as_float, unsigned, opwright::cuda::host::same_bits<float>(x))
OPWRIGHT_UNARY(long long, __double_as_longlong, double, opwright::cuda::host::same_bits<long long>(x))
OPWRIGHT_UNARY(double, __longlong_as_double, long long, opwright::cuda::host::same_bits<double>(x))

OPWRIGHT_UNARY(int, __popc, unsigned, __builtin_popcount(x))
OPWRIGHT_UNARY(int, __popcll, unsigned long long, __builtin_popcountll(x))
OPWRIGHT_UNARY(int, __clz, int, x == 0 ? 32 : __builtin_clz(unsigned(x)))
OPWRIGHT_UNARY(int, __clzll, long long, x == 0 ? 64 : __builtin_clzll((unsigned long long)(x)))
OPWRIGHT_UNARY(int, __ffs, int, __builtin_ffs(x))
OPWRIGHT_UNARY(int, __ffsll, long long, __builtin_ffsll(x))
OPWRIGHT_BINARY(unsigned, __umulhi, unsigned, unsigned((unsigned long long)(x)*y >> 32))
OPWRIGHT_BINARY(int, __mulhi, int, int((long long)(x)*y >> 32))
OPWRIGHT_BINARY(unsigned long long, __umul64hi, unsigned long long,
                (unsigned long long)((unsigned __int128)(x)*y >> 64))
OPWRIGHT_BINARY(long long, __mul64hi, long long, (long long)((__int128)(x)*y >> 64))

OPWRIGHT_BINARY(float, __fadd_rn, float, x + y)
OPWRIGHT_BINARY(float, __fsub_rn, float, x - y)
OPWRIGHT_BINARY(float, __fmul_rn, float, x* y)
OPWRIGHT_BINARY(float, __fdiv_rn, float, x / y)
OPWRIGHT_UNARY(float, __fsqrt_rn, float, sqrtf(x))
OPWRIGHT_UNARY(float, __frcp_rn, float, 1.0f / x)
OPWRIGHT_BINARY(double, __dadd_rn, double, x + y)
OPWRIGHT_BINARY(double, __dsub_rn, double, x - y)
OPWRIGHT_BINARY(double, __dmul_rn, double, x* y)
OPWRIGHT_BINARY(double, __ddiv_rn, double, x / y)
OPWRIGHT_UNARY(double, __dsqrt_rn, double, sqrt(x))
OPWRIGHT_UNARY(double, __drcp_rn, double, 1.0 / x)
inline float __fmaf_rn(float x, float y, float z) { return fmaf(x, y, z); }
inline double __fma_rn(double x, double y, double z) { return fma(x, y, z); }

OPWRIGHT_UNARY(float, rsqrtf, float, float(1.0 / sqrt(double(x))))
OPWRIGHT_UNARY(float, rsqrt, float, rsqrtf(x))
OPWRIGHT_UNARY(double, rsqrt, double, 1.0 / sqrt(x))
OPWRIGHT_UNARY(float, __saturatef, float, x > 0 ? (x < 1 ? x : 1.0f) : 0.0f)
// The fast versions are less exact on a GPU; here they are the plain ones.
OPWRIGHT_UNARY(float, __expf, float, expf(x))
OPWRIGHT_UNARY(float, __logf, float, logf(x))
OPWRIGHT_UNARY(float, __log2f, float, log2f(x))
OPWRIGHT_UNARY(float, __sinf, float, sinf(x))
OPWRIGHT_UNARY(float, __cosf, float, cosf(x))
OPWRIGHT_BINARY(float, __powf, float, powf(x, y))
OPWRIGHT_BINARY(float, __fdividef, float, x / y)
#undef OPWRIGHT_UNARY
#undef OPWRIGHT_BINARY

// Loads and stores with cache hints, which have no meaning here.
#define OPWRIGHT_LOAD(name)       \
  template <class T>              \
  inline T name(const T* place) { \
    return *place;                \
  }
#define OPWRIGHT_STORE(name)            \
  template <class T>                    \
  inline void name(T* place, T value) { \
    *place = value;                     \
  }
OPWRIGHT_LOAD(__ldg)
OPWRIGHT_LOAD(__ldca)
OPWRIGHT_LOAD(__ldcg)
OPWRIGHT_LOAD(__ldcs)
OPWRIGHT_LOAD(__ldcv)
OPWRIGHT_LOAD(__ldlu)
OPWRIGHT_STORE(__stcg)
OPWRIGHT_STORE(__stcs)
OPWRIGHT_STORE(__stwb)
OPWRIGHT_STORE(__stwt)
#undef OPWRIGHT_LOAD
#undef OPWRIGHT_STORE

inline void __threadfence() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __threadfence(); }
inline void __threadfence_system() { __threadfence(); }
inline void __trap() { throw std::runtime_error("a kernel has trapped"); }

// Atomics, relaxed as on a GPU; they return the old value.
template <class T>
inline T atomicCAS(T* place, T expected, T value) {
  __atomic_compare_exchange(place, &expected, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  return expected;
}

namespace opwright::cuda::host {

template <class T, class Change>
inline T change(T* place, const Change& change) {
  T before, after;
  __atomic_load(place, &before, __ATOMIC_RELAXED);
  do {
    after = change(before);
  } while (!__atomic_compare_exchange(place, &before, &after, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  return before;
}

}  // namespace opwright::cuda::host

#define OPWRIGHT_ATOMIC(name, kinds, result)                                               \
  template <class T>                                                                       \
  inline T name(T* place, std::common_type_t<T> value) {                                   \
    static_assert(std::is_##kinds##_v<T>, "a GPU has no such function for this type");     \
    return opwright::cuda::host::change(place, [value](T before) -> T { return result; }); \
  }
OPWRIGHT_ATOMIC(atomicAdd, arithmetic, before + value)
OPWRIGHT_ATOMIC(atomicExch, arithmetic, value)
OPWRIGHT_ATOMIC(atomicSub, integral, before - value)
OPWRIGHT_ATOMIC(atomicMin, integral, before < value ? before : value)
OPWRIGHT_ATOMIC(atomicMax, integral, before > value ? before : value)
OPWRIGHT_ATOMIC(atomicAnd, integral, before& value)
OPWRIGHT_ATOMIC(atomicOr, integral, before | value)
OPWRIGHT_ATOMIC(atomicXor, integral, before ^ value)
#undef OPWRIGHT_ATOMIC
