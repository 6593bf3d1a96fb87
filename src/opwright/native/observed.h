// Whether somebody looks at the gradient of an output during a backward pass.
#pragma once

#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>

#include "node.h"

namespace opwright {

// What the backward pass of this thread knows of nodes; null or empty if it runs all of them.
inline const auto* infos_of_pass() { return torch::autograd::get_current_graph_task_exec_info(); }

// Whether this backward pass runs a node.
inline bool is_run(Node& node) {
  const auto* infos = infos_of_pass();
  if (!infos || infos->empty()) return true;
  const auto info = infos->find(&node);
  return info != infos->end() && info->second.needed_;
}

// By a hook of the output or of its node, a retained gradient, or because the backward pass is asked for its gradient.
// A hook of another output of the same node counts too: torch does not export which one it is of.
inline bool is_observed(const torch::autograd::Edge& edge) {
  Node& node = *edge.function;
  if (!node.tensor_pre_hooks().empty() || node.retains_grad_hooks().count(edge.input_nr)) return true;
  if (!node.pre_hooks().empty() || !node.post_hooks().empty()) return true;
  const auto* infos = infos_of_pass();
  if (!infos || infos->empty()) return false;
  const auto info = infos->find(&node);
  if (info == infos->end() || !info->second.captures_) return false;
  const auto& captures = *info->second.captures_;
  return std::any_of(captures.begin(), captures.end(),
                     [&](const auto& capture) { return capture.input_idx_ == static_cast<int>(edge.input_nr); });
}

}  // namespace opwright
