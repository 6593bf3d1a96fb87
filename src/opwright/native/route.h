// A variant, for the tape: its kernels, what to save between them, and the order of the gradients.
#pragma once

#include <ATen/core/dispatch/Dispatcher.h>
#include <pybind11/stl.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "node.h"
#include "numbers.h"
#include "orders.h"
#include "structure.h"

namespace opwright {

// What stands in a result: a tensor that is computed, an argument, or a constant.
struct Member {
  enum Kind : int { made = 0, given = 1, constant = 2 };

  explicit Member(py::handle facts) {
    const auto [of, what] = facts.cast<std::pair<int, py::object>>();
    kind = static_cast<Kind>(of);
    if (kind == constant)
      value = what.ptr();
    else
      position = what.cast<int64_t>();
  }

  Kind kind;
  int64_t position = 0;       // of an output, or of an argument
  PyObject* value = nullptr;  // who makes the route holds it
};

// Runs calls of an operator of flat arguments: a tape.
struct Runs {
  virtual ~Runs() = default;

  // The results of a call, below autograd, with these tensors, undefined in place of what `way` has as constants. False if
  // no variant takes them, or if they are no plain tensors. The caller holds the GIL, which it does without meanwhile.
  virtual bool run_way(size_t way, Arguments& arguments, variable_list& results) const = 0;
};

// A backward pass of some of the outputs, or of some gradients, by the operator of these gradients.
struct Pass {
  Positions used, wanted;  // outputs that have a cotangent; arguments whose gradients are asked for
  std::weak_ptr<const Runs> tape;  // it owns Python objects; a route may end in a thread without the GIL
  size_t way;
  Positions intermediates;  // which of those that are saved it takes
  Positions gradients;      // for each of its results, the argument it belongs to

  explicit Pass(const py::tuple& facts)
      : used(facts[0].cast<Positions>()),
        wanted(facts[1].cast<Positions>()),
        tape(facts[2].cast<std::shared_ptr<Runs>>()),
        way(facts[3].cast<size_t>()),
        intermediates(facts[4].cast<Positions>()),
        gradients(facts[5].cast<Positions>()) {}
};

// An output that autograd computes from other outputs.
struct Fed {
  int64_t output;
  Positions from;
};

// Positions are those of the arguments, if nothing else is said.
struct Route {
  std::string node_name;                           // of the autograd node
  std::string forward_name, backward_name;         // of the kernels; no backward where nothing is recorded
  Positions tensors;                               // what the forward kernel takes: tensors, and numbers that change
  std::vector<NumberGuard> number_guards;          // for which of these numbers it is
  bool has_numbers;                                // there are such numbers
  bool is_random;                                  // it draws random numbers
  int64_t outputs;                                 // the number of results that the caller gets
  Structure result;                                // in which structure,
  std::vector<Member> members;                     // and what stands in it
  Orders orders;                                   // in which order tensors lie; empty: as written
  bool row_major, whole_memory;                    // takes only contiguous tensors, and all of their memory
  bool no_tensor_twice;                            // takes only calls in which no tensor is given twice
  bool no_gradients;                               // takes only calls in which no tensor requires a gradient
  Positions kept_arguments, kept_results;          // what is saved: arguments, then results of the forward kernel
  Positions checked;                               // arguments among them that may be changed in place
  Positions reads;                                 // of these, what the backward kernel reads
  std::vector<std::pair<int64_t, int64_t>> sizes;  // sizes that it gets: (argument, dimension)
  Positions tangents;                              // outputs that have a cotangent
  std::vector<Positions> freed;                    // for each tangent, those whose pass frees what its own needs
  std::vector<Fed> feeding;                        // outputs that are computed from others; these come first
  Positions gradients;                             // for each result of the backward kernel, the argument it belongs to
  std::vector<Positions> spared;                   // if none of one of these groups is needed, Python does less work
  int64_t number;                                  // its key in Python
  std::vector<Pass> passes;                        // backward passes that are known, besides that of all

  std::optional<c10::OperatorHandle> forward, backward;

  // The kernels are registered at the dispatcher: their libraries were loaded before.
  explicit Route(const py::kwargs& facts) : result(facts["result"]) {
    read(facts, "node_name", node_name);
    read(facts, "forward", forward_name);
    read(facts, "backward", backward_name);
    read(facts, "tensors", tensors);
    for (py::handle guard : facts["number_guards"]) {
      const auto of = py::reinterpret_borrow<py::tuple>(guard);
      number_guards.emplace_back(of[0].cast<size_t>(), of[1].cast<int>(), of[2].cast<std::string>(), of[3]);
    }
    read(facts, "has_numbers", has_numbers);
    read(facts, "is_random", is_random);
    read(facts, "outputs", outputs);
    for (py::handle member : facts["members"]) members.emplace_back(member);
    read(facts, "orders", orders);
    read(facts, "row_major", row_major);
    read(facts, "whole_memory", whole_memory);
    read(facts, "no_tensor_twice", no_tensor_twice);
    read(facts, "no_gradients", no_gradients);
    read(facts, "kept_arguments", kept_arguments);
    read(facts, "kept_results", kept_results);
    read(facts, "checked", checked);
    read(facts, "reads", reads);
    read(facts, "sizes", sizes);
    read(facts, "tangents", tangents);
    read(facts, "freed", freed);
    for (py::handle fed : facts["feeding"]) {
      auto [output, from] = fed.cast<std::pair<int64_t, Positions>>();
      feeding.push_back({output, std::move(from)});
    }
    read(facts, "gradients", gradients);
    read(facts, "spared", spared);
    read(facts, "number", number);
    for (py::handle pass : facts["passes"]) passes.emplace_back(py::reinterpret_borrow<py::tuple>(pass));
    auto& dispatcher = c10::Dispatcher::singleton();
    forward = dispatcher.findSchemaOrThrow(forward_name.c_str(), "");
    if (!backward_name.empty()) backward = dispatcher.findSchemaOrThrow(backward_name.c_str(), "");
  }

 private:
  template <typename Fact>
  static void read(const py::kwargs& facts, const char* name, Fact& fact) {
    fact = facts[name].cast<Fact>();
  }
};

}  // namespace opwright
