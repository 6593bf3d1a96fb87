// What nodes of autograd have in common.
#pragma once

#include <ATen/ops/zeros.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/function.h>

#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace opwright {

using torch::autograd::Node;
using torch::autograd::SavedVariable;
using torch::autograd::variable_list;
using Arguments = std::vector<at::Tensor>;
using Positions = std::vector<int64_t>;
using NodePointer = std::decay_t<decltype(std::declval<torch::autograd::Edge>().function)>;

// Nodes are held by std::shared_ptr up to PyTorch 2.12 and by c10::intrusive_ptr from 2.13 on.
template <typename Kind, typename... Given>
inline NodePointer new_node(Given&&... given) {
  if constexpr (std::is_same_v<NodePointer, std::shared_ptr<Node>>)
    return NodePointer(new Kind(std::forward<Given>(given)...), [](auto* node) { deleteNode(node); });
  else
    return c10::make_intrusive<Kind>(std::forward<Given>(given)...);
}

// Zeros that take one element of memory.
inline at::Tensor zeros(at::IntArrayRef sizes, const at::TensorOptions& options) {
  return at::zeros({}, options).expand(sizes);
}

inline bool is_differentiable(const at::Tensor& tensor) { return tensor.is_floating_point() || tensor.is_complex(); }

// Incoming gradients of some outputs, zeros for those that got none; empty if none got any.
inline Arguments with_zeros(const Node& node, const Positions& outputs, const variable_list& incoming) {
  Arguments tangents;
  bool any = false;
  for (int64_t position : outputs) {
    any |= incoming[position].defined();
    tangents.push_back(incoming[position]);
  }
  if (!any) return {};
  for (size_t k = 0; k < tangents.size(); ++k) {
    if (tangents[k].defined()) continue;
    const auto& output = node.input_metadata(outputs[k]);
    tangents[k] = zeros(C10_AS_INTARRAYREF_SLOW(output.shape_as_dim_vector()), output.options());
  }
  return tangents;
}

// Hand an error that Python has raised to the engine.
[[noreturn]] inline void throw_python_error() {
  python_error error;
  error.persist();
  throw std::move(error);
}

}  // namespace opwright
