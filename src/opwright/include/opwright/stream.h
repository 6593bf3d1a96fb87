// Stores that bypass the caches, for results that would only evict everything else.
//
// An ordinary store first reads the line it is about to overwrite; these do not, which saves a third of the traffic.
#pragma once

#include <cstdint>

namespace opwright {

#if defined(__SSE2__)
constexpr bool can_stream = true;
#if defined(__AVX512F__)
constexpr std::int64_t streamed_bytes = 64;
#elif defined(__AVX__)
constexpr std::int64_t streamed_bytes = 32;
#else
constexpr std::int64_t streamed_bytes = 16;
#endif
typedef long long StreamedLine __attribute__((vector_size(streamed_bytes)));

inline void stream_line(StreamedLine* place, StreamedLine line) {
#if defined(__clang__)
  __builtin_nontemporal_store(line, place);
#elif defined(__AVX512F__)
  __builtin_ia32_movntdq512(place, line);
#elif defined(__AVX__)
  __builtin_ia32_movntdq256(place, line);
#else
  __builtin_ia32_movntdq(place, line);
#endif
}

// Copy; other threads see the copy after `end_stream`.
inline void stream(const char* from, std::int64_t bytes, char* into) {
  std::int64_t done = -reinterpret_cast<std::uintptr_t>(into) & (streamed_bytes - 1);  // to where vectors are aligned
  if (done > bytes) done = bytes;
  __builtin_memcpy(into, from, done);
  for (; done + streamed_bytes <= bytes; done += streamed_bytes) {
    StreamedLine line;
    __builtin_memcpy(&line, from + done, sizeof line);
    stream_line(reinterpret_cast<StreamedLine*>(into + done), line);
  }
  __builtin_memcpy(into + done, from + done, bytes - done);
}
inline void end_stream() { __builtin_ia32_sfence(); }
#else
constexpr bool can_stream = false;
inline void stream(const char* from, std::int64_t bytes, char* into) { __builtin_memcpy(into, from, bytes); }
inline void end_stream() {}
#endif

}  // namespace opwright
