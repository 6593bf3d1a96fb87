// Says of operands of rows of 64 floats, and of points, whether a thread may take packs of four neighbours.
#include <cstdio>

#include "opwright/cuda/places_of_launch.h"
#include "../stable_abi.h"

using namespace opwright;

template <int outer, class... Operands>
static void ask(const char* what, Operands... operands) {
  Walk<2 - outer> walk = {};
  for (int64_t& extent : walk.extents) extent = 64;
  const cuda::LaunchOperand places[] = {operands...};
  std::printf("%s: %s\n", what, cuda::has_packs<outer>(walk, places, 4) ? "packs" : "one by one");
}

int main() {
  alignas(16) static float values[8];
  Elements<const float, 2> x{values, {64, 1}}, expanded{values, {64, 0}}, apart{values, {64, 2}},
      odd{values + 1, {64, 1}};
  Elements<float, 2> y{values, {64, 1}}, sum{values, {1, 0}};
  ask<1>("rows", cuda::place(x), cuda::place(y));
  ask<1>("rows and their sums", cuda::place(x), cuda::place_repeated(sum));
  ask<1>("expanded rows", cuda::place(expanded), cuda::place(y));
  ask<1>("rows apart", cuda::place(apart), cuda::place(y));
  ask<1>("unaligned rows", cuda::place(odd), cuda::place(y));
  ask<0>("points", cuda::place(x), cuda::place(y));
  ask<0>("expanded points", cuda::place(expanded), cuda::place(y));
  ask<0>("points stored at one place", cuda::place(x), cuda::place(sum));
}
