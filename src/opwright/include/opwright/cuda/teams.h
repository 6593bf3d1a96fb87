// Threads that reduce a row together: a power of two of them, neighbours in a warp or a whole block.
#pragma once

#include "opwright/bits.h"

namespace opwright {
namespace detail {

constexpr unsigned all_lanes = 0xffffffffu;

// The partial result of another lane of the warp, word by word.
template <class Reductions>
OPWRIGHT_INLINE Reductions reductions_of_lane(const Reductions& reductions, int distance) {
  constexpr int words = (sizeof(Reductions) + 3) / 4;
  uint32_t sent[words] = {};
  memcpy(sent, &reductions, sizeof(Reductions));
#pragma unroll
  for (int word = 0; word < words; ++word) sent[word] = __shfl_xor_sync(all_lanes, sent[word], distance);
  Reductions other;
  memcpy(&other, sent, sizeof(Reductions));
  return other;
}

}  // namespace detail

// Combines the partial results of a team; every thread gets the result. A team is blockDim.x threads; a warp has
// several smaller teams. All threads of the block must call this.  Partners combine the same two values, so that all
// threads get the same bits.
template <class Reductions>
OPWRIGHT_INLINE void reduce_threads(Reductions& reductions) {
  const int size = static_cast<int>(blockDim.x), in_warp = size < 32 ? size : 32;
  for (int distance = in_warp / 2; distance > 0; distance /= 2)
    reductions.add(detail::reductions_of_lane(reductions, distance));
  if (size <= 32) return;
  __shared__ Reductions of_warp[32];
  const int warps = size / 32, first = static_cast<int>(threadIdx.y) * warps;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  __syncthreads();  // all threads have read the result of the reduction before this one
  if (lane == 0) of_warp[first + warp] = reductions;
  __syncthreads();
  reductions.start();
  if (lane < warps) reductions = of_warp[first + lane];
  for (int distance = 16; distance > 0; distance /= 2) reductions.add(detail::reductions_of_lane(reductions, distance));
}

}  // namespace opwright
