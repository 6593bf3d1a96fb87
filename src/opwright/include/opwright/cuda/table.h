// Updates of many tensors in place by one launch: blocks share the elements of all tensors. What is reduced over a tensor
// takes two launches before it.
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

// Update::elements(table, tensor, first, count, numbers, totals, random) updates elements of one tensor by all threads of a
// block.
template <class Update>
OPWRIGHT_INLINE void update_elements(const TableOnDevice& table) {
  if (table.skip != nullptr && *table.skip != 0) return;
  using Numbers = typename Update::Numbers;
  using Totals = typename Update::Totals;
  const Numbers* const kept = reinterpret_cast<const Numbers*>(table.kept);
  const int64_t total = table.starts[table.count], grid = table.share * static_cast<int64_t>(gridDim.x);
  for (int64_t first = table.share * static_cast<int64_t>(blockIdx.x); first < total; first += grid) {
    const int64_t end = first + table.share < total ? first + table.share : total;
    int64_t begin = first;
    for (int64_t tensor = tensor_at(table.starts, table.count, begin); begin < end; ++tensor) {
      const int64_t stop = table.starts[tensor + 1] < end ? table.starts[tensor + 1] : end;
      if (stop <= begin) continue;
      const RandomStream random = random_stream(table.seed, begin);
      const Totals& totals = reinterpret_cast<const Totals*>(table.totals)[tensor];
      Update::elements(table, tensor, begin - table.starts[tensor], stop - begin, kept[tensor], totals, random);
      begin = stop;
    }
  }
}

// Each block reduces a piece of a tensor; Update::reduce(pass, table, tensor, first, count, numbers, totals, part) is for a
// thread.
template <class Update>
OPWRIGHT_INLINE void reduce_pieces(const TableOnDevice& table) {
  using Numbers = typename Update::Numbers;
  using Totals = typename Update::Totals;
  Totals* const totals = reinterpret_cast<Totals*>(table.totals);
  for (int64_t piece = blockIdx.x; piece < table.pieces[table.count]; piece += gridDim.x) {
    const int64_t tensor = tensor_at(table.pieces, table.count, piece);
    const int64_t first = (piece - table.pieces[tensor]) * table.piece;
    const int64_t left = table.starts[tensor + 1] - table.starts[tensor] - first;
    Totals part;
    part.start();
    Update::reduce(table.pass, table, tensor, first, left < table.piece ? left : table.piece,
                   reinterpret_cast<const Numbers*>(table.kept)[tensor], totals[tensor], part);
    reduce_threads(part);
    if (threadIdx.x == 0) totals[table.count + piece] = part;
  }
}

// Each block combines the pieces of a tensor, always in the same order, with the passes before.
template <class Update>
OPWRIGHT_INLINE void combine_pieces(const TableOnDevice& table) {
  using Totals = typename Update::Totals;
  Totals* const totals = reinterpret_cast<Totals*>(table.totals);
  for (int64_t tensor = blockIdx.x; tensor < table.count; tensor += gridDim.x) {
    Totals part;
    part.start();
    for (int64_t piece = table.pieces[tensor] + threadIdx.x; piece < table.pieces[tensor + 1]; piece += blockDim.x)
      part.add(totals[table.count + piece]);
    reduce_threads(part);
    if (threadIdx.x != 0) continue;
    if (table.pass > 0) part.add(totals[tensor]);
    totals[tensor] = part;
  }
}

}  // namespace opwright
