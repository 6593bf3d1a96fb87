// Launching updates of many tensors on a GPU. The table is filled on the processor (opwright/table.h), which computes the
// numbers and counts the steps; the caller copies it to the GPU in one piece.
#pragma once

#include "opwright/cuda/launches.h"
#include "opwright/cuda/table_arguments.h"
#include "opwright/table.h"

namespace opwright::cuda {

// Launch the kernel of an update whose numbers are valid.
//
// `room` is memory of the GPU with a copy of what the table has, one after the other: columns, starts, kept.
inline bool launch_table(Kernel& kernel, const Table& table, const Tensor& room, int operands) {
  constexpr Size share = 4096;  // 16 elements for each thread
  const Size total = table.starts[table.count];
  const char* const begin = room.at<char>(0);
  const char* const starts = begin + operands * table.count * sizeof(char*);
  const TableOnDevice given = {
      reinterpret_cast<char* const*>(begin),
      reinterpret_cast<const int64_t*>(starts),
      starts + (table.count + 1) * sizeof(int64_t),
      table.count,
      share,
      table.seed,
  };
  if (!launch(kernel, blocks_for(total, share), threads_of_block, given)) return false;
  for (Size t = 0; t < table.count; ++t) *table.steps[t] += 1;
  return true;
}

}  // namespace opwright::cuda
