// Stores that bypass the caches, for results that would only evict everything else.
//
// An ordinary store first reads the line it is about to overwrite; these do not, which saves a third of the traffic.
#pragma once

#include <cstdint>

namespace opwright {

#if defined(__SSE2__)
typedef long long StreamedLine __attribute__((vector_size(16)));

inline void stream_line(StreamedLine* place, StreamedLine line) {
#if defined(__clang__)
  __builtin_nontemporal_store(line, place);
#else
  __builtin_ia32_movntdq(place, line);
#endif
}

// Copy; other threads see the copy after `end_stream`.
inline void stream(const char* from, std::int64_t bytes, char* into) {
  std::int64_t done = -reinterpret_cast<std::uintptr_t>(into) & 15;  // to where vectors are aligned
  if (done > bytes) done = bytes;
  __builtin_memcpy(into, from, done);
  for (; done + 16 <= bytes; done += 16) {
    StreamedLine line;
    __builtin_memcpy(&line, from + done, sizeof line);
    stream_line(reinterpret_cast<StreamedLine*>(into + done), line);
  }
  __builtin_memcpy(into + done, from + done, bytes - done);
}
inline void end_stream() { __builtin_ia32_sfence(); }
#else
inline void stream(const char* from, std::int64_t bytes, char* into) { __builtin_memcpy(into, from, bytes); }
inline void end_stream() {}
#endif

}  // namespace opwright
