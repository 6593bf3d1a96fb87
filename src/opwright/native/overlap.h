// Whether two elements of a tensor may be in one place: tracing/interface/memory.py in C++.
#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <utility>
#include <vector>

namespace opwright {

inline bool may_overlap_itself(const at::Tensor& tensor) {
  if (tensor.is_contiguous()) return false;
  std::vector<std::pair<int64_t, int64_t>> steps;
  for (int64_t d = 0; d < tensor.dim(); ++d)
    if (tensor.size(d) > 1) steps.emplace_back(tensor.stride(d), tensor.size(d));
  std::sort(steps.begin(), steps.end());
  int64_t reach = 0;
  for (const auto& [stride, size] : steps) {
    if (stride <= reach) return true;
    reach += stride * (size - 1);
  }
  return false;
}

}  // namespace opwright
