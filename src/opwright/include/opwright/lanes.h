// Calls a function for sixteen rows at a time, one in each lane of a vector: short rows, as of the scores of ten
// classes. A row by itself would be a call, a loop shorter than a vector, and sums across its lanes.
//
// The function finds element j of the rows of operand k at row[k], j * steps[k] items on, one row after another. It
// reads and writes in place where neighbours in memory belong to neighbouring rows; other operands are packed, as
// transposed blocks. The last sixteen rows may overlap those before them: kernels never write what they read.
#pragma once

#include "opwright/whole_rows.h"

namespace opwright {

constexpr Size lanes = 16, most_in_lanes = 40;  // rows at once, elements of a row

using LanesFunction = void (*)(Size count, void* const* row, const Size* steps);

#ifdef OPWRIGHT_APART
// Returns whether the rows, which are the last `inner` axes, are neighbours and short enough; else nothing is done.
bool in_lanes(const Operands& operands, int inner, Size grain, LanesFunction function);
#else
namespace detail {

// Memory that begins with a line of the caches: on the stack if it fits, as allocating some kilobytes takes longer than
// sixteen rows.
struct OfLanes {
  alignas(64) char near[16384];
  const Lines far;
  char* const data;
  explicit OfLanes(Size bytes) : far(bytes > Size(sizeof(near)) ? bytes : 0), data(far.data ? far.data : near) {}
};

// `run` items of each of some rows, which are `apart`, from memory into the lanes of a buffer, or back.
inline void move_run(const Items& operand, char* element, Size apart, Size stride, Size some, Size run, char* buffer,
                     bool into_buffer) {
  const Size item = operand.item_bytes, row = lanes * item;
  if (operand.iota) {
    Size* target = reinterpret_cast<Size*>(buffer);
    for (Size j = 0; j < run; ++j)
      for (Size lane = 0; lane < some; ++lane)
        target[j * lanes + lane] = count_at(element) + j * stride + lane * apart;
  } else if (stride == item && operand.parts == 1 && item <= 8 && some > 1) {
    if (into_buffer) return transpose(item, element, apart, buffer, row, some, run);
    transpose(item, buffer, row, element, apart, run, some);
  } else if (operand.parts == 1 && some > 1) {
    for (Size j = 0; j < run; ++j, element += stride, buffer += row) {
      if (into_buffer) {
        gather(item, element, apart, some, buffer);
      } else {
        scatter(item, buffer, apart, some, element);
      }
    }
  } else {
    const Size parts = operand.parts, part = operand.part_bytes();
    for (Size lane = 0; lane < some; ++lane, element += apart, buffer += item) {
      const Spacing there{stride, operand.part_stride}, here{row, part};
      if (into_buffer) {
        copy_parts(part, element, there, buffer, here, run, parts);
      } else {
        copy_parts(part, buffer, here, element, there, run, parts);
      }
    }
  }
}

// Some rows of an operand, which are `apart`, from memory into the lanes of a buffer, or back; `inner` is the number of
// their axes.
__attribute__((noinline)) inline void move_rows(const Items& operand, int inner, const Size* strides,
                                                const Size* extents, Size length, char* element, Size apart,
                                                Size some, char* buffer, bool into_buffer) {
  const Size stride = strides[inner - 1], row = lanes * operand.item_bytes;
  if (!operand.whole_row) return move_run(operand, element, apart, 0, some, 1, buffer, into_buffer);
  Size run = extents[inner - 1];
  int last = inner - 2;
  for (; last >= 0 && (extents[last] == 1 || strides[last] == run * stride); --last) run *= extents[last];
  Size index[inner];
  for (int axis = 0; axis <= last; ++axis) index[axis] = 0;
  for (Size done = 0; done < length; done += run) {
    move_run(operand, element, apart, stride, some, run, buffer + done * row, into_buffer);
    for (int axis = last; axis >= 0; --axis) {
      element += strides[axis];
      if (++index[axis] < extents[axis]) break;
      element -= extents[axis] * strides[axis];
      index[axis] = 0;
    }
  }
}

struct Lanes {
  const WholeRows& whole;
  int count, own;                // operands, with and without accumulators
  Size *apart, *steps, *offsets;  // from row to row, along a row, and of their buffers
  bool* in_place;

  static Size bytes(int count) { return (3 * count + 1) * Size(sizeof(Size)) + count; }

  // The last `accumulators` operands are those of columns.
  Lanes(const WholeRows& rows, int accumulators, void* memory)
      : whole(rows), count(rows.count), own(rows.count - accumulators) {
    Arrays arrays{static_cast<char*>(memory)};
    apart = arrays.take<Size>(count), steps = arrays.take<Size>(count), offsets = arrays.take<Size>(count + 1);
    in_place = arrays.take<bool>(count);
  }

  // Returns whether the rows can be taken so.
  bool take(const OuterAxes& rows) {
    const Size least_rows = own < count ? 4 * lanes : lanes;  // accumulators of all lanes are put together
    if (rows.depth == 0 || rows.extents[rows.depth - 1] < least_rows || whole.length > most_in_lanes) return false;
    const Operands& operands = whole.operands;
    offsets[0] = 0;
    for (int k = 0; k < count; ++k) {
      const Items& operand = operands[k];
      if (whole.gathers_vary(k)) return false;
      apart[k] = rows.along(rows.depth - 1)[k];
      steps[k] = whole.step(k);
      bool one_step = true;
      Size run = operands.extents[operands.axes - 1];
      for (int axis = operands.axes - 2; axis >= 0; run *= operands.extents[axis--])
        one_step &= operands.extents[axis] == 1 || operands.strides(k)[axis] == run * steps[k];
      in_place[k] = apart[k] == operand.item_bytes && one_step && steps[k] % operand.item_bytes == 0 && operand.data &&
                    operand.parts == 1 && !operand.iota && operand.gathered_by < 0 && k < own;
      const Size bytes = (operand.whole_row ? whole.length : 1) * lanes * operand.item_bytes;
      offsets[k + 1] = offsets[k] + (bytes + 63) / 64 * 64;
    }
    return true;
  }

  // Sixteen rows; `packed_from` is what the buffers hold of operands that are the same for all rows.
  void run(char* const* first, char* buffer, const char** packed_from, LanesFunction function) const {
    void* row[count];
    Size steps_of[count];
    for (int k = 0; k < count; ++k) {
      const Items& operand = whole.operands[k];
      row[k] = in_place[k] ? first[k] : buffer + offsets[k];
      steps_of[k] = in_place[k] ? steps[k] / operand.item_bytes : lanes;
      const bool is_there = apart[k] == 0 && packed_from[k] == first[k] && !whole.operands.gathers;
      if (in_place[k] || is_there || !operand.data || operand.stored || k >= own) continue;
      pack(k, first, buffer + offsets[k]);
      packed_from[k] = first[k];
    }
    function(whole.length, row, steps_of);
    for (int k = 0; k < count; ++k)
      if (whole.operands[k].stored && !in_place[k]) move(k, first[k], lanes, buffer + offsets[k], false);
  }

  void pack(int k, char* const* first, char* buffer) const {
    const Items& operand = whole.operands[k];
    const int by = whole.operands.gathers ? operand.gathered_by : -1;
    if (by < 0) return move(k, first[k], lanes, buffer, true);
    for (Size lane = 0; lane < lanes; ++lane) {
      const Size offset = gathers_at(operand, whole.operands[by], first[by] + lane * apart[by], 0).offset();
      move(k, first[k] + lane * apart[k] + offset, 1, buffer + lane * operand.item_bytes, true);
    }
  }

  // `some` rows from memory into a buffer, or back.
  void move(int k, char* element, Size some, char* buffer, bool into_buffer) const {
    move_rows(whole.operands[k], whole.operands.axes, whole.operands.strides(k), whole.operands.extents, whole.length,
              element, apart[k], some, buffer, into_buffer);
  }
};

}  // namespace detail

OPWRIGHT_ONCE bool in_lanes(const Operands& operands, int inner, Size grain, LanesFunction function) {
  using namespace detail;
  const int outer = operands.axes - inner, count = operands.count;
  OuterAxes rows(operands, outer, __builtin_alloca(OuterAxes::bytes(operands, outer)));
  const WholeRows whole(operands, inner, 0, __builtin_alloca(WholeRows::bytes(operands)));
  Lanes work(whole, 0, __builtin_alloca(Lanes::bytes(count)));
  if (!work.take(rows)) return false;
  const Size neighbours = rows.extents[rows.depth - 1], panels = neighbours / lanes, left = neighbours % lanes;
  rows.in_panels(panels, lanes);
  in_parallel(rows.total(), at_least_one(grain / at_least_one(whole.length * lanes)), [&](Size from, Size to) {
    const OfLanes packed(work.offsets[count]);
    const char* packed_from[count];
    for (int k = 0; k < count; ++k) packed_from[k] = nullptr;
    rows.run(from, to, [&](Size panel, char* const* first) {
      work.run(first, packed.data, packed_from, function);
      if (left == 0 || (panel + 1) % panels != 0) return;
      char* last[count];
      for (int k = 0; k < count; ++k) last[k] = first[k] + left * work.apart[k];
      work.run(last, packed.data, packed_from, function);
    });
  });
  return true;
}
#endif

template <int axes, int count, bool gathers>
inline bool in_lanes(const Size (&extents)[axes], const Operand<axes, gathers> (&operands)[count], int inner, Size grain,
                     LanesFunction function) {
  return in_lanes(all_of(extents, operands), inner, grain, function);
}

}  // namespace opwright
