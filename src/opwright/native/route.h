// What a tape knows of one variant: which kernels to run, what to keep between them, and whose the gradients are.
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
  std::string node_name;                           // of the node of autograd
  std::string forward_name, backward_name;         // of the kernels; no backward where nothing is recorded
  int64_t outputs;                                 // how many results of the forward kernel the caller gets
  bool bare;                                       // he gets one tensor, not a tuple
  bool row_major;                                  // takes only arguments that lie row by row
  Positions kept_arguments, kept_results;          // what is kept: arguments, then results of the forward kernel
  Positions reads;                                 // of these, what the backward kernel reads
  std::vector<std::pair<int64_t, int64_t>> sizes;  // sizes that it is given: (argument, dimension)
  Positions tangents;                              // outputs that have an cotangent
  Positions gradients;                             // for each result of the backward kernel, the argument it belongs to
  std::vector<Positions> spared;                   // if none of one of these is asked for, Python does with less work
  int64_t number;                                  // under which Python knows it

  std::optional<c10::OperatorHandle> forward, backward;

  // The kernels stand at the dispatcher by now: their libraries were loaded before.
  void find_kernels() {
    auto& dispatcher = c10::Dispatcher::singleton();
    forward = dispatcher.findSchemaOrThrow(forward_name.c_str(), "");
    if (!backward_name.empty()) backward = dispatcher.findSchemaOrThrow(backward_name.c_str(), "");
  }
};

}  // namespace opwright
