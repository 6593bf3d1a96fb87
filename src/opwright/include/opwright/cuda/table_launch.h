// Launching updates of many tensors on a GPU. The table is filled on the processor (opwright/table.h), which computes the
// numbers and counts the steps; the caller copies it to the GPU in one piece.
#pragma once

#include "opwright/cuda/launches.h"
#include "opwright/cuda/table_arguments.h"
#include "opwright/table.h"

namespace opwright::cuda {

// Launch the kernels of an update whose numbers are valid: the one that updates, and two for each pass that reduces.
//
// `room` is memory of the GPU with a copy of what the table has, one after the other: columns, starts, pieces, kept; and
// memory for what is reduced.
template <class Update, int operands, int kernels>
inline bool launch_table(Kernel (&kernel)[kernels], const Table& table, const Tensor (&room)[2]) {
  constexpr Size share = 4096;  // 16 elements for each thread
  const Size total = table.starts[table.count], lengths = (table.count + 1) * sizeof(int64_t);
  const char* const begin = room[0].at<char>(0);
  const char* const starts = begin + operands * table.count * sizeof(char*);
  TableOnDevice given = {
      reinterpret_cast<char* const*>(begin),
      reinterpret_cast<const int64_t*>(starts),
      starts + 2 * lengths,
      table.count,
      share,
      table.seed,
      reinterpret_cast<const int64_t*>(starts + lengths),
      room[1].at<char>(0),
      table.piece,
      0,
      table.skip,
  };
  if constexpr (Update::passes > 0) {
    for (given.pass = 0; given.pass < Update::passes; ++given.pass) {
      const Size pieces = table.pieces[table.count];
      if (!launch(kernel[1], least(pieces, most_blocks), threads_of_block, given)) return false;
      if (!launch(kernel[2], least(table.count, most_blocks), threads_of_block, given)) return false;
    }
  }
  if (!launch(kernel[0], blocks_for(total, share), threads_of_block, given)) return false;
  finish_all<Update, operands>(table);
  return true;
}

}  // namespace opwright::cuda
