// At which outputs of a call gradients are cut, for each backward pass that runs.
#pragma once

#include <torch/csrc/autograd/graph_task.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "node.h"

namespace opwright {

class Cuts {
 public:
  // In the backward pass of this thread, besides those that were added before.
  void add(const Positions& outputs) {
    const std::lock_guard<std::mutex> lock(mutex_);
    Positions& all = by_pass_[torch::autograd::get_current_graph_task_id()];
    for (int64_t output : outputs)
      if (std::find(all.begin(), all.end(), output) == all.end()) all.push_back(output);
  }

  // Those of the backward pass of this thread.
  Positions take() {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = by_pass_.find(torch::autograd::get_current_graph_task_id());
    if (found == by_pass_.end()) return {};
    Positions outputs = std::move(found->second);
    by_pass_.erase(found);
    return outputs;
  }

 private:
  std::mutex mutex_;
  std::map<int, Positions> by_pass_;
};

}  // namespace opwright
