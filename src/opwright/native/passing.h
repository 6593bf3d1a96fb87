// What happens at the outputs of a call during a backward pass, before it reaches the node of the call.
#pragma once

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "node.h"
#include "observed.h"
#include "route.h"

namespace opwright {

// The gradients of some outputs have passed on, cut at other outputs that they are computed from.
class Passing {
 public:
  // Where that of an output is to be cut: where somebody looks, and where others are cut. Its node has an edge to each of
  // the outputs it is computed from, behind that to the call.
  Positions cut_of(const Node& node, const Fed& fed) const {
    Positions at;
    for (size_t k = 0; k < fed.from.size(); ++k)
      if (is_cut(fed.from[k]) || is_observed(node.next_edge(k + 1))) at.push_back(fed.from[k]);
    return at;
  }

  // That of an output passes on.
  void add(const Node& node, const Fed& fed, const Positions& at) {
    passed_.push_back({&node, &fed, at});
    for (int64_t output : at)
      if (!is_cut(output)) cut_.push_back(output);
  }

  // Whether all was cut that is to be cut by now: hooks may have been registered meanwhile, when something had passed on
  // that they see in eager.
  bool is_whole() const {
    return std::all_of(passed_.begin(), passed_.end(), [this](const Passed& passed) {
      return cut_of(*passed.node, *passed.fed) == passed.at;
    });
  }

  // Where gradients were cut.
  const Positions& cut() const { return cut_; }

  Arguments kept;  // what the node of the call has saved, if it was read: in a checkpoint it can be read only once

 private:
  struct Passed {
    const Node* node;  // which the backward pass holds
    const Fed* fed;
    Positions at;
  };

  bool is_cut(int64_t output) const { return std::find(cut_.begin(), cut_.end(), output) != cut_.end(); }

  std::vector<Passed> passed_;
  Positions cut_;
};

// One for each backward pass that runs.
class PassingByPass {
 public:
  Passing& now() {
    const std::lock_guard<std::mutex> lock(mutex_);
    return by_pass_[torch::autograd::get_current_graph_task_id()];
  }

  Passing take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_pass_.extract(torch::autograd::get_current_graph_task_id());
    return found ? std::move(found.mapped()) : Passing();
  }

 private:
  std::mutex mutex_;
  std::map<int, Passing> by_pass_;
};

}  // namespace opwright
