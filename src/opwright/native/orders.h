// The order of a tensor's dimensions in memory, as in tracing/interface/orders.py.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <cstdint>
#include <tuple>
#include <vector>

namespace opwright {

using Order = c10::SmallVector<int64_t, 6>;

// For each tensor of several dimensions: its position, its order, and the dimensions along which it is expanded.
using Orders = std::vector<std::tuple<int64_t, std::vector<int64_t>, std::vector<int64_t>>>;

inline bool is_ordered(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && !tensor.is_nested() && tensor.dim() > 1;
}

// Whether a tensor is contiguous and in channels last at once, and eager takes it for the latter.
inline bool is_one_channel_last(const at::Tensor& tensor) {
  const int64_t rank = tensor.dim();
  if ((rank != 4 && rank != 5) || tensor.size(1) != 1 || tensor.stride(1) != 1) return false;
  const auto sizes = tensor.sizes();
  return std::any_of(sizes.begin() + 2, sizes.end(), [](int64_t size) { return size != 1; });
}

// Dimensions from the outermost to the innermost; empty where they lie as written.
inline Order order_of(const at::Tensor& tensor) {
  const bool is_both = is_one_channel_last(tensor);
  if (!is_both && tensor.is_contiguous()) return {};
  const int64_t rank = tensor.dim();
  const auto sizes = tensor.sizes(), strides = tensor.strides();
  Order wide, narrow;
  for (int64_t k = 0; k < rank; ++k) (sizes[k] != 1 && strides[k] != 0 ? wide : narrow).push_back(k);
  Order found = wide;
  std::stable_sort(found.begin(), found.end(), [&](int64_t a, int64_t b) {
    return strides[a] > strides[b] || (strides[a] == strides[b] && sizes[a] > sizes[b]);  // equal ones overlap
  });
  if (!is_both && found == wide) return {};
  if (rank == 4 || rank == 5) {
    Order last{0}, wide_last;
    for (int64_t k = 2; k < rank; ++k) last.push_back(k);
    last.push_back(1);
    std::copy_if(last.begin(), last.end(), std::back_inserter(wide_last),
                 [&](int64_t k) { return std::find(wide.begin(), wide.end(), k) != wide.end(); });
    if (found == wide_last) return last;
  }
  if (found == wide) return {};
  narrow.append(found.begin(), found.end());
  return narrow;
}

template <class Arguments>
bool lie_as_written(const Arguments& arguments) {
  return std::all_of(arguments.begin(), arguments.end(),
                     [](const at::Tensor& tensor) { return !is_ordered(tensor) || order_of(tensor).empty(); });
}

inline bool lies_in(const at::Tensor& tensor, const std::vector<int64_t>& order, const std::vector<int64_t>& expanded) {
  const Order found = order_of(tensor);
  if (!std::equal(found.begin(), found.end(), order.begin(), order.end())) return false;
  size_t place = 0;
  for (int64_t k = 0; k < tensor.dim(); ++k) {
    if (tensor.size(k) == 1 || tensor.stride(k) != 0) continue;
    if (place == expanded.size() || expanded[place++] != k) return false;
  }
  return place == expanded.size();
}

template <class Arguments>
bool lie_in(const Arguments& arguments, const Orders& orders) {
  if (orders.empty()) return lie_as_written(arguments);
  return std::all_of(orders.begin(), orders.end(), [&](const auto& lies) {
    const auto& [position, order, expanded] = lies;
    return lies_in(arguments[position], order, expanded);
  });
}

}  // namespace opwright
