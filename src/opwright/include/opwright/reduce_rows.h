// Reductions of every row to a few numbers: sums, maxima.
//
// Long rows are cut into pieces, whose results are combined in order. The number of pieces depends on the sizes alone,
// so the result does not depend on the number of threads.
#pragma once

#include "opwright/operands.h"
#ifndef OPWRIGHT_APART
#include "opwright/axes.h"
#endif

namespace opwright {

// What a kernel does with the numbers of a row, without their types: makes them for no element, adds elements to them,
// adds those of another piece of the row, and writes what the row comes to.
struct RowReduction {
  Size bytes;
  void (*start)(void* numbers);
  void (*reduce)(Size count, void* const* row, void* numbers);
  void (*add)(void* numbers, const void* others);
  void (*finish)(void* const* row, const void* numbers);
};

#ifdef OPWRIGHT_APART
// Reduce rows, which are the last `inner` axes.
void reduce_rows(const Operands& operands, int inner, Size grain, const RowReduction& of);
#else
namespace detail {

constexpr Size least_piece = 32768, most_pieces = 64, longest_run = 8192;

// Rows, one by one or, where their elements are neighbours across them, as with channels last, several at a time.
struct ReduceRows {
  const Operands& operands;
  const RowReduction& of;
  OuterAxes& rows;
  const Walk& walk;
  Size neighbours = 1, most_lanes = 1, panels;  // rows along the last outer axis, in a group, groups along that axis
  Size* apart;                                  // from row to row

  ReduceRows(const Operands& given, const RowReduction& reduction, OuterAxes& outer, const Walk& inner, Size* memory)
      : operands(given), of(reduction), rows(outer), walk(inner), apart(memory) {
    for (int k = 0; k < walk.count; ++k) apart[k] = rows.depth > 0 ? rows.along(rows.depth - 1)[k] : 0;
    if (rows.depth > 0) neighbours = rows.extents[rows.depth - 1];
    if (walk.any_packed && in_panels(walk, apart, neighbours, walk.gathers)) most_lanes = lanes_of_panel(walk);
    panels = at_least_one((neighbours + most_lanes - 1) / most_lanes);
    if (most_lanes > 1) rows.in_panels(panels, most_lanes);
  }

  Size lanes_of(Size group) const {
    return most_lanes == 1 ? 1 : least(most_lanes, neighbours - group % panels * most_lanes);
  }

  Size buffer_bytes() const { return most_lanes == 1 ? 0 : panel_bytes(walk); }

  char* numbers_of(char* numbers, Size lane) const { return numbers + lane * of.bytes; }

  void start(char* numbers, Size lanes) const {
    for (Size lane = 0; lane < lanes; ++lane) of.start(numbers_of(numbers, lane));
  }

  void reduce_run(Size some, void* const* row, char* numbers) const {
    if (some <= longest_run) return of.reduce(some, row, numbers);
    void* at[walk.count];
    for (int k = 0; k < walk.count; ++k) at[k] = row[k];
    for (Size done = 0; done < some; done += longest_run) {
      of.reduce(least(longest_run, some - done), at, numbers);
      for (int k = 0; k < walk.count; ++k)
        if (operands[k].whole_row) at[k] = static_cast<char*>(at[k]) + longest_run * operands[k].item_bytes;
    }
  }

  // A piece of the rows of a group, each into numbers of its own.
  void reduce_piece(char* const* first, Size lanes, Size begin, Size end, char* buffers, char* numbers) const {
    if (most_lanes > 1) {
      return visit_pieces(walk, first, begin, end, [&](char* const* at, Size offset, Size some) {
        auto visit = [&](Size lane, Size piece, void* const* row) {
          reduce_run(piece, row, numbers_of(numbers, lane));
        };
        visit_panel(walk, at, apart, lanes, offset, some, buffers, visit);
      });
    }
    if (walk.depth == 1 && begin == 0 && !walk.any_packed && !walk.gathers)
      return reduce_run(end, reinterpret_cast<void* const*>(first), numbers);
    const auto visit = [&](Size some, void* const* row) { reduce_run(some, row, numbers); };
    visit_rows(walk, first, begin, end, visit);
  }

  void finish_row(char* const* first, const char* numbers) const {
    if (!walk.gathers) return of.finish(reinterpret_cast<void* const*>(first), numbers);
    void* row[walk.count];
    for (int k = 0; k < walk.count; ++k) {
      row[k] = first[k];
      if (const int by = operands[k].gathered_by; by >= 0 && !operands[k].whole_row)
        row[k] = first[k] + gathers_at(operands[k], operands[by], first[by], 0).offset();
    }
    of.finish(row, numbers);
  }

  void finish_rows(char* const* first, Size lanes, char* numbers) const {
    char* at[walk.count];
    for (Size lane = 0; lane < lanes; ++lane) {
      for (int k = 0; k < walk.count; ++k) at[k] = first[k] + lane * apart[k];
      finish_row(at, numbers_of(numbers, lane));
    }
  }

  void in_one_piece(Size length, Size from, Size to) const {
    const Lines buffers(buffer_bytes());
    char* const numbers = static_cast<char*>(__builtin_alloca(most_lanes * of.bytes));
    rows.run(from, to, [&](Size group, char* const* first) {
      const Size lanes = lanes_of(group);
      start(numbers, lanes);
      reduce_piece(first, lanes, 0, length, buffers.data, numbers);
      if (most_lanes == 1) return finish_row(first, numbers);
      finish_rows(first, lanes, numbers);
    });
    end_stream();
  }

  void in_pieces(Size length, Size pieces, Size groups) const {
    const Array<char> partial(groups * pieces * most_lanes * of.bytes);
    in_parallel(groups * pieces, 1, [&](Size from, Size to) {
      const Lines buffers(buffer_bytes());
      for (Size task = from; task < to; ++task) {
        const Size group = task / pieces, piece = task % pieces;
        char* const numbers = numbers_of(partial.data, task * most_lanes);
        rows.run(group, group + 1, [&](Size, char* const* first) {
          start(numbers, lanes_of(group));
          reduce_piece(first, lanes_of(group), length * piece / pieces, length * (piece + 1) / pieces, buffers.data,
                       numbers);
        });
      }
      end_stream();
    });
    char* const numbers = static_cast<char*>(__builtin_alloca(most_lanes * of.bytes));
    rows.run(0, groups, [&](Size group, char* const* first) {
      const Size lanes = lanes_of(group);
      start(numbers, lanes);
      for (Size piece = 0; piece < pieces; ++piece)
        for (Size lane = 0; lane < lanes; ++lane)
          of.add(numbers_of(numbers, lane), numbers_of(partial.data, (group * pieces + piece) * most_lanes + lane));
      finish_rows(first, lanes, numbers);
    });
  }
};

}  // namespace detail

OPWRIGHT_ONCE void reduce_rows(const Operands& operands, int inner, Size grain, const RowReduction& of) {
  using namespace detail;
  const int outer = operands.axes - inner;
  const Operands along = operands.along(inner);
  OuterAxes rows(operands, outer, __builtin_alloca(OuterAxes::bytes(operands, outer)));
  Walk walk(along, __builtin_alloca(Walk::bytes(along)));
  merge(walk);
  if (rows.total() == 0) return;
  Size apart[operands.count];
  const ReduceRows work(operands, of, rows, walk, apart);
  const Size length = walk.total(), groups = rows.total();
  const Size pieces = least(most_pieces / least(groups, most_pieces), length / least_piece);
  if (pieces > 1) return work.in_pieces(length, pieces, groups);
  in_parallel(groups, at_least_one(grain / at_least_one(length * work.most_lanes)),
              [&](Size from, Size to) { work.in_one_piece(length, from, to); });
}
#endif

// `reduce` adds elements of a row to Reductions; `finish` gets them at the end of the row. A new Reductions is empty;
// `add` combines it with that of another piece of the row. Rows are the last `inner` axes.
template <class Reductions, void (*reduce)(Size, void* const*, Reductions&),
          void (*finish)(void* const*, const Reductions&), int axes, int count, bool gathers>
inline void reduce_rows(const Size (&extents)[axes], const Operand<axes, gathers> (&operands)[count], int inner,
                        Size grain) {
  const RowReduction of = {
      sizeof(Reductions),
      [](void* numbers) { *static_cast<Reductions*>(numbers) = Reductions(); },
      [](Size some, void* const* row, void* numbers) { reduce(some, row, *static_cast<Reductions*>(numbers)); },
      [](void* numbers, const void* others) {
        static_cast<Reductions*>(numbers)->add(*static_cast<const Reductions*>(others));
      },
      [](void* const* row, const void* numbers) { finish(row, *static_cast<const Reductions*>(numbers)); },
  };
  reduce_rows(all_of(extents, operands), inner, grain, of);
}

}  // namespace opwright
