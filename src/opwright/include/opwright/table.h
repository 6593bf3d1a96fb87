// Updates of many tensors in place: a table of addresses, and one loop over the elements of all tensors.
#pragma once

#include "opwright/half.h"
#include "opwright/launch.h"
#include "opwright/parallel.h"
#include "opwright/random_rounding.h"
#include "opwright/reduce_order.h"
#include "opwright/table_places.h"
#include "opwright/tensor.h"
#include "opwright/vmath.h"

namespace opwright {

// What an update is given. Python fills it, see opwright/optim/serving/tables.py.
struct Table {
  Size count;                  // tensors
  char* const* const* columns;  // [operand][tensor]: addresses of first elements
  const Size* starts;          // [tensor] and the end: how many elements there are before it
  const Size* rows;            // [tensor]: its row of numbers
  const double* numbers;       // [row][number]
  Size width;                  // of a row
  void* const* steps;          // [tensor]: how many steps it has taken
  char* kept;                  // [tensor]: room for what is computed of a row
  uint8_t* served;             // [tensor]: whether the update is valid for its numbers
  uint64_t seed;               // of random rounding
  Size piece;                  // how many elements are reduced together
  const Size* pieces;          // [tensor] and the end: how many pieces there are before it
  char* totals;                // [tensor], then [piece]: room for what is reduced
  Size step_bytes;             // of how many steps a tensor has taken: that of a float or a double
  const float* skip;           // in the memory of a GPU: not zero if nothing may change there; null for zero
  const Size* const* shapes;   // [operand]: of each tensor, its sizes and then its strides
  Size device_type;            // where the tensors are, in the numbers of torch
  Size device_index;           // -1 for the processor
};

// The number of the next step of a tensor.
inline double next_step(const Table& table, Size t) {
  if (table.step_bytes == sizeof(double)) return *static_cast<const double*>(table.steps[t]) + 1;
  return *static_cast<const float*>(table.steps[t]) + 1.0f;
}

// Count a step of a tensor.
inline void count_step(const Table& table, Size t) {
  if (table.step_bytes == sizeof(double))
    *static_cast<double*>(table.steps[t]) += 1;
  else
    *static_cast<float*>(table.steps[t]) += 1;
}

// Compute the numbers of all tensors: returns for how many the update is not valid.
//
// Update::Numbers is what is computed for a tensor, by Update::compute(row, step, count, operands, numbers), which returns
// whether the update is valid; Update::elements(count, operands, numbers, totals, random) updates elements; Update::finish
// stores the results without dimensions, by the random bits of a place behind all elements. Update::Totals is what Update::passes passes over all elements reduce, each by
// Update::reduce(pass, count, operands, numbers, totals, part).
template <class Update, int operands>
inline Size compute_numbers(const Table& table) {
  using Numbers = typename Update::Numbers;
  Numbers* const kept = reinterpret_cast<Numbers*>(table.kept);
  Size refused = 0;
  for (Size t = 0; t < table.count; ++t) {
    const double step = next_step(table, t);
    const Size count = table.starts[t + 1] - table.starts[t];
    const bool again = !Update::has_scalars && t > 0 && table.rows[t] == table.rows[t - 1] &&
                       (!Update::has_counts || count == table.starts[t] - table.starts[t - 1]) &&
                       next_step(table, t - 1) == step;
    if (again) {
      kept[t] = kept[t - 1];
      table.served[t] = table.served[t - 1];
    } else {
      void* first[operands];
      for (int k = 0; k < operands; ++k) first[k] = table.columns[k][t];
      table.served[t] = Update::compute(table.numbers + table.rows[t] * table.width, step, count, first, kept[t]);
    }
    refused += !table.served[t];
  }
  return refused;
}

// Store the results of a tensor that have no dimensions, and count its step.
template <class Update, int operands>
inline void finish_one(const Table& table, Size t) {
  using Numbers = typename Update::Numbers;
  void* first[operands];
  for (int k = 0; k < operands; ++k) first[k] = table.columns[k][t];
  const RandomStream random = random_stream(table.seed, table.starts[table.count] + t);
  Update::finish(first, reinterpret_cast<const Numbers*>(table.kept)[t], random);
  count_step(table, t);
}

// The same for all tensors.
template <class Update, int operands>
inline void finish_all(const Table& table) {
  for (Size t = 0; t < table.count; ++t) finish_one<Update, operands>(table, t);
}

// Reduce all tensors in one pass, and add the results to those of the passes before.
//
// Pieces are the same whatever the threads are, and their results are combined in order, so that sums do not depend on
// threads.
template <class Update, int operands>
inline void reduce_all(const Table& table, int pass, const Size (&item_bytes)[operands], Size grain) {
  using Numbers = typename Update::Numbers;
  using Totals = typename Update::Totals;
  struct Task {
    const Table& table;
    int pass;
    const Size (&item_bytes)[operands];

    static void run(Size begin, Size end, void* context) {
      const Task& task = *static_cast<const Task*>(context);
      const Table& table = task.table;
      const Totals* const totals = reinterpret_cast<const Totals*>(table.totals);
      Totals* const parts = reinterpret_cast<Totals*>(table.totals) + table.count;
      for (Size piece = begin, t = tensor_at(table.pieces, table.count, begin); piece < end; ++piece) {
        while (table.pieces[t + 1] <= piece) ++t;
        const Size first = (piece - table.pieces[t]) * table.piece, left = table.starts[t + 1] - table.starts[t] - first;
        void* row[operands];
        for (int k = 0; k < operands; ++k) row[k] = table.columns[k][t] + first * task.item_bytes[k];
        parts[piece].start();
        Update::reduce(task.pass, left < table.piece ? left : table.piece, row,
                       reinterpret_cast<const Numbers*>(table.kept)[t], totals[t], parts[piece]);
      }
    }
  } task{table, pass, item_bytes};
  Totals* const totals = reinterpret_cast<Totals*>(table.totals);
  if (pass == 0)
    for (Size t = 0; t < table.count; ++t) totals[t].start();
  const Size pieces_together = grain / table.piece > 0 ? grain / table.piece : 1;
  run_in_parallel(table.pieces[table.count], pieces_together, &Task::run, &task);
  for (Size t = 0; t < table.count; ++t)
    for (Size piece = table.pieces[t]; piece < table.pieces[t + 1]; ++piece)
      totals[t].add(totals[table.count + piece]);
}

// Update all tensors, or none: returns for how many tensors the update is not valid.
template <class Update, int operands>
inline Size update_all(const Table& table, const Size (&item_bytes)[operands], Size grain) {
  using Numbers = typename Update::Numbers;
  using Totals = typename Update::Totals;
  if (const Size refused = compute_numbers<Update, operands>(table)) return refused;
  if constexpr (Update::passes > 0)
    for (int pass = 0; pass < Update::passes; ++pass) reduce_all<Update, operands>(table, pass, item_bytes, grain);
  struct Task {
    const Table& table;
    const Size (&item_bytes)[operands];

    static void run(Size begin, Size end, void* context) {
      const Task& task = *static_cast<const Task*>(context);
      const Table& table = task.table;
      const Numbers* const kept = reinterpret_cast<const Numbers*>(table.kept);
      for (Size t = tensor_at(table.starts, table.count, begin); begin < end; ++t) {
        const Size stop = table.starts[t + 1] < end ? table.starts[t + 1] : end;
        if (stop <= begin) continue;
        void* row[operands];
        const Size offset = begin - table.starts[t];
        for (int k = 0; k < operands; ++k) row[k] = table.columns[k][t] + offset * task.item_bytes[k];
        const Totals& totals = reinterpret_cast<const Totals*>(table.totals)[Update::passes > 0 ? t : 0];
        Update::elements(stop - begin, row, kept[t], totals, random_stream(table.seed, begin));
        begin = stop;
      }
    }
  } task{table, item_bytes};
  run_in_parallel(table.starts[table.count], grain, &Task::run, &task);
  finish_all<Update, operands>(table);
  return 0;
}

// How much room an update needs: asked by 0, for the numbers of a tensor; by 1, for what is reduced of a tensor or a piece.
template <class Update>
inline Size room_of(StableIValue question) {
  if (question) return Update::passes > 0 ? Size(sizeof(typename Update::Totals)) : 0;
  return Size(sizeof(typename Update::Numbers));
}

// The numbers of an update as an operator, as below; the update itself runs elsewhere.
template <class Update, int operands>
inline StableIValue numbers_on_stack(StableIValue address) {
  if (address <= 1) return pass(room_of<Update>(address));
  return pass(compute_numbers<Update, operands>(*reinterpret_cast<const Table*>(address)));
}

// An update as an operator: of the address of a table, or of a question about the room that it needs.
template <class Update, int operands>
inline StableIValue update_on_stack(StableIValue address, const Size (&item_bytes)[operands], Size grain) {
  if (address <= 1) return pass(room_of<Update>(address));
  return pass(update_all<Update>(*reinterpret_cast<const Table*>(address), item_bytes, grain));
}

}  // namespace opwright
