// Threads that reduce a row together: a power of two of them, neighbours in a warp or a whole block.
#pragma once

#include "opwright/bits.h"

namespace opwright {
namespace detail {

constexpr unsigned all_lanes = 0xffffffffu;

// What another lane of the warp has reduced, word by word.
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

// Reductions what the threads of a team have into one, which they all get. A team is blockDim.x threads; where it is smaller
// than a warp, a warp has several. All threads of the block must come here.
//
// Partners put together the same two values, so that all of them get the same bits.
template <class Reductions>
OPWRIGHT_INLINE void reduce_threads(Reductions& reductions) {
  const int size = static_cast<int>(blockDim.x), in_warp = size < 32 ? size : 32;
  for (int distance = in_warp / 2; distance > 0; distance /= 2) reductions.add(detail::reductions_of_lane(reductions, distance));
  if (size <= 32) return;
  __shared__ Reductions of_warp[32];
  const int warps = size / 32, first = static_cast<int>(threadIdx.y) * warps;
  const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
  __syncthreads();  // of the reduction before this one, all have read what it left here
  if (lane == 0) of_warp[first + warp] = reductions;
  __syncthreads();
  reductions.start();
  if (lane < warps) reductions = of_warp[first + lane];
  for (int distance = 16; distance > 0; distance /= 2) reductions.add(detail::reductions_of_lane(reductions, distance));
}

}  // namespace opwright
