// Forks: handlers around a fork, and whether this thread of the child is the one that forked.
#pragma once

#include <cstdint>

#include "opwright/once.h"

#if defined(__linux__)
#ifdef OPWRIGHT_WALKS_APART
namespace opwright {
bool has_lost_threads();
}  // namespace opwright
#else
extern "C" {
extern void* __dso_handle __attribute__((visibility("hidden")));
int __register_atfork(void (*before)(), void (*in_parent)(), void (*in_child)(), void* library) noexcept;
int open(const char* path, int flags, ...);
long read(int file, void* into, unsigned long bytes);
int close(int file);
}

namespace opwright {

// How many threads this process has; 0 if the system does not tell.
inline int64_t count_threads() {
  char text[1024];
  const int file = open("/proc/self/stat", 0 /* O_RDONLY */);
  if (file < 0) return 0;
  const long length = read(file, text, sizeof text);
  close(file);
  long at = length - 1;
  while (at >= 0 && text[at] != ')') --at;  // the name, in parentheses, may have blanks in it
  for (int fields = 0; at >= 0 && at < length && fields < 18; ++at) fields += text[at] == ' ';
  int64_t count = 0;
  for (; at >= 0 && at < length && text[at] >= '0' && text[at] <= '9'; ++at) count = 10 * count + (text[at] - '0');
  return count;
}

struct Forks {
  inline static int64_t threads_before = 1;
  // Whether this thread of a child called fork in a parent with other threads: OpenMP's worker threads are gone.
  inline static thread_local bool is_bereft = false;

  Forks() {
    __register_atfork([] { threads_before = count_threads(); }, nullptr,
                      [] { is_bereft = is_bereft || threads_before != 1; }, &__dso_handle);
  }
};
inline const Forks forks;

OPWRIGHT_ONCE bool has_lost_threads() { return Forks::is_bereft; }

}  // namespace opwright
#endif
#else
namespace opwright {
inline bool has_lost_threads() { return false; }
}  // namespace opwright
#endif
