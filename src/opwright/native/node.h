// The common part of autograd nodes.
#pragma once

#include <ATen/ops/zeros.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

namespace opwright {

using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;
using Arguments = std::vector<at::Tensor>;
using Positions = std::vector<int64_t>;
using Described = torch::autograd::TypeAndSize;
using NodePointer = std::decay_t<decltype(std::declval<torch::autograd::Edge>().function)>;

// Nodes are held by std::shared_ptr up to PyTorch 2.12 and by c10::intrusive_ptr from 2.13 on.
template <typename Kind, typename... Given>
inline NodePointer new_node(Given&&... given) {
  if constexpr (std::is_same_v<NodePointer, std::shared_ptr<Node>>)
    return NodePointer(new Kind(std::forward<Given>(given)...), [](auto* node) { deleteNode(node); });
  else
    return c10::make_intrusive<Kind>(std::forward<Given>(given)...);
}

// A node that keeps tensors for its backward pass.
class KeepingNode : public Node {
 public:
  using Node::Node;

  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (SavedVariable& saved : kept_) saved.reset_data();
  }

 protected:
  Arguments unpack() {
    const std::lock_guard<std::mutex> lock(mutex_);
    Arguments kept;
    kept.reserve(kept_.size());
    for (const SavedVariable& saved : kept_) kept.push_back(saved.unpack(getptr()));
    return kept;
  }

  // Some of them: the others may have changed in place.
  Arguments unpack(const Positions& positions) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Arguments kept;
    kept.reserve(positions.size());
    for (int64_t position : positions) kept.push_back(kept_[position].unpack(getptr()));
    return kept;
  }

  std::vector<SavedVariable> kept_;
};

// Expanded zeros, with one element of memory.
inline at::Tensor zeros(const Described& described) {
  return at::zeros({}, described.options).expand_symint(described.sym_sizes);
}

inline bool is_differentiable(const at::Tensor& tensor) { return tensor.is_floating_point() || tensor.is_complex(); }

// Which of these outputs were used: they have a cotangent.
inline Positions used_of(const Positions& outputs, const variable_list& cotangents) {
  Positions used;
  for (int64_t position : outputs)
    if (cotangents[position].defined()) used.push_back(position);
  return used;
}

// The cotangents of these outputs, undefined for those that were not used.
inline Arguments cotangents_of(const Positions& outputs, const variable_list& cotangents) {
  Arguments found;
  for (int64_t position : outputs) found.push_back(cotangents[position]);
  return found;
}

// Pass a Python error to the engine.
[[noreturn]] inline void throw_python_error() {
  python_error error;
  error.persist();
  throw std::move(error);
}

}  // namespace opwright
