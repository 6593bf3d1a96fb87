// Cuts autograd's graph of a call at some of its outputs, so that gradients flow to them and no further.
#pragma once

#include <torch/csrc/autograd/variable.h>

#include <tuple>
#include <unordered_set>
#include <utility>
#include <vector>

#include "node.h"

namespace opwright {

// The edges of a node that has parents, which torch does not let change.
class EdgesOf : public Node {
 public:
  static torch::autograd::edge_list& of(Node& node) { return node.*(&EdgesOf::next_edges_); }
};

// The graph must be the caller's own, down to the nodes of its arguments.
class Cut {
 public:
  Cut(const Arguments& arguments, const Arguments& outputs, const Arguments& at) {
    std::vector<std::pair<Edge, Edge>> changes;
    for (const at::Tensor& output : at) {
      leaves_.push_back(output.detach());
      leaves_.back().set_requires_grad(true);
      if (output.grad_fn())
        changes.emplace_back(torch::autograd::impl::gradient_edge(output),
                             torch::autograd::impl::gradient_edge(leaves_.back()));
    }
    std::unordered_set<Node*> met;
    std::vector<NodePointer> left;
    for (const at::Tensor& argument : arguments) met.insert(argument.grad_fn().get());
    const auto visit = [&](const NodePointer& node) {
      if (node && met.insert(node.get()).second) left.push_back(node);
    };
    for (const at::Tensor& output : outputs) visit(output.grad_fn());
    while (!left.empty()) {
      const NodePointer node = std::move(left.back());
      left.pop_back();
      for (size_t k = 0; k < node->num_outputs(); ++k) {
        const Edge edge = node->next_edge(k);
        visit(edge.function);
        for (const auto& [from, to] : changes)
          if (edge == from) replace(node, k, to);
      }
    }
  }

  // For each of these outputs, a leaf that gets the gradient which flowed there from others.
  const Arguments& leaves() const { return leaves_; }

  // Let gradients flow on: those of gradients go all the way to the arguments.
  void mend() {
    for (auto& [node, k, edge] : replaced_) EdgesOf::of(*node)[k] = std::move(edge);
    replaced_.clear();
  }

 private:
  using Edge = torch::autograd::Edge;

  void replace(const NodePointer& node, size_t k, const Edge& by) {
    replaced_.emplace_back(node, k, std::exchange(EdgesOf::of(*node)[k], by));
  }

  Arguments leaves_;
  std::vector<std::tuple<NodePointer, size_t, Edge>> replaced_;
};

}  // namespace opwright
