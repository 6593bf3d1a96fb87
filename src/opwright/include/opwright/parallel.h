// Loops on several threads.
#pragma once

#include "opwright/forks.h"
#include "opwright/shim.h"

namespace opwright {

// Calls function(from, to, context) for parts of [0, total), on torch's threads if there is more than one grain of work.
//
// In a forked child, the thread that forked does all the work: GNU's OpenMP would wait forever for threads of the
// parent.
inline void run_in_parallel(int64_t total, int64_t grain, ParallelFunc function, void* context) {
  if (total <= grain || has_lost_threads()) return function(0, total, context);
  torch_parallel_for(0, total, grain, function, context);
}

// How many threads share a long loop.
inline int64_t sharing_threads() {
  uint32_t count = 1;
  if (!has_lost_threads()) torch_get_num_threads(&count);
  return count > 1 ? count : 1;
}

}  // namespace opwright
