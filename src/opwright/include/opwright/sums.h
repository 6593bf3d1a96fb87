// Sums of numbers that lie in a row, in double precision.
#pragma once

#include "opwright/axes.h"

namespace opwright {

// A row function that goes over its row several times writes what it sums to a buffer of so many elements, again and
// again, and has `sum_of` add them up. A loop that sums in float itself ends, in GCC's code, with the lanes of its vector
// added one after another, whose error is larger than eager's; one that sums in double takes up to 1.4 times as long.
constexpr Size sum_run = 512;

// Four numbers are added to one in their own precision, by twos, and the rest is done in double precision: an error far
// below that of the last rounding. Sums do not depend on how wide the vectors of a machine are.
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
