// Which version of a kernel is launched, and with how many blocks. Depends on sizes, strides and addresses alone.
#pragma once

#include "opwright/cuda/driver.h"
#include "opwright/cuda/places_of_launch.h"

namespace opwright::cuda {

constexpr Size threads_of_block = 256, most_blocks = 65536;

inline Size least(Size a, Size b) { return a < b ? a : b; }
inline Size blocks_for(Size work, Size of_block) { return least((work + of_block - 1) / of_block, most_blocks); }

// Kernels whose points do not depend on each other. `kernels` are the plain one and the wide one, then the same for packs.
template <int width, int batch, class Arguments, int versions, int count>
inline bool launch_points(Kernel (&kernels)[versions], Arguments& given, const Place (&places)[count]) {
  auto& walk = given.inner_axes;
  merge(walk, 0, places);
  const bool packed = versions > 2 && has_packs<0>(walk, places, width), wide = !fits_32_bits<0>(walk, places);
  count_packs(walk, packed ? width : 1);
  if (walk.total == 0) return true;
  const Size blocks = blocks_for(walk.total, threads_of_block * batch);
  return launch(kernels[2 * packed + wide], blocks, threads_of_block, given);
}

}  // namespace opwright::cuda
