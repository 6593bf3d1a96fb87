// Rounding to half types at random: up with the probability of the remainder, so that the mean is exact.
//
// The bits come from a counter, not from a state: the element and the seed decide, whatever thread runs. Include the half
// types before: those of C++ (opwright/half.h) or of CUDA (opwright/cuda/half.h).
#pragma once

#include "opwright/bits.h"

namespace opwright {

// Where a run of elements begins in the stream of random bits of a seed.
struct RandomStream {
  uint32_t seed, first;
};

OPWRIGHT_INLINE uint32_t mixed(uint32_t x) {  // "lowbias32" of C. Wellons, hash-prospector, 2018
  x ^= x >> 16;
  x *= 0x7feb352du;
  x ^= x >> 15;
  x *= 0x846ca68bu;
  return x ^ (x >> 16);
}

OPWRIGHT_INLINE RandomStream random_stream(uint64_t seed, int64_t first) {
  const uint64_t start = static_cast<uint64_t>(first);
  const uint32_t high = mixed(static_cast<uint32_t>(seed >> 32) ^ static_cast<uint32_t>(start >> 32) * 0x9e3779b9u);
  return {mixed(static_cast<uint32_t>(seed) ^ high), static_cast<uint32_t>(start)};
}

// The bits for one result of one element; `result` tells those of a kernel apart.
OPWRIGHT_INLINE uint32_t random_bits(RandomStream stream, int64_t element, uint32_t result) {
  const uint32_t counter = stream.first + static_cast<uint32_t>(element);
  return mixed(mixed(counter ^ stream.seed) + result * 0x9e3779b9u + stream.seed);
}

OPWRIGHT_INLINE BFloat16 to_bfloat16_randomly(float x, uint32_t random) {
  const uint32_t bits = detail::float_bits(x), exponent = bits & 0x7f800000;
  const uint32_t rounded = (bits + (exponent == 0x7f800000 ? 0 : random & 0xffff)) >> 16;
  return static_cast<BFloat16>(x != x ? 0x7fc0 : rounded);
}

// A float16 has 13 bits less than a float, and more where it is subnormal: there its last place is 2^-24.
OPWRIGHT_INLINE Float16 to_float16_randomly(float x, uint32_t random) {
  const uint32_t sign = detail::float_bits(x) & 0x80000000, bits = detail::float_bits(x) ^ sign;
  const uint32_t cut = (bits + (random & 0x1fff)) & ~uint32_t(0x1fff);
  const float scaled = detail::float_from(bits) * 16777216.0f;  // in units of 2^-24; below 1024 where it is subnormal
  const int32_t whole = static_cast<int32_t>(scaled < 1024.0f ? scaled : 1024.0f);
  const float rest = scaled - static_cast<float>(whole);
  const bool up = static_cast<float>(random >> 8) * 0x1p-24f < rest;
  const float tiny = static_cast<float>(whole + up) * 0x1p-24f;
  const float rounded = bits < 0x38800000 ? tiny : detail::float_from(bits >= 0x7f800000 ? bits : cut);
  return to_float16(detail::float_from(detail::float_bits(rounded) | sign));
}

}  // namespace opwright
