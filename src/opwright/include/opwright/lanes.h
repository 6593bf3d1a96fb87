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

namespace detail {

// Memory that begins with a line of the caches: on the stack if it fits, as allocating some kilobytes takes longer than
// sixteen rows.
struct OfLanes {
  alignas(64) char near[16384];
  Array<char> far;
  char* const data;
  explicit OfLanes(Size bytes) : far(bytes > Size(sizeof(near)) ? bytes + 64 : 0), data(far.data ? aligned() : near) {}
  char* aligned() const { return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(far.data) + 63) / 64 * 64); }
};

#ifdef OPWRIGHT_APART
// Some rows of an operand, which are `apart`, from memory into the lanes of a buffer, or back; `inner` is the number of
// their axes.
void move_rows(const Items& operand, int inner, const Size* strides, const Size* extents, Size length, char* element,
               Size apart, Size some, char* buffer, bool into_buffer);
#else
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

OPWRIGHT_ONCE void move_rows(const Items& operand, int inner, const Size* strides, const Size* extents, Size length,
                             char* element, Size apart, Size some, char* buffer, bool into_buffer) {
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
#endif

template <int inner, int count, bool gathers>
struct Lanes {
  WholeRows<inner, count, gathers> whole;
  Size apart[count], steps[count], offsets[count + 1];  // from row to row and, for accumulators, of their buffers
  bool in_place[count];
  int operands = count;  // without accumulators

  // Returns whether the rows can be taken so. The last `accumulators` operands are those of columns.
  template <int outer>
  bool take(const WholeRows<inner, count, gathers>& given, const OuterAxes<outer, count>& rows, int accumulators = 0) {
    const Size least_rows = accumulators > 0 ? 4 * lanes : lanes;  // accumulators of all lanes are put together
    if (rows.depth == 0 || rows.extents[rows.depth - 1] < least_rows || given.length > most_in_lanes) return false;
    whole = given;
    operands -= accumulators;
    offsets[0] = 0;
    for (int k = 0; k < count; ++k) {
      const Operand<inner, gathers>& operand = whole.operands[k];
      if (whole.gathers_vary(k)) return false;
      apart[k] = rows.strides[rows.depth - 1][k];
      steps[k] = operand.strides[inner - 1];
      bool one_step = true;
      Size run = whole.extents[inner - 1];
      for (int axis = inner - 2; axis >= 0; run *= whole.extents[axis--])
        one_step &= whole.extents[axis] == 1 || operand.strides[axis] == run * steps[k];
      in_place[k] = apart[k] == operand.item_bytes && one_step && steps[k] % operand.item_bytes == 0 && operand.data &&
                    operand.parts == 1 && !operand.iota && operand.gathered_by < 0 && k < operands;
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
      const Operand<inner, gathers>& operand = whole.operands[k];
      row[k] = in_place[k] ? first[k] : buffer + offsets[k];
      steps_of[k] = in_place[k] ? steps[k] / operand.item_bytes : lanes;
      const bool is_there = apart[k] == 0 && packed_from[k] == first[k] && !gathers;
      if (in_place[k] || is_there || !operand.data || operand.stored || k >= operands) continue;
      pack(k, first, buffer + offsets[k]);
      packed_from[k] = first[k];
    }
    function(whole.length, row, steps_of);
    for (int k = 0; k < count; ++k)
      if (whole.operands[k].stored && !in_place[k]) move(k, first[k], lanes, buffer + offsets[k], false);
  }

  __attribute__((noinline)) void pack(int k, char* const* first, char* buffer) const {
    const Operand<inner, gathers>& operand = whole.operands[k];
    if constexpr (gathers)
      if (const int by = operand.gathered_by; by >= 0) {
        for (Size lane = 0; lane < lanes; ++lane) {
          const Size offset = gathers_at(operand, whole.operands[by], first[by] + lane * apart[by], 0).offset();
          move(k, first[k] + lane * apart[k] + offset, 1, buffer + lane * operand.item_bytes, true);
        }
        return;
      }
    move(k, first[k], lanes, buffer, true);
  }

  // `some` rows from memory into a buffer, or back.
  void move(int k, char* element, Size some, char* buffer, bool into_buffer) const {
    const Operand<inner, gathers>& operand = whole.operands[k];
    move_rows(operand, inner, operand.strides, whole.extents, whole.length, element, apart[k], some, buffer,
              into_buffer);
  }
};

}  // namespace detail

// Returns whether the rows are neighbours, and short enough; else nothing is done.
template <int inner, int all, int count, bool gathers>
inline bool in_lanes(const Size (&extents)[all], const Operand<all, gathers> (&operands)[count], Size grain,
                     LanesFunction function) {
  using namespace detail;
  OuterAxes<all - inner, count> rows;
  rows.take(extents, operands);
  WholeRows<inner, count, gathers> whole;
  whole.take(extents, operands);
  Lanes<inner, count, gathers> work;
  if (!work.take(whole, rows)) return false;
  const Size neighbours = rows.extents[rows.depth - 1], panels = neighbours / lanes, left = neighbours % lanes;
  rows.extents[rows.depth - 1] = panels;
  for (int k = 0; k < count; ++k) rows.strides[rows.depth - 1][k] *= lanes;
  in_parallel(rows.total(), at_least_one(grain / at_least_one(whole.length * lanes)), [&](Size from, Size to) {
    const OfLanes packed(work.offsets[count]);
    const char* packed_from[count] = {};
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

}  // namespace opwright
