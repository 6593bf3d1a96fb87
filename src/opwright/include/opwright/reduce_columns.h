// Reductions over axes other than the innermost: sums of columns, gradients of a bias or a weight.
//
// There is one accumulator for each element of the result; rows are read in memory order. Planes (points of the axes
// before the first reduced one) have accumulators of their own. Columns are cut into tiles and the reduced axis into
// pieces, as many as the sizes alone ask for, so that the result does not depend on the number of threads.
#pragma once

#include "opwright/lanes.h"

namespace opwright {
namespace detail {

constexpr Size tile_columns = 1024, least_untiled = 1536, most_tasks = 32, least_task = 16384;

}  // namespace detail

// Functions on accumulators, with rows as arguments, as in row functions: `start` gets the accumulators, `combine`
// those of two pieces, `finish` accumulators and results.
struct ColumnFunctions {
  RowFunction start, combine, finish;
  static constexpr bool has_lanes = false;
};

// The same, and one that takes short rows side by side: each lane has accumulators of its own.
struct LanesOfColumns : ColumnFunctions {
  LanesFunction lanes;
  static constexpr bool has_lanes = true;
};

// Axes from `lead` on are `sub`; the first of them is reduced. `rows` is how many of the last axes the row function
// gets whole, or zero. `results` have stride zero along reduced axes.
template <int lead, int rows, int axes, int count, int reductions, bool gathers, class Functions>
struct ReduceColumns {
  static constexpr int sub = axes - lead, all = count + 2 * reductions;  // operands, then accumulators, then results
  Size extents[axes];
  Operand<axes, gathers> operands[all];
  RowFunction function;
  Functions of;
  Size planes = 1, tile, tiles, pieces, accumulator_bytes[reductions + 1];

  void prepare() {
    using namespace detail;
    for (int axis = 0; axis < lead; ++axis) planes *= extents[axis];
    const Size last = extents[axes - 1];
    tile = rows == 0 && last >= least_untiled ? tile_columns : at_least_one(last);
    tiles = at_least_one((last + tile - 1) / tile);
    Size work = tile, kept = tile;
    for (int axis = lead; axis < axes - 1; ++axis) {
      work *= extents[axis];
      if (operands[count + reductions].strides[axis] != 0) kept *= extents[axis];
    }
    pieces = most_tasks / least(most_tasks, planes * tiles);
    pieces = at_least_one(least(pieces, least(extents[lead] / 4, work / least_task)));
    accumulator_bytes[0] = 0;
    for (int f = 0; f < reductions; ++f) {
      operands[count + f].stored = false;  // read and written in place
      accumulator_bytes[f + 1] = accumulator_bytes[f] + (kept * operands[count + f].item_bytes + 63) / 64 * 64;
    }
  }

  // One tile and one piece of the reduced axis, with accumulators in row-major order.
  struct Part {
    Size extents[sub];
    Operand<sub, gathers> operands[all];
    Size kept = 1;
  };

  Part part(Size tile_number, Size piece) const {
    using namespace detail;
    Part part;
    for (int axis = 0; axis < sub; ++axis) part.extents[axis] = extents[lead + axis];
    const Size column = tile_number * tile, from = extents[lead] * piece / pieces;
    part.extents[sub - 1] = least(tile, extents[axes - 1] - column);
    part.extents[0] = extents[lead] * (piece + 1) / pieces - from;
    for (int k = 0; k < all; ++k) {
      part.operands[k] = along_row<sub>(operands[k]);
      part.operands[k].data += column * part.operands[k].strides[sub - 1] + from * part.operands[k].strides[0];
    }
    for (int axis = sub - 1; axis >= 0; --axis) {
      const bool reduced = part.operands[count + reductions].strides[axis] == 0;
      for (int f = 0; f < reductions; ++f)
        part.operands[count + f].strides[axis] = reduced ? 0 : part.kept * operands[count + f].item_bytes;
      if (!reduced) part.kept *= part.extents[axis];
    }
    return part;
  }

  void pointers(Size plane, const Part& part, char* accumulators, char** first) const {
    for (int k = 0; k < all; ++k) first[k] = part.operands[k].data;
    for (int f = 0; f < reductions; ++f) first[count + f] = accumulators + accumulator_bytes[f];
    for (int axis = lead - 1; axis >= 0; --axis) {
      const Size index = plane % extents[axis];
      plane /= extents[axis];
      for (int k = 0; k < count; ++k) first[k] += index * operands[k].strides[axis];
      for (int f = 0; f < reductions; ++f)
        first[count + reductions + f] += index * operands[count + reductions + f].strides[axis];
    }
  }

  // Accumulate one part of some planes; at the end of each, unless it has further pieces, finish its results.
  void accumulate(const Part& part, Size plane, Size until, char* accumulators, bool finishes) const {
    using namespace detail;
    char* first[all];
    if constexpr (rows == 0) {
      WalkMemory<sub, count + reductions> memory;
      Walk walk = memory.walk(part.extents, part.operands);
      merge(walk);
      for (; plane < until; ++plane) {
        pointers(plane, part, accumulators, first);
        of.start(part.kept, reinterpret_cast<void* const*>(first + count));
        call_rows(walk, first, 0, walk.total(), function);
        if (finishes) finish(first, part);
      }
    } else {
      Operand<sub, gathers> seen[count + reductions];
      for (int k = 0; k < count + reductions; ++k) seen[k] = part.operands[k];
      WholeRows<rows, count + reductions, gathers> whole;
      whole.take(part.extents, seen);
      Array<char> buffer(whole.buffer_bytes());
      for (; plane < until; ++plane) {
        pointers(plane, part, accumulators, first);
        of.start(part.kept, reinterpret_cast<void* const*>(first + count));
        accumulate_rows(part, whole, seen, first, buffer.data);
        if (finishes) finish(first, part);
      }
    }
  }

  template <class Whole>
  void accumulate_rows(const Part& part, const Whole& whole, Operand<sub, gathers> (&seen)[count + reductions],
                       char* const* first, char* buffer) const {
    detail::OuterAxes<sub - rows, count + reductions> outer;
    for (int k = 0; k < count + reductions; ++k) seen[k].data = first[k];
    outer.take(part.extents, seen);
    if constexpr (Functions::has_lanes)
      if (part.kept == whole.length && in_lanes(whole, outer, buffer, first + count)) return;
    outer.run(0, outer.total(), [&](Size, char* const* at) { whole.run(at, buffer, function); });
  }

  // Rows beside one another; those that are left, one by one. Returns false if they are not taken so.
  template <class Whole, class Outer>
  bool in_lanes(const Whole& whole, Outer& outer, char* buffer, char* const* accumulators) const {
    using namespace detail;
    Lanes<rows, count + reductions, gathers> work;
    if (!work.take(whole, outer, reductions)) return false;
    const Size neighbours = outer.extents[outer.depth - 1], panels = (neighbours + lanes - 1) / lanes;
    outer.extents[outer.depth - 1] = panels;
    for (int k = 0; k < count + reductions; ++k) outer.strides[outer.depth - 1][k] *= lanes;
    const OfLanes packed(work.offsets[count + reductions]);
    const Array<char> column(accumulator_bytes[reductions]);
    void* totals[2 * reductions];  // in the lanes, then of one lane
    for (int f = 0; f < reductions; ++f) totals[f] = packed.data + work.offsets[count + f];
    of.start(whole.length * lanes, totals);
    const char* packed_from[count + reductions] = {};
    outer.run(0, outer.total(), [&](Size panel, char* const* first) {
      const Size some = least(lanes, neighbours - panel % panels * lanes);
      if (some == lanes) return work.run(first, packed.data, packed_from, of.lanes);
      for (Size lane = 0; lane < some; ++lane) {
        char* row[count + reductions];
        for (int k = 0; k < count + reductions; ++k) row[k] = first[k] + lane * work.apart[k];
        whole.run(row, buffer, function);
      }
    });
    for (Size lane = 0; lane < lanes; ++lane) {
      for (int f = 0; f < reductions; ++f) {
        const Size item = operands[count + f].item_bytes;
        char* const from = packed.data + work.offsets[count + f] + lane * item;
        gather(item, from, lanes * item, whole.length, column.data + accumulator_bytes[f]);
        totals[f] = accumulators[f], totals[reductions + f] = column.data + accumulator_bytes[f];
      }
      of.combine(whole.length, totals);
    }
    return true;
  }

  void finish(char* const* first, const Part& part) const {
    Size extents_of_results[sub];
    for (int axis = 0; axis < sub; ++axis) {
      const bool reduced = part.operands[count + reductions].strides[axis] == 0;
      extents_of_results[axis] = reduced ? 1 : part.extents[axis];
    }
    detail::WalkMemory<sub, 2 * reductions> memory;
    detail::Walk walk = memory.walk(extents_of_results, part.operands + count);
    detail::merge(walk);
    detail::call_rows(walk, first + count, 0, walk.total(), of.finish);
  }

  void in_one_piece(Size from, Size to) const {
    using namespace detail;
    Array<char> accumulators(accumulator_bytes[reductions]);
    while (from < to) {
      const Part of_tile = part(from / planes, 0);
      const Size until = least(to, (from / planes + 1) * planes);
      accumulate(of_tile, from % planes, from % planes + (until - from), accumulators.data, true);
      from = until;
    }
    end_stream();
  }

  void in_pieces(Size grain) const {
    using namespace detail;
    const Size bytes = accumulator_bytes[reductions];
    Array<char> accumulators(planes * tiles * pieces * bytes);
    in_parallel(planes * tiles * pieces, grain, [&](Size from, Size to) {
      for (; from < to; ++from) {
        const Size plane = from / pieces % planes;
        const Part some = part(from / pieces / planes, from % pieces);
        accumulate(some, plane, plane + 1, accumulators.data + from * bytes, false);
      }
      end_stream();
    });
    for (Size group = 0; group < planes * tiles; ++group) {
      const Part of_tile = part(group / planes, 0);
      char* const into = accumulators.data + group * pieces * bytes;
      for (Size piece = 1; piece < pieces; ++piece) {
        void* row[2 * reductions];
        for (int f = 0; f < reductions; ++f) {
          row[f] = into + accumulator_bytes[f];
          row[reductions + f] = into + piece * bytes + accumulator_bytes[f];
        }
        of.combine(of_tile.kept, row);
      }
      char* first[all];
      pointers(group % planes, of_tile, into, first);
      finish(first, of_tile);
    }
    end_stream();
  }
};

template <int lead, int rows, int count, int axes, int reductions, bool gathers, class Functions>
inline void reduce_columns_of(const Size (&extents)[axes], const Operand<axes, gathers>* operands,
                              const Size (&accumulator_bytes)[reductions], const Operand<axes> (&results)[reductions],
                              Size grain, RowFunction function, const Functions& of) {
  ReduceColumns<lead, rows, axes, count, reductions, gathers, Functions> work;
  Size total = 1;
  for (int axis = 0; axis < axes; ++axis) {
    if (extents[axis] == 0 && results[0].strides[axis] != 0) return;  // there are no results
    total *= work.extents[axis] = extents[axis];
  }
  for (int k = 0; k < count; ++k) work.operands[k] = operands[k];
  for (int f = 0; f < reductions; ++f) {
    work.operands[count + f] = results[f];
    work.operands[count + f].item_bytes = accumulator_bytes[f];
    work.operands[count + reductions + f] = results[f];
  }
  work.function = function;
  work.of = of;
  work.prepare();
  const Size parts = work.planes * work.tiles * work.pieces;
  const Size parts_of_grain = detail::at_least_one(grain * parts / detail::at_least_one(total));
  if (work.pieces > 1) return work.in_pieces(parts_of_grain);
  detail::in_parallel(parts, parts_of_grain, [&](Size from, Size to) { work.in_one_piece(from, to); });
}

template <int lead, int rows, int axes, int count, int reductions, bool gathers, class Functions = ColumnFunctions>
inline void reduce_columns(const Size (&extents)[axes], const Operand<axes, gathers> (&operands)[count],
                           const Size (&accumulator_bytes)[reductions], const Operand<axes> (&results)[reductions],
                           Size grain, RowFunction function, const Functions& of) {
  reduce_columns_of<lead, rows, count>(extents, operands, accumulator_bytes, results, grain, function, of);
}

// A reduction of a constant.
template <int lead, int rows, int axes, int reductions, class Functions = ColumnFunctions>
inline void reduce_columns(const Size (&extents)[axes], const Size (&accumulator_bytes)[reductions],
                           const Operand<axes> (&results)[reductions], Size grain, RowFunction function,
                           const Functions& of) {
  reduce_columns_of<lead, rows, 0, axes, reductions, false>(extents, nullptr, accumulator_bytes, results, grain,
                                                            function, of);
}

}  // namespace opwright
