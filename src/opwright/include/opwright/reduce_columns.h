// Reductions over axes other than the innermost: sums of columns, gradients of a bias or a weight.
//
// There is one accumulator for each element of the result; rows are read in memory order. Planes (points of the axes
// before the first reduced one) have accumulators of their own. Columns are cut into tiles and the reduced axis into
// pieces, as many as the sizes alone ask for, so that the result does not depend on the number of threads.
#pragma once

#include "opwright/lanes.h"

namespace opwright {

// Functions on accumulators, with rows as arguments, as in row functions: `start` gets the accumulators, `combine`
// those of two pieces, `finish` accumulators and results. `lanes` takes short rows side by side, each lane with
// accumulators of its own; there may be none. Where there is `settle`, the function for one row adds it to sums in float,
// and `settle` gets accumulators and such sums of a few rows, which it adds to them and clears.
struct ColumnFunctions {
  RowFunction start, combine, finish;
  LanesFunction lanes = nullptr;
  RowFunction settle = nullptr;
};

// What is reduced, and where to. Axes from `lead` on are summed along or kept, and the first of them is reduced; the
// last `rows` of them are rows that the row function gets whole, none if zero. `results` have stride zero along reduced
// axes, and accumulators of so many bytes each.
struct Columns {
  Operands operands, results;
  const Size* accumulator_bytes;
  int lead, rows;
};

#ifdef OPWRIGHT_APART
void reduce_columns(const Columns& columns, Size grain, RowFunction function, const ColumnFunctions& of);
#else
namespace detail {

constexpr Size tile_columns = 1024, least_tiled = 1536, most_tasks = 32, least_task = 16384;
constexpr Size settled_rows = 4;  // as many summands as sum_of (sums.h) adds up before it converts them

// The accumulators of a tile stay in the first cache, but its rows are runs of a page each, which processors do not
// fetch ahead. So many elements come from memory, where whole rows in order take 0.7 to 0.9 of the time.
constexpr Size least_in_order = Size(1) << 21, most_in_order = 8192;

struct ReduceColumns {
  const Columns& given;
  RowFunction function;
  const ColumnFunctions& of;
  const int count, reductions, all;  // operands, results, operands and accumulators and results
  const int lead, sub;               // axes before the first reduced one, and from there on
  const Size* const extents;
  Size planes = 1, points, tile, tiles, pieces;
  Size* const first_byte;  // of the accumulators of each result, and behind all of them

  static Size bytes(const Columns& columns) { return (columns.results.count + 1) * Size(sizeof(Size)); }

  ReduceColumns(const Columns& columns, RowFunction row, const ColumnFunctions& functions, void* memory)
      : given(columns),
        function(row),
        of(functions),
        count(columns.operands.count),
        reductions(columns.results.count),
        all(count + 2 * reductions),
        lead(columns.lead),
        sub(columns.results.axes - lead),
        extents(columns.results.extents),
        first_byte(static_cast<Size*>(memory)) {
    for (int axis = 0; axis < lead; ++axis) planes *= extents[axis];
    const Size last = extents[lead + sub - 1];
    Size elements = 1;
    for (int axis = lead; axis < lead + sub; ++axis) elements *= extents[axis];
    points = planes * elements;
    const bool in_order = elements >= least_in_order && last <= most_in_order;
    tile = given.rows == 0 && last >= least_tiled && !in_order ? tile_columns : at_least_one(last);
    tiles = at_least_one((last + tile - 1) / tile);
    Size work = tile, kept = tile;
    for (int axis = lead; axis < lead + sub - 1; ++axis) {
      work *= extents[axis];
      if (given.results.strides(0)[axis] != 0) kept *= extents[axis];
    }
    pieces = most_tasks / least(most_tasks, planes * tiles);
    pieces = at_least_one(least(pieces, least(extents[lead] / 4, work / least_task)));
    first_byte[0] = 0;
    for (int f = 0; f < reductions; ++f)
      first_byte[f + 1] = first_byte[f] + (kept * given.accumulator_bytes[f] + 63) / 64 * 64;
  }

  // One tile and one piece of the reduced axis, with accumulators in row-major order.
  struct Part {
    Items* items;
    Size *extents, *strides;
    Size kept;  // accumulators
    int axes;
    bool gathers;

    static Size bytes(const ReduceColumns& work) {
      return work.all * Size(sizeof(Items)) + work.sub * (1 + work.all) * Size(sizeof(Size));
    }

    Part(const ReduceColumns& work, void* memory) : axes(work.sub), gathers(work.given.operands.gathers) {
      Arrays arrays{static_cast<char*>(memory)};
      items = arrays.take<Items>(work.all);
      extents = arrays.take<Size>(axes), strides = arrays.take<Size>(axes * work.all);
    }

    // Some of its operands, from one on.
    Operands some(int from, int operands, const Size* along) const {
      return {operands,      axes,
              gathers,       along,
              items + from,  strides + from * axes,
              sizeof(Items), axes * Size(sizeof(Size))};
    }
  };

  void find(Part& part, Size tile_number, Size piece) const {
    const Size column = tile_number * tile, from = extents[lead] * piece / pieces;
    for (int axis = 0; axis < sub; ++axis) part.extents[axis] = extents[lead + axis];
    part.extents[sub - 1] = least(tile, extents[lead + sub - 1] - column);
    part.extents[0] = extents[lead] * (piece + 1) / pieces - from;
    for (int k = 0; k < all; ++k) {
      const Operands& among = k < count ? given.operands : given.results;
      const int place = k < count ? k : (k - count) % reductions;
      Size* const strides = part.strides + k * sub;
      part.items[k] = among[place];
      for (int axis = 0; axis < sub; ++axis) strides[axis] = among.strides(place)[lead + axis];
      part.items[k].data += column * strides[sub - 1] + from * strides[0];
    }
    for (int f = 0; f < reductions; ++f) {
      part.items[count + f].item_bytes = given.accumulator_bytes[f];
      part.items[count + f].stored = false;  // read and written in place
    }
    part.kept = 1;
    for (int axis = sub - 1; axis >= 0; --axis) {
      const bool reduced = given.results.strides(0)[lead + axis] == 0;
      for (int f = 0; f < reductions; ++f)
        part.strides[(count + f) * sub + axis] = reduced ? 0 : part.kept * given.accumulator_bytes[f];
      if (!reduced) part.kept *= part.extents[axis];
    }
  }

  void pointers(Size plane, const Part& part, char* accumulators, char** first) const {
    for (int k = 0; k < all; ++k) first[k] = part.items[k].data;
    for (int f = 0; f < reductions; ++f) first[count + f] = accumulators + first_byte[f];
    for (int axis = lead - 1; axis >= 0; --axis) {
      const Size index = plane % extents[axis];
      plane /= extents[axis];
      for (int k = 0; k < count; ++k) first[k] += index * given.operands.strides(k)[axis];
      for (int f = 0; f < reductions; ++f) first[count + reductions + f] += index * given.results.strides(f)[axis];
    }
  }

  // Whole rows, one after another.
  struct Rows {
    const ReduceColumns& work;
    const WholeRows& whole;
    const RowBuffers buffers;
    const Size bytes;  // of the sums of a few rows, for each result
    const Lines sums;
    const Array<void*> settled;  // the accumulators of the last row, then such sums
    Size pending = 0;            // rows whose sums are not in the accumulators

    Rows(const ReduceColumns& columns, const WholeRows& rows)
        : work(columns),
          whole(rows),
          buffers(rows.buffers()),
          bytes(columns.of.settle ? (rows.length * Size(sizeof(float)) + 63) / 64 * 64 : 0),
          sums(columns.reductions * bytes),
          settled(bytes > 0 ? 2 * columns.reductions : 0) {
      if (bytes == 0) return;
      __builtin_memset(sums.data, 0, work.reductions * bytes);
      for (int f = 0; f < work.reductions; ++f) settled[work.reductions + f] = sums.data + f * bytes;
    }

    void run(char* const* first) {
      const int count = work.count, reductions = work.reductions;
      if (bytes == 0) return whole.run(first, buffers, work.function);
      if (pending == settled_rows || (pending > 0 && settled[0] != first[count])) settle();
      char* row[count + reductions];
      for (int k = 0; k < count; ++k) row[k] = first[k];
      for (int f = 0; f < reductions; ++f) {
        settled[f] = first[count + f];
        row[count + f] = sums.data + f * bytes;
      }
      whole.run(row, buffers, work.function);
      ++pending;
    }

    void settle() {
      if (pending > 0) work.of.settle(whole.length, settled.data);
      pending = 0;
    }
  };

  // Accumulate one part of some planes; at the end of each, unless it has further pieces, finish its results.
  void accumulate(const Part& part, Size plane, Size until, char* accumulators, bool finishes) const {
    char* first[all];
    const Operands seen = part.some(0, count + reductions, part.extents);
    if (given.rows > 0) {
      const WholeRows whole(seen, given.rows, points, __builtin_alloca(WholeRows::bytes(seen)));
      Rows rows(*this, whole);
      for (; plane < until; ++plane) {
        pointers(plane, part, accumulators, first);
        of.start(part.kept, reinterpret_cast<void* const*>(first + count));
        accumulate_rows(part, rows, first);
        rows.settle();
        if (finishes) finish(first, part);
      }
      return;
    }
    Walk walk(seen, __builtin_alloca(Walk::bytes(seen)));
    walk.points = points;
    merge(walk);
    for (; plane < until; ++plane) {
      pointers(plane, part, accumulators, first);
      of.start(part.kept, reinterpret_cast<void* const*>(first + count));
      call_rows(walk, first, 0, walk.total(), function);
      if (finishes) finish(first, part);
    }
  }

  void accumulate_rows(const Part& part, Rows& rows, char* const* first) const {
    const Operands seen = part.some(0, count + reductions, part.extents);
    const int outer_axes = sub - given.rows;
    OuterAxes outer(seen, outer_axes, __builtin_alloca(OuterAxes::bytes(seen, outer_axes)));
    for (int k = 0; k < count + reductions; ++k) outer.begin[k] = first[k];
    if (of.lanes && part.kept == rows.whole.length && is_done_in_lanes(rows, outer, first + count)) return;
    outer.run(0, outer.total(), [&](Size, char* const* at) { rows.run(at); });
  }

  // Rows beside one another; those that are left, one by one. Returns false if they are not taken so.
  bool is_done_in_lanes(Rows& rows, OuterAxes& outer, char* const* accumulators) const {
    const WholeRows& whole = rows.whole;
    const int operands = count + reductions;
    Lanes work(whole, reductions, __builtin_alloca(Lanes::bytes(operands)));
    if (!work.take(outer)) return false;
    const Size neighbours = outer.extents[outer.depth - 1], panels = (neighbours + lanes - 1) / lanes;
    outer.in_panels(panels, lanes);
    const OfLanes packed(work.offsets[operands]);
    const Lines column(first_byte[reductions]);
    void* totals[2 * reductions];  // in the lanes, then of one lane
    for (int f = 0; f < reductions; ++f) totals[f] = packed.data + work.offsets[count + f];
    of.start(whole.length * lanes, totals);
    const char* packed_from[operands];
    char* row[operands];
    for (int k = 0; k < operands; ++k) packed_from[k] = nullptr;
    outer.run(0, outer.total(), [&](Size panel, char* const* first) {
      const Size some = least(lanes, neighbours - panel % panels * lanes);
      if (some == lanes) return work.run(first, packed.data, packed_from, of.lanes);
      for (Size lane = 0; lane < some; ++lane) {
        for (int k = 0; k < operands; ++k) row[k] = first[k] + lane * work.apart[k];
        rows.run(row);
      }
    });
    for (Size lane = 0; lane < lanes; ++lane) {
      for (int f = 0; f < reductions; ++f) {
        const Size item = given.accumulator_bytes[f];
        char* const from = packed.data + work.offsets[count + f] + lane * item;
        gather(item, from, lanes * item, whole.length, column.data + first_byte[f]);
        totals[f] = accumulators[f], totals[reductions + f] = column.data + first_byte[f];
      }
      of.combine(whole.length, totals);
    }
    return true;
  }

  void finish(char* const* first, const Part& part) const {
    Size kept[sub];
    for (int axis = 0; axis < sub; ++axis)
      kept[axis] = given.results.strides(0)[lead + axis] == 0 ? 1 : part.extents[axis];
    const Operands results = part.some(count, 2 * reductions, kept);
    Walk walk(results, __builtin_alloca(Walk::bytes(results)));
    merge(walk);
    call_rows(walk, first + count, 0, walk.total(), of.finish);
  }

  void in_one_piece(Size from, Size to) const {
    const Lines accumulators(first_byte[reductions]);
    Part part(*this, __builtin_alloca(Part::bytes(*this)));
    while (from < to) {
      find(part, from / planes, 0);
      const Size until = least(to, (from / planes + 1) * planes);
      accumulate(part, from % planes, from % planes + (until - from), accumulators.data, true);
      from = until;
    }
    end_stream();
  }

  void in_pieces(Size grain) const {
    const Size bytes = first_byte[reductions];
    const Lines accumulators(planes * tiles * pieces * bytes);
    in_parallel(planes * tiles * pieces, grain, [&](Size from, Size to) {
      Part part(*this, __builtin_alloca(Part::bytes(*this)));
      for (; from < to; ++from) {
        const Size plane = from / pieces % planes;
        find(part, from / pieces / planes, from % pieces);
        accumulate(part, plane, plane + 1, accumulators.data + from * bytes, false);
      }
      end_stream();
    });
    Part part(*this, __builtin_alloca(Part::bytes(*this)));
    void* row[2 * reductions];
    char* first[all];
    for (Size group = 0; group < planes * tiles; ++group) {
      find(part, group / planes, 0);
      char* const into = accumulators.data + group * pieces * bytes;
      for (Size piece = 1; piece < pieces; ++piece) {
        for (int f = 0; f < reductions; ++f) {
          row[f] = into + first_byte[f];
          row[reductions + f] = into + piece * bytes + first_byte[f];
        }
        of.combine(part.kept, row);
      }
      pointers(group % planes, part, into, first);
      finish(first, part);
    }
    end_stream();
  }
};

}  // namespace detail

OPWRIGHT_ONCE void reduce_columns(const Columns& columns, Size grain, RowFunction function, const ColumnFunctions& of) {
  using namespace detail;
  const Operands& results = columns.results;
  Size total = 1;
  for (int axis = 0; axis < results.axes; ++axis) {
    if (results.extents[axis] == 0 && results.strides(0)[axis] != 0) return;  // there are no results
    total *= results.extents[axis];
  }
  const ReduceColumns work(columns, function, of, __builtin_alloca(ReduceColumns::bytes(columns)));
  const Size parts = work.planes * work.tiles * work.pieces;
  const Size parts_of_grain = at_least_one(grain * parts / at_least_one(total));
  if (work.pieces > 1) return work.in_pieces(parts_of_grain);
  in_parallel(parts, parts_of_grain, [&](Size from, Size to) { work.in_one_piece(from, to); });
}
#endif

template <int axes, int count, int reductions, bool gathers>
inline void reduce_columns(const Size (&extents)[axes], const Operand<axes, gathers> (&operands)[count],
                           const Size (&accumulator_bytes)[reductions], const Operand<axes> (&results)[reductions],
                           int lead, int rows, Size grain, RowFunction function, const ColumnFunctions& of) {
  reduce_columns({all_of(extents, operands), all_of(extents, results), accumulator_bytes, lead, rows}, grain, function,
                 of);
}

// A reduction of a constant.
template <int axes, int reductions>
inline void reduce_columns(const Size (&extents)[axes], const Size (&accumulator_bytes)[reductions],
                           const Operand<axes> (&results)[reductions], int lead, int rows, Size grain,
                           RowFunction function, const ColumnFunctions& of) {
  Operands none = all_of(extents, results);
  none.count = 0;
  reduce_columns({none, all_of(extents, results), accumulator_bytes, lead, rows}, grain, function, of);
}

}  // namespace opwright
