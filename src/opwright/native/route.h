// A variant, for the tape: its kernels, what to save between them, and the order of the gradients.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node.h"

namespace opwright {

struct Route {
  std::string node_name;                           // of the autograd node
  std::string forward_name, backward_name;         // of the kernels; no backward where nothing is recorded
  int64_t outputs;                                 // the number of results that the caller gets
  bool bare;                                       // the caller gets one tensor, not a tuple
  bool row_major;                                  // takes only contiguous arguments
  Positions kept_arguments, kept_results;          // what is saved: arguments, then results of the forward kernel
  Positions reads;                                 // of these, what the backward kernel reads
  std::vector<std::pair<int64_t, int64_t>> sizes;  // sizes that it gets: (argument, dimension)
  Positions tangents;                              // outputs that have a cotangent
  Positions gradients;                             // for each result of the backward kernel, the argument it belongs to
  std::vector<Positions> spared;                   // if none of one of these groups is needed, Python does less work
  int64_t number;                                  // its key in Python

  std::optional<c10::OperatorHandle> forward, backward;

  // The kernels are registered at the dispatcher: their libraries were loaded before.
  void find_kernels() {
    auto& dispatcher = c10::Dispatcher::singleton();
    forward = dispatcher.findSchemaOrThrow(forward_name.c_str(), "");
    if (!backward_name.empty()) backward = dispatcher.findSchemaOrThrow(backward_name.c_str(), "");
  }
};

}  // namespace opwright
