// Drives every function of opwright/vmath.h through the loop that an emitted kernel would write, and measures its
// distance from the exact result in ulp. test_vmath.py loads it with ctypes.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "opwright/vmath.h"

namespace {

constexpr double kMismatch = std::numeric_limits<double>::infinity();
constexpr std::int64_t kBlock = 4096;

// T is the type under test, Exact a wider one.
template <class T, class Exact> double distance_in_ulp(T got, Exact exact) {
  constexpr int digits = std::numeric_limits<T>::digits;
  constexpr int top = std::numeric_limits<T>::max_exponent, bottom = std::numeric_limits<T>::min_exponent;
  if (std::isnan(got) || std::isnan(exact)) return std::isnan(got) && std::isnan(exact) ? 0 : kMismatch;
  if (std::signbit(got) != std::signbit(exact)) return kMismatch;
  const Exact limit = std::ldexp(Exact(1), top), size = std::fabs(exact);
  const Exact found = std::isinf(got) ? limit : std::fabs(static_cast<Exact>(got));
  if (size > limit + limit * std::ldexp(Exact(1), 2 - digits)) return std::isinf(got) ? 0 : kMismatch;
  const int exponent = size > 0 ? std::clamp(std::ilogb(size) + 1, bottom, top) : bottom;
  return static_cast<double>(std::ldexp(std::fabs(found - size), digits - exponent));
}

struct Worst {
  double ulp = 0;
  std::int64_t index = 0;

  void see(double distance, std::int64_t at) {
    if (distance <= ulp) return;
    ulp = distance;
    index = at;
  }
};

struct Unary {
  void (*kernel)(const float*, float*, std::int64_t);
  void (*kernel_double)(const double*, double*, std::int64_t);
  double (*exact)(double);
  long double (*exact_long)(long double);
};

struct Binary {
  void (*kernel)(const float*, const float*, float*, std::int64_t);
  void (*kernel_double)(const double*, const double*, double*, std::int64_t);
  double (*exact)(double, double);
  long double (*exact_long)(long double, long double);
};

std::map<std::string, Unary>& unary_functions() {
  static std::map<std::string, Unary> table;
  return table;
}

std::map<std::string, Binary>& binary_functions() {
  static std::map<std::string, Binary> table;
  return table;
}

template <class T> T python_remainder(T remainder, T divisor) {
  return remainder != 0 && (remainder < 0) != (divisor < 0) ? remainder + divisor : remainder;
}

#define UNARY(name, expression)                                                                                        \
  template <class T> void name##_kernel(const T* in, T* out, std::int64_t count) {                                     \
    _Pragma("omp simd") for (std::int64_t i = 0; i < count; ++i) out[i] = SUBJECT::name(in[i]);                        \
  }                                                                                                                    \
  template <class T> T name##_exact(T x) { return expression; }                                                        \
  const bool name##_entered =                                                                                          \
      unary_functions()                                                                                                \
          .insert(                                                                                                     \
              {#name, {name##_kernel<float>, name##_kernel<double>, name##_exact<double>, name##_exact<long double>}}) \
          .second;

#define BINARY(name, expression)                                                                                       \
  template <class T> void name##_kernel(const T* a, const T* b, T* out, std::int64_t count) {                          \
    _Pragma("omp simd") for (std::int64_t i = 0; i < count; ++i) out[i] = SUBJECT::name(a[i], b[i]);                   \
  }                                                                                                                    \
  template <class T> T name##_exact(T x, T y) { return expression; }                                                   \
  const bool name##_entered =                                                                                          \
      binary_functions()                                                                                               \
          .insert(                                                                                                     \
              {#name, {name##_kernel<float>, name##_kernel<double>, name##_exact<double>, name##_exact<long double>}}) \
          .second;

#define SUBJECT opwright

// clang-format off
UNARY(exp, std::exp(x))
UNARY(exp2, std::exp2(x))
UNARY(expm1, std::expm1(x))
UNARY(sigmoid, x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x)))
UNARY(tanh, std::tanh(x))
UNARY(log, std::log(x))
UNARY(log1p, std::log1p(x))
UNARY(log2, std::log2(x))
UNARY(log10, std::log10(x))
UNARY(sin, std::sin(x))
UNARY(cos, std::cos(x))
UNARY(tan, std::tan(x))
UNARY(asin, std::asin(x))
UNARY(acos, std::acos(x))
UNARY(atan, std::atan(x))
UNARY(sinh, std::sinh(x))
UNARY(cosh, std::cosh(x))
UNARY(asinh, std::asinh(x))
UNARY(acosh, std::acosh(x))
UNARY(atanh, std::atanh(x))
UNARY(erf, std::erf(x))
UNARY(erfc, std::erfc(x))
UNARY(sqrt, std::sqrt(x))
UNARY(rsqrt, 1 / std::sqrt(x))
UNARY(abs, std::fabs(x))
UNARY(sign, static_cast<T>((x > 0) - (x < 0)))
UNARY(floor, std::floor(x))
UNARY(ceil, std::ceil(x))
UNARY(trunc, std::trunc(x))
UNARY(round, std::nearbyint(x))
BINARY(pow, std::pow(x, y))
BINARY(atan2, std::atan2(x, y))
BINARY(copysign, std::copysign(x, y))
BINARY(hypot, std::hypot(x, y))
BINARY(fmod, std::fmod(x, y))
BINARY(remainder, python_remainder(std::fmod(x, y), y))
BINARY(min, std::isnan(x) || std::isnan(y) ? T(NAN) : std::min(x, y))
BINARY(max, std::isnan(x) || std::isnan(y) ? T(NAN) : std::max(x, y))
// clang-format on

// Functions of angles near zero.
namespace near {
using opwright::Angles;
template <class T> T near_sin(T x) { return opwright::sin<Angles::near>(x); }
template <class T> T near_cos(T x) { return opwright::cos<Angles::near>(x); }
template <class T> T near_tan(T x) { return opwright::tan<Angles::near>(x); }
} // namespace near

#undef SUBJECT
#define SUBJECT near

// clang-format off
UNARY(near_sin, std::sin(x))
UNARY(near_cos, std::cos(x))
UNARY(near_tan, std::tan(x))
// clang-format on

// Functions that are wrong each in one way, to show that the comparison notices.
namespace wrong {
template <class T> T scaled(T x) { return opwright::exp(x) * (1 + 4 * std::numeric_limits<T>::epsilon()); }
template <class T> T loses_nan(T x) { return x != x ? T(0) : opwright::exp(x); }
template <class T> T loses_minus_zero(T x) { return opwright::tanh(x) + T(0); }
template <class T> T loses_infinity(T x) { return std::min(opwright::exp(x), std::numeric_limits<T>::max()); }
template <class T> T flushes_subnormals(T x) {
  const T y = opwright::exp(x);
  return y < std::numeric_limits<T>::min() ? T(0) : y;
}
} // namespace wrong

#undef SUBJECT
#define SUBJECT wrong

// clang-format off
UNARY(scaled, std::exp(x))
UNARY(loses_nan, std::exp(x))
UNARY(loses_minus_zero, std::tanh(x))
UNARY(loses_infinity, std::exp(x))
UNARY(flushes_subnormals, std::exp(x))
// clang-format on

template <class T, class Exact>
Worst worst_of_block(void (*kernel)(const T*, T*, std::int64_t), Exact (*exact)(Exact), const T* in,
                     std::int64_t count) {
  T out[kBlock];
  kernel(in, out, count);
  Worst worst;
  for (std::int64_t i = 0; i < count; ++i) worst.see(distance_in_ulp(out[i], exact(static_cast<Exact>(in[i]))), i);
  return worst;
}

template <class T, class Exact>
Worst worst_of(void (*kernel)(const T*, T*, std::int64_t), Exact (*exact)(Exact), const T* in, std::int64_t count) {
  Worst worst;
  for (std::int64_t start = 0; start < count; start += kBlock) {
    const Worst block = worst_of_block(kernel, exact, in + start, std::min(kBlock, count - start));
    worst.see(block.ulp, start + block.index);
  }
  return worst;
}

template <class T, class Exact>
Worst worst_of_pairs(void (*kernel)(const T*, const T*, T*, std::int64_t), Exact (*exact)(Exact, Exact), const T* a,
                     const T* b, std::int64_t count) {
  std::vector<T> out(count);
  kernel(a, b, out.data(), count);
  Worst worst;
  for (std::int64_t i = 0; i < count; ++i)
    worst.see(distance_in_ulp(out[i], exact(static_cast<Exact>(a[i]), static_cast<Exact>(b[i]))), i);
  return worst;
}

// All floats whose pattern lies in [first, last).
Worst worst_of_patterns(const Unary& function, std::int64_t first, std::int64_t last) {
  Worst worst;
  float in[kBlock];
  for (std::int64_t start = first; start < last; start += kBlock) {
    for (std::int64_t i = 0; i < kBlock; ++i) {
      const auto pattern = static_cast<std::uint32_t>(start + i);
      std::memcpy(&in[i], &pattern, sizeof pattern);
    }
    const Worst block = worst_of_block(function.kernel, function.exact, in, kBlock);
    worst.see(block.ulp, start + block.index);
  }
  return worst;
}

} // namespace

extern "C" {

// Where angles end to be near.
double near_end(bool of_double) {
  return of_double ? opwright::detail::NearAngles<double>::end : opwright::detail::NearAngles<float>::end;
}

void apply_unary(const char* name, const float* in, float* out, std::int64_t count) {
  unary_functions().at(name).kernel(in, out, count);
}

void apply_binary(const char* name, const float* a, const float* b, float* out, std::int64_t count) {
  binary_functions().at(name).kernel(a, b, out, count);
}

void apply_unary_double(const char* name, const double* in, double* out, std::int64_t count) {
  unary_functions().at(name).kernel_double(in, out, count);
}

void apply_binary_double(const char* name, const double* a, const double* b, double* out, std::int64_t count) {
  binary_functions().at(name).kernel_double(a, b, out, count);
}

double worst_unary(const char* name, const float* in, std::int64_t count, std::int64_t* index) {
  const Unary& function = unary_functions().at(name);
  const Worst worst = worst_of(function.kernel, function.exact, in, count);
  *index = worst.index;
  return worst.ulp;
}

double worst_unary_double(const char* name, const double* in, std::int64_t count, std::int64_t* index) {
  const Unary& function = unary_functions().at(name);
  const Worst worst = worst_of(function.kernel_double, function.exact_long, in, count);
  *index = worst.index;
  return worst.ulp;
}

double worst_binary(const char* name, const float* a, const float* b, std::int64_t count, std::int64_t* index) {
  const Binary& function = binary_functions().at(name);
  const Worst worst = worst_of_pairs(function.kernel, function.exact, a, b, count);
  *index = worst.index;
  return worst.ulp;
}

double worst_binary_double(const char* name, const double* a, const double* b, std::int64_t count,
                           std::int64_t* index) {
  const Binary& function = binary_functions().at(name);
  const Worst worst = worst_of_pairs(function.kernel_double, function.exact_long, a, b, count);
  *index = worst.index;
  return worst.ulp;
}

// Over every float; *index is the bit pattern of the worst one.
double worst_unary_everywhere(const char* name, std::int64_t thread_count, std::int64_t* index) {
  const Unary& function = unary_functions().at(name);
  constexpr std::int64_t chunk_count = 256, chunk = (std::int64_t{1} << 32) / chunk_count;
  std::vector<Worst> worst(thread_count);
  std::vector<std::thread> threads;
  for (std::int64_t t = 0; t < thread_count; ++t) {
    threads.emplace_back([&, t] {
      for (std::int64_t c = t; c < chunk_count; c += thread_count) {
        const Worst of_chunk = worst_of_patterns(function, c * chunk, (c + 1) * chunk);
        worst[t].see(of_chunk.ulp, of_chunk.index);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Worst all = *std::max_element(worst.begin(), worst.end(), [](Worst a, Worst b) { return a.ulp < b.ulp; });
  *index = all.index;
  return all.ulp;
}

void integer_abs(const std::int64_t* in, std::int64_t* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = opwright::abs(in[i]);
}

void integer_sign(const std::int64_t* in, std::int64_t* out, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) out[i] = opwright::sign(in[i]);
}

#define INTEGER_BINARY(name)                                                                                           \
  void integer_##name(const std::int64_t* a, const std::int64_t* b, std::int64_t* out, std::int64_t count) {           \
    for (std::int64_t i = 0; i < count; ++i) out[i] = opwright::name(a[i], b[i]);                                      \
  }
INTEGER_BINARY(min)
INTEGER_BINARY(max)
INTEGER_BINARY(remainder)
INTEGER_BINARY(floor_divide)
INTEGER_BINARY(shift_left)
INTEGER_BINARY(shift_right)

} // extern "C"
