// Updates of many tensors in place, one tensor after another: each by kernels of its own, over rows and columns.
#pragma once

#include "opwright/launch.h"
#include "opwright/table.h"

namespace opwright {

// The tensors in one column of a table. Those that only the processor reads, as numbers, have a rank of -1.
struct ColumnKind {
  int32_t dtype;
  int rank;
};

// The sizes of a tensor of a table, and then its strides.
inline const Size* shape_of(const Table& table, int column, Size t, ColumnKind kind) {
  return table.shapes[column] + 2 * kind.rank * t;
}

// A tensor of a table.
inline Tensor tensor_of(const Table& table, int column, Size t, ColumnKind kind) {
  if (kind.rank < 0) return Tensor();
  const Size* const sizes = shape_of(table, column, t, kind);
  AtenTensorHandle handle = nullptr;
  torch_from_blob(table.columns[column][t], kind.rank, sizes, sizes + kind.rank, 0, kind.dtype, int32_t(table.device_type),
                  int32_t(table.device_index), &handle, strided, nullptr, 0, nullptr, nullptr);
  return Tensor(handle);
}

// Copy a result to the tensor that it replaces. False if there was no memory.
inline bool copy_to(const Tensor& target, const Tensor& made) {
  StableIValue stack[] = {pass(target), pass(made), pass(false)};
  if (!call("aten::copy_", "", stack)) return false;
  take(stack[0]);
  return true;
}

// The same for one of its dtype, unless it was written there.
template <class T>
inline bool replace_by(const Tensor& target, const Tensor& made) {
  if (made.at<T>(0) == target.at<T>(0)) return true;
#ifndef OPWRIGHT_CUDA
  if (made.is_row_major() && target.is_row_major()) {
    Size count = 1;
    for (int k = 0; k < target.rank(); ++k) count *= target.size(k);
    __builtin_memcpy(target.at<T>(0), made.at<T>(0), count * sizeof(T));
    return true;
  }
#endif
  return copy_to(target, made);
}

// The same for a result that is rounded at random; `result` tells those of an update apart. The random bits of an element
// are those of its place among all elements of the table, whatever the layout is.
template <class Made, class Target, Target (*rounded)(float, uint32_t)>
inline bool replace_randomly(const Tensor& target, const Tensor& made, RandomStream random, uint32_t result) {
  Size place[64] = {}, from = 0, to = 0;
  const int rank = int(target.rank());
  for (int k = 0; k < rank; ++k)
    if (target.size(k) == 0) return true;
  for (Size element = 0;; ++element) {
    *target.at<Target>(to) = rounded(static_cast<float>(*made.at<const Made>(from)), random_bits(random, element, result));
    int k = rank - 1;
    for (; k >= 0; --k) {
      from += made.stride(k), to += target.stride(k);
      if (++place[k] < target.size(k)) break;
      from -= place[k] * made.stride(k), to -= place[k] * target.stride(k), place[k] = 0;
    }
    if (k < 0) return true;
  }
}

constexpr Size least_shared = 32768;  // elements: a larger tensor has work for all threads
constexpr Size grain_of_small = 8192;

// Update the tensors for which the update is valid: returns how many are left as they were, because it is not, or because
// memory ran out or a library operation failed. `table.served` says which are done.
//
// Beside what `compute_numbers` asks of Update, Update::fits(given) says whether it serves tensors of these sizes;
// Update::run(given, numbers, made) computes its results, and Update::store(given, made, random) puts them where they belong.
// Update::shares_threads says whether several tensors may be updated at the same time, each by one thread.
template <class Update, int columns>
inline Size update_each(const Table& table, const ColumnKind (&kinds)[columns]) {
  using Numbers = typename Update::Numbers;
  struct Task {
    const Table& table;
    const ColumnKind (&kinds)[columns];
    Size* const starts;  // [tensor] and the end: how many elements of small tensors there are before it

    ~Task() { delete[] starts; }

    Numbers& numbers(Size t) const { return reinterpret_cast<Numbers*>(table.kept)[t]; }
    Size elements(Size t) const { return table.starts[t + 1] - table.starts[t]; }
    bool is_small(Size t) const { return Update::shares_threads && elements(t) < least_shared; }

    bool is_valid(Size t) const {
      Tensor given[columns];
      void* first[columns];
      for (int k = 0; k < columns; ++k) {
        first[k] = table.columns[k][t];
        if (kinds[k].rank < 0) continue;
        const Size* const sizes = shape_of(table, k, t, kinds[k]);
        given[k] = Tensor(first[k], kinds[k].rank, sizes, sizes + kinds[k].rank);
      }
      if (!Update::fits(given)) return false;
      return Update::compute(table.numbers + table.rows[t] * table.width, next_step(table, t), given, first, numbers(t));
    }

    void update(Size t) const {
      Tensor given[columns], made[Update::results];
      for (int k = 0; k < columns; ++k) given[k] = tensor_of(table, k, t, kinds[k]);
      table.served[t] = table.served[t] && Update::run(given, numbers(t), made) &&
                        Update::store(given, made, random_stream(table.seed, table.starts[t]));
      if (table.served[t]) finish_one<Update, columns>(table, t);
    }

    static void run(Size begin, Size end, void* context) {
      const Task& task = *static_cast<const Task*>(context);
      for (Size t = 0; t < task.table.count; ++t)
        if (task.is_small(t) && task.starts[t] >= begin && task.starts[t] < end) task.update(t);
    }
  } task{table, kinds, new Size[table.count + 1]};
  for (Size t = 0; t < table.count; ++t) table.served[t] = task.is_valid(t);
  task.starts[0] = 0;
  for (Size t = 0; t < table.count; ++t) {
    if (!task.is_small(t)) task.update(t);
    task.starts[t + 1] = task.starts[t] + (task.is_small(t) ? task.elements(t) : 0);
  }
  run_in_parallel(task.starts[table.count], grain_of_small, &Task::run, &task);
  Size left = 0;
  for (Size t = 0; t < table.count; ++t) left += !table.served[t];
  return left;
}

// An update as an operator, as those of opwright/table.h.
template <class Update, int columns>
inline StableIValue update_each_on_stack(StableIValue address, const ColumnKind (&kinds)[columns]) {
  if (address == 0) return pass(Size(sizeof(typename Update::Numbers)));
  if (address == 1) return pass(Size(0));
  return pass(update_each<Update>(*reinterpret_cast<const Table*>(address), kinds));
}

}  // namespace opwright
