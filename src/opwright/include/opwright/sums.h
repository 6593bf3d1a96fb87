// Sums of consecutive numbers, in double precision.
#pragma once

#include "opwright/axes.h"

namespace opwright {

// A row function with several passes writes its summands to a buffer of this many elements, and `sum_of` adds them up.
// A loop that sums in float would end, in GCC's code, by adding the lanes of its vector one after another, with a
// larger error than eager's; one that sums in double takes up to 1.4 times as long.
constexpr Size sum_run = 512;

// Groups of four numbers are added pairwise in their own precision, and the rest in double precision: the error is far
// below that of the last rounding. Sums do not depend on the vector width of the machine.
template <class T>
__attribute__((noinline)) inline double sum_of(const T* values, Size count) {
  constexpr Size lanes = 16;
  double sum = 0;
  Size done = 0;
  if (count >= lanes) {
    double sums[lanes] = {};
    for (; done + 4 * lanes <= count; done += 4 * lanes) {
      const T* const some = values + done;
#pragma omp simd
      for (Size l = 0; l < lanes; ++l)
        sums[l] += (some[l] + some[lanes + l]) + (some[2 * lanes + l] + some[3 * lanes + l]);
    }
    for (; done + lanes <= count; done += lanes) {
#pragma omp simd
      for (Size l = 0; l < lanes; ++l) sums[l] += values[done + l];
    }
    if (done + 8 <= count) {
#pragma omp simd
      for (Size l = 0; l < 8; ++l) sums[l] += values[done + l];
      done += 8;
    }
    if (done + 4 <= count) {
#pragma omp simd
      for (Size l = 0; l < 4; ++l) sums[l] += values[done + l];
      done += 4;
    }
#pragma omp simd
    for (Size l = 0; l < 8; ++l) sums[l] += sums[l + 8];
#pragma omp simd
    for (Size l = 0; l < 4; ++l) sums[l] += sums[l + 4];
    sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  for (; done < count; ++done) sum += values[done];
  return sum;
}

}  // namespace opwright
