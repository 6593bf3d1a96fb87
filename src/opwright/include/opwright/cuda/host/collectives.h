// Collective operations of a block: barriers, shuffles within a warp, votes.
#pragma once

#include <cstring>

#include "opwright/cuda/host/block.h"

// The place of the call, for error messages.
#define OPWRIGHT_PLACE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(OPWRIGHT_PLACE) { opwright::cuda::host::block.meet_block(false, file, line); }
inline int __syncthreads_count(int predicate, OPWRIGHT_PLACE) {
  return int(opwright::cuda::host::block.meet_block(predicate != 0, file, line));
}
inline int __syncthreads_or(int predicate, OPWRIGHT_PLACE) { return __syncthreads_count(predicate, file, line) != 0; }
inline int __syncthreads_and(int predicate, OPWRIGHT_PLACE) { return __syncthreads_count(!predicate, file, line) == 0; }

inline unsigned __ballot_sync(unsigned mask, int predicate, OPWRIGHT_PLACE) {
  return unsigned(opwright::cuda::host::block.meet_warp(mask, -1, {{predicate != 0, 0}}, file, line).words[0]);
}
inline int __any_sync(unsigned mask, int predicate, OPWRIGHT_PLACE) {
  return __ballot_sync(mask, predicate, file, line) != 0;
}
inline int __all_sync(unsigned mask, int predicate, OPWRIGHT_PLACE) {
  return __ballot_sync(mask, !predicate, file, line) == 0;
}
inline void __syncwarp(unsigned mask = 0xffffffffu, OPWRIGHT_PLACE) { __ballot_sync(mask, 0, file, line); }

namespace opwright::cuda::host {

// The value of another lane; NaN where no lane gives one.
template <class T>
inline T exchange(unsigned mask, int source, T value, const char* file, int line) {
  static_assert(sizeof(T) <= sizeof(Value), "lanes exchange at most 16 bytes");
  Value brought = {};
  std::memcpy(&brought, &value, sizeof value);
  const Value found = block.meet_warp(mask, source, brought, file, line);
  std::memcpy(&value, &found, sizeof value);
  return value;
}

}  // namespace opwright::cuda::host

// Lanes count within groups of `width`; a lane that would read past its group gets its own value.
template <class T>
inline T __shfl_sync(unsigned mask, T value, int source, int width = warpSize, OPWRIGHT_PLACE) {
  const int lane = opwright::cuda::host::block.lane();
  return opwright::cuda::host::exchange(mask, lane / width * width + (source & (width - 1)), value, file, line);
}
template <class T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = warpSize, OPWRIGHT_PLACE) {
  const int lane = opwright::cuda::host::block.lane(), source = lane - int(delta);
  return opwright::cuda::host::exchange(mask, source < lane / width * width ? lane : source, value, file, line);
}
template <class T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = warpSize, OPWRIGHT_PLACE) {
  const int lane = opwright::cuda::host::block.lane(), source = lane + int(delta);
  return opwright::cuda::host::exchange(mask, source >= lane / width * width + width ? lane : source, value, file,
                                        line);
}
template <class T>
inline T __shfl_xor_sync(unsigned mask, T value, int bits, int width = warpSize, OPWRIGHT_PLACE) {
  const int lane = opwright::cuda::host::block.lane(), source = lane ^ bits;
  return opwright::cuda::host::exchange(mask, source >= lane / width * width + width ? lane : source, value, file,
                                        line);
}
#undef OPWRIGHT_PLACE
