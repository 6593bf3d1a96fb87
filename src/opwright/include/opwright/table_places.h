// Where an element is among those of all tensors of a table, and what is reduced of them.
#pragma once

#include "opwright/bits.h"

namespace opwright {

// The last tensor that begins at an element, or a piece, or before it; empty ones have none. `starts` says for each tensor
// how many there are before it.
OPWRIGHT_INLINE int64_t tensor_at(const int64_t* starts, int64_t count, int64_t element) {
  int64_t low = 0, high = count - 1;
  while (low < high) {
    const int64_t middle = (low + high + 1) / 2;
    if (starts[middle] <= element) low = middle;
    else high = middle - 1;
  }
  return low;
}

// What is reduced by an update that reduces nothing.
struct NoTotals {};

}  // namespace opwright
