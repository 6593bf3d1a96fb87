// An autograd node whose backward pass is an operator: binding/autograd/derived_node.py in C++.
#pragma once

#include <ATen/functorch/DynamicLayer.h>
#include <c10/core/SafePyObject.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "draws.h"
#include "node.h"
#include "objects.h"
#include "served.h"

namespace opwright {

class PulledBack : public KeepingNode {
 public:
  // A call: the operator's transforms; the arguments, with their tensors of this level apart; the positions of the
  // outputs in what was returned; the state of the generator.
  PulledBack(const py::object& transforms, const Objects& arguments, const Arguments& tensors, Positions places,
             std::unique_ptr<const GeneratorState> drawn_from)
      : KeepingNode(torch::autograd::collect_next_edges(tensors)),
        transforms_(owned(transforms)),
        rest_(owned(without_tensors(arguments))),
        places_(std::move(places)),
        drawn_from_(std::move(drawn_from)) {
    for (size_t position = 0; position < arguments.size(); ++position)
      if (is_tensor(arguments[position])) positions_.push_back(static_cast<int64_t>(position));
    for (const at::Tensor& tensor : tensors) kept_.emplace_back(tensor, /*is_output=*/false);
  }

  void add_output(const at::Tensor& output, const NodePointer& self) {
    if (is_differentiable(output)) {
      flowing_.push_back(num_inputs());
      torch::autograd::set_history(output, self);
    } else {
      add_input_metadata(Node::undefined_input());
    }
  }

  std::string name() const override { return "PulledBack"; }

  variable_list apply(variable_list&& cotangents) override {
    variable_list gradients(num_outputs());
    const Positions used = used_of(flowing_, cotangents);
    Positions wanted, edges;
    for (size_t edge = 0; edge < positions_.size(); ++edge) {
      if (!task_should_compute_output(edge)) continue;
      wanted.push_back(positions_[edge]);
      edges.push_back(static_cast<int64_t>(edge));
    }
    if (used.empty() || wanted.empty()) return gradients;
    const Arguments kept = unpack();
    const py::gil_scoped_acquire gil;
    try {
      const py::object found = pull_back(wanted, kept, used, cotangents_of(used, cotangents));
      if (is_tensor(found)) {
        gradients[edges[0]] = tensor_in(found);
      } else {
        const py::sequence members(found);
        for (size_t k = 0; k < edges.size(); ++k) gradients[edges[k]] = tensor_in(py::object(members[k]));
      }
    } catch (py::error_already_set& error) {
      error.restore();
      throw_python_error();
    }
    return gradients;
  }

 private:
  static py::tuple without_tensors(const Objects& arguments) {
    py::tuple rest(arguments.size());
    for (size_t position = 0; position < arguments.size(); ++position)
      rest[position] = is_tensor(arguments[position]) ? py::none() : arguments[position];
    return rest;
  }

  static c10::SafePyObject owned(py::object object) {
    return c10::SafePyObject(object.release().ptr(), getPyInterpreter());
  }

  py::object pull_back(const Positions& wanted, const Arguments& kept, const Positions& used,
                       const Arguments& tangents) const {
    Positions places;
    for (int64_t position : used) places.push_back(places_[position]);
    const py::handle transforms = transforms_.ptr(getPyInterpreter());
    const py::object backward =
        transforms.attr("backward")(tuple_of(wanted), tuple_of(places), tuple_of(used), places_.size());
    Objects arguments;
    for (py::handle given : py::reinterpret_borrow<py::tuple>(rest_.ptr(getPyInterpreter())))
      arguments.push_back(py::reinterpret_borrow<py::object>(given));
    const auto alive = [](const at::Tensor& tensor) { return object_of(at::functorch::unwrapIfDead(tensor)); };
    for (size_t k = 0; k < kept.size(); ++k) arguments[positions_[k]] = alive(kept[k]);
    for (const at::Tensor& tangent : tangents) arguments.push_back(alive(tangent));
    const DrawnAgain draws(drawn_from_.get());
    return serve(backward, arguments).result;
  }

  c10::SafePyObject transforms_;
  c10::SafePyObject rest_;                            // the arguments, None in place of tensors
  Positions positions_;                               // the positions of the tensors among them
  Positions places_;                                  // for each output, its position in what was returned
  Positions flowing_;                                 // the outputs that have cotangents
  std::unique_ptr<const GeneratorState> drawn_from_;  // the generator's state; null if nothing was drawn
};

}  // namespace opwright
