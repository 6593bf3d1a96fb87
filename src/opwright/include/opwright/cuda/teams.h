// Threads that fold a row together: a power of two of them, neighbours in a warp or a whole block.
#pragma once

#include "opwright/bits.h"

namespace opwright {
namespace detail {

constexpr unsigned all_lanes = 0xffffffffu;

// What another lane of the warp has folded, word by word.
template <class Folds>
OPWRIGHT_INLINE Folds folds_of_lane(const Folds& folds, int distance) {
  constexpr int words = (sizeof(Folds) + 3) / 4;
  uint32_t sent[words] = {};
  memcpy(sent, &folds, sizeof(Folds));
#pragma unroll
  for (int word = 0; word < words; ++word) sent[word] = __shfl_xor_sync(all_lanes, sent[word], distance);
  Folds other;
  memcpy(&other, sent, sizeof(Folds));
  return other;
}

}  // namespace detail

// Folds what the threads of a team have into one, which they all get. A team is blockDim.x threads; where it is smaller
// than a warp, a warp has several. All threads of the block must come here.
//
// Partners put together the same two values, so that all of them get the same bits.
template <class Folds>
OPWRIGHT_INLINE void fold_threads(Folds& folds) {
  const int size = static_cast<int>(blockDim.x), in_warp = size < 32 ? size : 32;
  for (int distance = in_warp / 2; distance > 0; distance /= 2) folds.add(detail::folds_of_lane(folds, distance));
  if (size <= 32) return;
  __shared__ Folds of_warp[32];
  const int warps = size / 32, first = static_cast<int>(threadIdx.y) * warps;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  __syncthreads();  // of the fold before this one, all have read what it left here
  if (lane == 0) of_warp[first + warp] = folds;
  __syncthreads();
  folds.start();
  if (lane < warps) folds = of_warp[first + lane];
  for (int distance = 16; distance > 0; distance /= 2) folds.add(detail::folds_of_lane(folds, distance));
}

}  // namespace opwright
