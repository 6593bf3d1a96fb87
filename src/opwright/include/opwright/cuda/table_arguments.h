// What a launch that updates many tensors is given: a table in the memory of the GPU, the same for host and device.
#pragma once

#include "opwright/bits.h"

namespace opwright {

struct TableOnDevice {
  char* const* columns;   // [operand][tensor]: addresses of first elements
  const int64_t* starts;  // [tensor] and the end: how many elements there are before it
  const char* kept;       // [tensor]: what is computed of its row of numbers
  int64_t count;          // tensors
  int64_t share;          // elements that a block takes at a time
  uint64_t seed;          // of random rounding
  const int64_t* pieces;  // [tensor] and the end: how many pieces there are before it
  char* totals;           // [tensor], then [piece]: what is reduced
  int64_t piece;          // how many elements are reduced together
  int64_t pass;           // over the elements, before the update
  const float* skip;      // not zero if nothing may change; null for zero
};

}  // namespace opwright
