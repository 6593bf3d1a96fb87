// Sums of consecutive numbers, in double precision.
#pragma once

#include "opwright/operands.h"

namespace opwright {

// A row function with several passes writes its summands to a buffer of this many elements, and `sum_of` adds them up.
// A loop that sums in float would end, in GCC's code, by adding the lanes of its vector one after another, with a
// larger error than eager's; one that sums in double takes up to 1.4 times as long.
constexpr Size sum_run = 512;

// Groups of four numbers are added pairwise in their own precision, and the rest in double precision: the error is far
// below that of the last rounding. Sums do not depend on the vector width of the machine.
#ifdef OPWRIGHT_APART
double sum_of(const float* values, Size count);
double sum_of(const double* values, Size count);
#else
namespace detail {

// Vectors with names: GCC keeps an array of sums in memory, and clears it by an instruction that takes longer than
// adding up 256 numbers.
typedef float EightFloats __attribute__((vector_size(32)));
typedef double FourDoubles __attribute__((vector_size(32)));

template <class T>
inline void add_eight(const T* some, FourDoubles& low, FourDoubles& high) {
  low += FourDoubles{some[0], some[1], some[2], some[3]};
  high += FourDoubles{some[4], some[5], some[6], some[7]};
}

// As many groups of four numbers as fit in a vector; the numbers of a group lie `apart` from one another.
template <class Numbers, class T>
inline void add_groups(const T* some, Size apart, Numbers& sums) {
  Numbers a, b, c, d;
  __builtin_memcpy(&a, some, sizeof(a));
  __builtin_memcpy(&b, some + apart, sizeof(b));
  __builtin_memcpy(&c, some + 2 * apart, sizeof(c));
  __builtin_memcpy(&d, some + 3 * apart, sizeof(d));
  sums = (a + b) + (c + d);
}
inline void add_eight_groups(const float* some, Size apart, FourDoubles& low, FourDoubles& high) {
  EightFloats sums;
  add_groups(some, apart, sums);
  low += FourDoubles{sums[0], sums[1], sums[2], sums[3]};
  high += FourDoubles{sums[4], sums[5], sums[6], sums[7]};
}
inline void add_eight_groups(const double* some, Size apart, FourDoubles& low, FourDoubles& high) {
  FourDoubles sums;
  add_groups(some, apart, sums);
  low += sums;
  add_groups(some + 4, apart, sums);
  high += sums;
}

template <class T>
inline double sum(const T* values, Size count) {
  constexpr Size lanes = 16;
  double sum = 0;
  Size done = 0;
  if (count >= lanes) {
    FourDoubles a{}, b{}, c{}, d{};
    for (; done + 4 * lanes <= count; done += 4 * lanes) {
      add_eight_groups(values + done, lanes, a, b);
      add_eight_groups(values + done + 8, lanes, c, d);
    }
    for (; done + lanes <= count; done += lanes) {
      add_eight(values + done, a, b);
      add_eight(values + done + 8, c, d);
    }
    if (done + 8 <= count) {
      add_eight(values + done, a, b);
      done += 8;
    }
    if (done + 4 <= count) {
      const T* const some = values + done;
      a += FourDoubles{some[0], some[1], some[2], some[3]};
      done += 4;
    }
    const FourDoubles sums = (a + c) + (b + d);
    sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }
  for (; done < count; ++done) sum += values[done];
  return sum;
}

}  // namespace detail

OPWRIGHT_ONCE double sum_of(const float* values, Size count) { return detail::sum(values, count); }
OPWRIGHT_ONCE double sum_of(const double* values, Size count) { return detail::sum(values, count); }
#endif

}  // namespace opwright
