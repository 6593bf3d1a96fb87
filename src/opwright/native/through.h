// The node of an output that is computed from other outputs of its call, as a loss from logits.
#pragma once

#include <torch/csrc/autograd/graph_task.h>

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
    Positions at;
    if (cotangent.defined()) at = observed();
    if (at.empty()) return gradients;
    const variable_list found = call_->flowing_to(at, fed_.output, cotangent);
    for (size_t k = 0, next = 0; k < fed_.from.size() && next < at.size(); ++k)
      if (fed_.from[k] == at[next]) gradients[k + 1] = found[next++];
    if (is_run(*call_)) call_->cut_at(at);
    return gradients;
  }

  void compiled_args(CompiledNodeArgs&) const override {}

  variable_list apply_with_saved(const variable_list& cotangents, SwapSavedVariables&) override {
    TORCH_CHECK(observed().empty(), name(),
                ": compiled autograd does not give the gradient of an output from which another output is computed. "
                "Hint: run this backward pass without compiled autograd, or the function as written.");
    variable_list gradients(num_outputs());
    gradients[0] = cotangents[0];
    return gradients;
  }

 private:
  using Infos = std::unordered_map<Node*, torch::autograd::GraphTask::ExecInfo>;

  // Those of the outputs that it is computed from whose gradients somebody looks at.
  Positions observed() const {
    const Infos* infos = torch::autograd::get_current_graph_task_exec_info();
    Positions found;
    for (size_t k = 0; k < fed_.from.size(); ++k)
      if (is_observed(next_edge(k + 1), infos)) found.push_back(fed_.from[k]);
    return found;
  }

  // A hook of another output of the same node counts too: torch does not export which one it is of.
  static bool is_observed(const torch::autograd::Edge& edge, const Infos* infos) {
    Node& node = *edge.function;
    if (!node.tensor_pre_hooks().empty() || node.retains_grad_hooks().count(edge.input_nr)) return true;
    if (!infos || infos->empty()) return false;
    const auto info = infos->find(&node);
    if (info == infos->end() || !info->second.captures_) return false;
    const auto& captures = *info->second.captures_;
    return std::any_of(captures.begin(), captures.end(),
                       [&](const auto& capture) { return capture.input_idx_ == static_cast<int>(edge.input_nr); });
  }

  // Whether this backward pass runs a node.
  static bool is_run(Node& node) {
    const Infos* infos = torch::autograd::get_current_graph_task_exec_info();
    if (!infos || infos->empty()) return true;
    const auto info = infos->find(&node);
    return info != infos->end() && info->second.needed_;
  }

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
