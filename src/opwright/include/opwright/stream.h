// Stores that go past the caches, for results that would only push everything else out of them.
//
// An ordinary store first reads the line it is about to overwrite; these do not, which saves a third of the traffic.
#pragma once

#include <cstdint>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace opwright {

#if defined(__SSE2__)
// Copy; other threads see the copy after `end_stream`.
inline void stream(const char* from, std::int64_t bytes, char* into) {
  std::int64_t done = -reinterpret_cast<std::uintptr_t>(into) & 15;  // to where vectors are aligned
  if (done > bytes) done = bytes;
  __builtin_memcpy(into, from, done);
  for (; done + 16 <= bytes; done += 16) {
    const __m128i vector = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done));
    _mm_stream_si128(reinterpret_cast<__m128i*>(into + done), vector);
  }
  __builtin_memcpy(into + done, from + done, bytes - done);
}
inline void end_stream() { _mm_sfence(); }
#else
inline void stream(const char* from, std::int64_t bytes, char* into) { __builtin_memcpy(into, from, bytes); }
inline void end_stream() {}
#endif

}  // namespace opwright
