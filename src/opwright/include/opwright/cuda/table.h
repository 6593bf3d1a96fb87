// Updates of many tensors in place by one launch: blocks share the elements of all tensors.
#pragma once

#include "opwright/cuda/kernel.h"
#include "opwright/cuda/table_arguments.h"
#include "opwright/random_rounding.h"
#include "opwright/table_places.h"

namespace opwright {

// The address of an element of an operand.
OPWRIGHT_INLINE void* element_of(const TableOnDevice& table, int operand, int64_t tensor, int64_t bytes) {
  return table.columns[operand * table.count + tensor] + bytes;
}

// Update::elements(table, tensor, first, count, numbers, random) updates elements of one tensor by all threads of a block.
template <class Update>
OPWRIGHT_INLINE void update_elements(const TableOnDevice& table) {
  using Numbers = typename Update::Numbers;
  const Numbers* const kept = reinterpret_cast<const Numbers*>(table.kept);
  const int64_t total = table.starts[table.count], grid = table.share * static_cast<int64_t>(gridDim.x);
  for (int64_t first = table.share * static_cast<int64_t>(blockIdx.x); first < total; first += grid) {
    const int64_t end = first + table.share < total ? first + table.share : total;
    int64_t begin = first;
    for (int64_t tensor = tensor_at(table.starts, table.count, begin); begin < end; ++tensor) {
      const int64_t stop = table.starts[tensor + 1] < end ? table.starts[tensor + 1] : end;
      if (stop <= begin) continue;
      const RandomStream random = random_stream(table.seed, begin);
      Update::elements(table, tensor, begin - table.starts[tensor], stop - begin, kept[tensor], random);
      begin = stop;
    }
  }
}

}  // namespace opwright
