// The calls of one structure that a function, or a module, serves itself, because kernels gain nothing, or were refused. It
// is right for every call: this decides only what is faster.
#pragma once

#include <utility>
#include <vector>

#include "objects.h"
#include "sameness.h"

namespace opwright {

class LeftCalls {
 public:
  // Constants among the leaves are numbers, texts and the like, which lead to no other object.
  void add(const std::vector<py::object>& leaves) {
    if (calls_.size() >= most_calls) return;
    Call call{at::GradMode::is_enabled(), {}};
    for (const py::object& leaf : leaves) call.leaves.push_back(kind_of(leaf.ptr()));
    calls_.push_back(std::move(call));
  }

  bool has(PyObject* const* leaves, size_t count) const {
    for (const Call& call : calls_) {
      if (call.is_recording != at::GradMode::is_enabled() || call.leaves.size() != count) continue;
      bool is_same = true;
      for (size_t k = 0; is_same && k < count; ++k) is_same = call.leaves[k].is_of(leaves[k]);
      if (is_same) return true;
    }
    return false;
  }

 private:
  static constexpr size_t most_calls = 32;

  struct Kind {
    py::object constant;  // null for a tensor
    PyTypeObject* type;
    at::ScalarType dtype;
    at::Device device;
    std::vector<bool> ones;  // for each dimension, whether it has one element
    bool is_empty, requires_grad;

    bool is_of(PyObject* leaf) const {
      if (constant) return are_same(leaf, constant.ptr());
      if (Py_TYPE(leaf) != type) return false;
      const at::Tensor& tensor = THPVariable_Unpack(leaf);
      if (tensor.scalar_type() != dtype || tensor.device() != device || tensor.requires_grad() != requires_grad)
        return false;
      return tensor.is_nested() ? ones.empty() : has_sizes(tensor);
    }

    bool has_sizes(const at::Tensor& tensor) const {
      if (static_cast<size_t>(tensor.dim()) != ones.size() || (tensor.numel() == 0) != is_empty) return false;
      for (size_t k = 0; k < ones.size(); ++k)
        if ((tensor.size(static_cast<int64_t>(k)) == 1) != ones[k]) return false;
      return true;
    }
  };

  struct Call {
    bool is_recording;
    std::vector<Kind> leaves;
  };

  static Kind kind_of(PyObject* leaf) {
    if (!is_tensor(leaf)) {
      return {py::reinterpret_borrow<py::object>(leaf), Py_TYPE(leaf), at::kFloat, at::kCPU, {}, false, false};
    }
    const at::Tensor& tensor = THPVariable_Unpack(leaf);
    Kind kind{{}, Py_TYPE(leaf), tensor.scalar_type(), tensor.device(), {}, false, tensor.requires_grad()};
    if (tensor.is_nested()) return kind;
    for (int64_t size : tensor.sizes()) kind.ones.push_back(size == 1);
    kind.is_empty = tensor.numel() == 0;
    return kind;
  }

  std::vector<Call> calls_;
};

}  // namespace opwright
