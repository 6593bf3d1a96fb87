// The node of an output that is computed from other outputs of its call, as a loss from logits.
#pragma once

#include <algorithm>
#include <utility>

#include "derivative.h"

namespace opwright {

// In eager the gradient of such an output flows through the others, where hooks see it, retained gradients hold it, and
// `torch.autograd.grad` asks for it. Here a call is one node, which goes to the arguments at once. So this node comes
// before it. It passes the gradient on; and where somebody looks, it also computes what flows to the other outputs.
class Through : public Node {
 public:
  // The edges lead to the node of the call, and to the outputs that this one is computed from.
  Through(torch::autograd::edge_list edges, const Fed& fed)
      : Node(std::move(edges)), call_(static_cast<Derivative*>(next_edge(0).function.get())), fed_(fed) {}

  std::string name() const override { return call_->name(); }

  variable_list apply(variable_list&& cotangents) override {
    variable_list gradients(num_outputs());
    const at::Tensor& cotangent = gradients[0] = std::move(cotangents[0]);
    if (!cotangent.defined()) return gradients;
    variable_list flowing = call_->flowing_from(*this, fed_, cotangent);
    std::move(flowing.begin(), flowing.end(), gradients.begin() + 1);
    return gradients;
  }

  void compiled_args(CompiledNodeArgs&) const override {}

  variable_list apply_with_saved(const variable_list& cotangents, SwapSavedVariables&) override {
    TORCH_CHECK(Passing().cut_of(*this, fed_).empty(), name(),
                ": compiled autograd does not give the gradient of an output from which another output is computed. "
                "Hint: run this backward pass without compiled autograd, or the function as written.");
    variable_list gradients(num_outputs());
    gradients[0] = cotangents[0];
    return gradients;
  }

 private:
  Derivative* call_;  // which the first edge holds
  const Fed& fed_;    // which its route holds
};

// Put such nodes before the node of a call.
inline void pass_through(const Route& route, const NodePointer& call, const torch::jit::Stack& made) {
  for (const Fed& fed : route.feeding) {  // those that others are computed from come first
    torch::autograd::edge_list edges;
    edges.reserve(fed.from.size() + 1);
    edges.emplace_back(call, static_cast<uint32_t>(fed.output));
    for (int64_t position : fed.from) edges.push_back(torch::autograd::impl::gradient_edge(made[position].toTensor()));
    torch::autograd::set_history(made[fed.output].toTensor(), new_node<Through>(std::move(edges), fed));
  }
}

}  // namespace opwright
