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
  WalkMemory<inner, count> memory;
  Walk walk = memory.walk(extents, operands);
  merge(walk);
  const Size row_count = rows.total(), length = walk.total();

  // Rows whose elements are neighbours across them, as with channels last, are taken several at a time.
  Size apart[count] = {}, neighbours = 1;
  if (rows.depth > 0) {
    for (int k = 0; k < count; ++k) apart[k] = rows.strides[rows.depth - 1][k];
    neighbours = rows.extents[rows.depth - 1];
  }
  const Size most_lanes = in_panels(walk, apart, neighbours, gathers) ? lanes_of_panel(walk) : 1;
  const Size panels = at_least_one((neighbours + most_lanes - 1) / most_lanes);
  if (most_lanes > 1) {
    rows.extents[rows.depth - 1] = panels;
    for (int k = 0; k < count; ++k) rows.strides[rows.depth - 1][k] *= most_lanes;
  }
  const auto lanes_of = [&](Size group) {
    return most_lanes == 1 ? 1 : least(most_lanes, neighbours - group % panels * most_lanes);
  };

  const auto reduce_row = [&](Size some, void* const* row, Reductions& reductions) {
    char* at[count];
    for (int k = 0; k < count; ++k) at[k] = static_cast<char*>(row[k]);
    for (Size done = 0; done < some; done += longest_run) {
      reduce(least(longest_run, some - done), reinterpret_cast<void* const*>(at), reductions);
      for (int k = 0; k < count; ++k) at[k] += operands[k].whole_row ? longest_run * operands[k].item_bytes : 0;
    }
  };
  const auto reduce_piece = [&](char* const* first, Size lanes, Size begin, Size end, char* buffers,
                                Reductions* reductions) {
    if (most_lanes == 1) {
      const auto visit = [&](Size some, void* const* row) { reduce_row(some, row, *reductions); };
      return visit_rows(walk, first, begin, end, visit);
    }
    if constexpr (has_panels)
      visit_pieces(walk, first, begin, end, [&](char* const* at, Size offset, Size some) {
        auto visit = [&](Size lane, Size piece, void* const* row) { reduce_row(piece, row, reductions[lane]); };
        visit_panel(walk, at, apart, lanes, offset, some, buffers, visit);
      });
  };

  const auto finish_row = [&](char* const* first, const Reductions& reductions) {
    void* row[count];
    for (int k = 0; k < count; ++k) {
      row[k] = first[k];
      if constexpr (gathers)
        if (const int by = operands[k].gathered_by; by >= 0 && !operands[k].whole_row)
          row[k] = first[k] + gathers_at(operands[k], operands[by], first[by], 0).offset();
    }
    finish(row, reductions);
  };

  if (row_count == 0) return;
  const Size groups = rows.total(), buffer_bytes = most_lanes == 1 ? 0 : panel_bytes(walk);
  const auto finish_rows = [&](char* const* first, Size lanes, const Reductions* reductions) {
    char* at[count];
    for (Size lane = 0; lane < lanes; ++lane) {
      for (int k = 0; k < count; ++k) at[k] = first[k] + lane * apart[k];
      finish_row(at, reductions[lane]);
    }
  };
  const Size pieces = least(most_pieces / least(groups, most_pieces), length / least_piece);
  if (pieces <= 1) {
    return in_parallel(groups, at_least_one(grain / at_least_one(length * most_lanes)), [&](Size from, Size to) {
      Array<char> buffers(buffer_bytes);
      rows.run(from, to, [&](Size group, char* const* first) {
        if (most_lanes == 1) {
          Reductions reductions;
          reduce_piece(first, 1, 0, length, nullptr, &reductions);
          return finish_row(first, reductions);
        }
        Reductions reductions[panel_lanes];
        reduce_piece(first, lanes_of(group), 0, length, buffers.data, reductions);
        finish_rows(first, lanes_of(group), reductions);
      });
      end_stream();
    });
  }
  Array<Reductions> partial(groups * pieces * most_lanes);
  in_parallel(groups * pieces, 1, [&](Size from, Size to) {
    Array<char> buffers(buffer_bytes);
    for (Size task = from; task < to; ++task) {
      const Size group = task / pieces, piece = task % pieces;
      rows.run(group, group + 1, [&](Size, char* const* first) {
        reduce_piece(first, lanes_of(group), length * piece / pieces, length * (piece + 1) / pieces, buffers.data,
                     partial.data + task * most_lanes);
      });
    }
    end_stream();
  });
  rows.run(0, groups, [&](Size group, char* const* first) {
    Reductions reductions[panel_lanes];
    for (Size piece = 0; piece < pieces; ++piece)
      for (Size lane = 0; lane < lanes_of(group); ++lane)
        reductions[lane].add(partial[(group * pieces + piece) * most_lanes + lane]);
    finish_rows(first, lanes_of(group), reductions);
  });
}

}  // namespace opwright
