// Reductions of every row to a few numbers: sums, maxima.
//
// Long rows are cut into pieces, whose results are combined in order. The number of pieces depends on the sizes alone,
// so the result does not depend on the number of threads.
#pragma once

#include "opwright/axes.h"

namespace opwright {
namespace detail {

constexpr Size least_piece = 32768, most_pieces = 64, longest_run = 8192;

}  // namespace detail

// `reduce` adds elements of a row to Reductions; `finish` gets them at the end of the row. A new Reductions is empty;
// `add` combines it with that of another piece of the row.
template <class Reductions, int inner, int all, int count, bool gathers>
inline void reduce_rows(const Size (&extents)[all], const Operand<all, gathers> (&operands)[count], Size grain,
                        void (*reduce)(Size, void* const*, Reductions&),
                        void (*finish)(void* const*, const Reductions&)) {
  using namespace detail;
  constexpr int outer = all - inner;
  OuterAxes<outer, count> rows;
  rows.take(extents, operands);
  Walk<inner, count, gathers> walk;
  for (int axis = 0; axis < inner; ++axis) walk.extents[axis] = extents[outer + axis];
  for (int k = 0; k < count; ++k) walk.operands[k] = along_row<inner>(operands[k]);
  walk.merge();
  const Size row_count = rows.total(), length = walk.total();

  const auto reduce_piece = [&](char* const* first, Size begin, Size end, Reductions& reductions) {
    walk.visit(first, begin, end, [&](Size some, void* const* row) {
      char* at[count];
      for (int k = 0; k < count; ++k) at[k] = static_cast<char*>(row[k]);
      for (Size done = 0; done < some; done += longest_run) {
        reduce(least(longest_run, some - done), reinterpret_cast<void* const*>(at), reductions);
        for (int k = 0; k < count; ++k) at[k] += operands[k].whole_row ? longest_run * operands[k].item_bytes : 0;
      }
    });
  };

  const auto finish_row = [&](char* const* first, const Reductions& reductions) {
    void* row[count];
    for (int k = 0; k < count; ++k) {
      row[k] = first[k];
      if constexpr (gathers)
        if (const int by = operands[k].gathered_by; by >= 0 && !operands[k].whole_row)
          row[k] = first[k] + gathers_at(operands, k, first[by], 0).offset();
    }
    finish(row, reductions);
  };

  if (row_count == 0) return;
  Size pieces = least(most_pieces / least(row_count, most_pieces), length / least_piece);
  if (pieces <= 1) {
    return in_parallel(row_count, at_least_one(grain / at_least_one(length)), [&](Size from, Size to) {
      rows.run(from, to, [&](Size, char* const* first) {
        Reductions reductions;
        reduce_piece(first, 0, length, reductions);
        finish_row(first, reductions);
      });
      end_stream();
    });
  }
  Array<Reductions> partial(row_count * pieces);
  in_parallel(row_count * pieces, 1, [&](Size from, Size to) {
    for (Size task = from; task < to; ++task) {
      const Size row = task / pieces, piece = task % pieces;
      rows.run(row, row + 1, [&](Size, char* const* first) {
        reduce_piece(first, length * piece / pieces, length * (piece + 1) / pieces, partial[task]);
      });
    }
    end_stream();
  });
  rows.run(0, row_count, [&](Size row, char* const* first) {
    Reductions reductions;
    for (Size piece = 0; piece < pieces; ++piece) reductions.add(partial[row * pieces + piece]);
    finish_row(first, reductions);
  });
}

}  // namespace opwright
