// Updates of many tensors in place: a table of addresses, and one loop over the elements of all tensors.
#pragma once

#include "opwright/half.h"
#include "opwright/launch.h"
#include "opwright/parallel.h"
#include "opwright/random_rounding.h"
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
  float* const* steps;         // [tensor]: how many steps it has taken
  char* kept;                  // [tensor]: room for what is computed of a row
  uint8_t* served;             // [tensor]: whether the update is valid for its numbers
  uint64_t seed;               // of random rounding
};

// Compute the numbers of all tensors: returns for how many the update is not valid.
//
// Update::Numbers is what is computed for a tensor, by Update::compute(row, step, operands, numbers), which returns
// whether the update is valid; Update::elements(count, operands, numbers, seed) updates elements; Update::finish stores
// the results without dimensions.
template <class Update, int operands>
inline Size compute_numbers(const Table& table) {
  using Numbers = typename Update::Numbers;
  Numbers* const kept = reinterpret_cast<Numbers*>(table.kept);
  Size refused = 0;
  for (Size t = 0; t < table.count; ++t) {
    const float step = *table.steps[t] + 1;
    const bool again = !Update::has_scalars && t > 0 && table.rows[t] == table.rows[t - 1] &&
                       *table.steps[t - 1] + 1 == step;
    if (again) {
      kept[t] = kept[t - 1];
      table.served[t] = table.served[t - 1];
    } else {
      void* first[operands];
      for (int k = 0; k < operands; ++k) first[k] = table.columns[k][t];
      table.served[t] = Update::compute(table.numbers + table.rows[t] * table.width, step, first, kept[t]);
    }
    refused += !table.served[t];
  }
  return refused;
}

// Update all tensors, or none: returns for how many tensors the update is not valid.
template <class Update, int operands>
inline Size update_all(const Table& table, const Size (&item_bytes)[operands], Size grain) {
  using Numbers = typename Update::Numbers;
  if (const Size refused = compute_numbers<Update, operands>(table)) return refused;
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
        Update::elements(stop - begin, row, kept[t], random_stream(table.seed, begin));
        begin = stop;
      }
    }
  } task{table, item_bytes};
  run_in_parallel(table.starts[table.count], grain, &Task::run, &task);
  for (Size t = 0; t < table.count; ++t) {
    void* first[operands];
    for (int k = 0; k < operands; ++k) first[k] = table.columns[k][t];
    Update::finish(first, reinterpret_cast<const Numbers*>(table.kept)[t]);
    *table.steps[t] += 1;
  }
  return 0;
}

// The numbers of an update as an operator, as below; the update itself runs elsewhere.
template <class Update, int operands>
inline StableIValue numbers_on_stack(StableIValue address) {
  if (!address) return pass(Size(sizeof(typename Update::Numbers)));
  return pass(compute_numbers<Update, operands>(*reinterpret_cast<const Table*>(address)));
}

// An update as an operator: of the address of a table, or of 0, which asks how much room it needs for a tensor.
template <class Update, int operands>
inline StableIValue update_on_stack(StableIValue address, const Size (&item_bytes)[operands], Size grain) {
  if (!address) return pass(Size(sizeof(typename Update::Numbers)));
  return pass(update_all<Update>(*reinterpret_cast<const Table*>(address), item_bytes, grain));
}

}  // namespace opwright
