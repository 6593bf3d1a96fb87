// The backward pass of a call as an operator of its own, in Python: what runs under `create_graph=True`.
#pragma once

#include <c10/core/SafePyObject.h>
#include <pybind11/stl.h>
#include <torch/csrc/PyInterpreter.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "node.h"
#include "objects.h"
#include "route.h"

namespace opwright {

class Differentiable {
 public:
  // (route, arguments, intermediates, cotangents, wanted) -> gradients; None for a cotangent of an unused output
  using Operator = std::shared_ptr<c10::SafePyObject>;

  Differentiable(std::shared_ptr<const Route> route, Operator call)
      : route_(std::move(route)), call_(std::move(call)) {}

  const Route& route() const { return *route_; }

  // A key for the operator and variant, unique while it, or a copy, lives.
  std::pair<uint64_t, uint64_t> identity() const {
    return {reinterpret_cast<uint64_t>(route_.get()), reinterpret_cast<uint64_t>(call_->ptr(getPyInterpreter()))};
  }

  // Put the wanted gradients in their positions. `described` are all arguments, or none if all of them are saved.
  void operator()(const Arguments& kept, const std::vector<Described>& described, const Arguments& tangents,
                  const Positions& wanted, variable_list& gradients) const {
    if (wanted.empty()) return;
    const pybind11::gil_scoped_acquire gil;
    const auto found = pybind11::reinterpret_steal<pybind11::object>(PyObject_CallFunctionObjArgs(
        call_->ptr(getPyInterpreter()), pybind11::cast(route_->number).ptr(),
        tuple_of(arguments_of(kept, described)).ptr(), tuple_of(intermediates_of(kept)).ptr(), tuple_of(tangents).ptr(),
        pybind11::cast(wanted).ptr(), nullptr));
    const variable_list results = results_in(found);
    for (size_t k = 0; k < wanted.size(); ++k) gradients[wanted[k]] = results[k];
  }

  // The gradients of the wanted arguments, or if none are wanted, of the outputs at which the flow from others is cut.
  variable_list cut(const Arguments& kept, const std::vector<Described>& described, const Arguments& tangents,
                    const Positions& at, const Positions& wanted) const {
    const pybind11::gil_scoped_acquire gil;
    return results_in(pybind11::reinterpret_steal<pybind11::object>(PyObject_CallMethodObjArgs(
        call_->ptr(getPyInterpreter()), pybind11::str("cut").ptr(), pybind11::cast(route_->number).ptr(),
        tuple_of(arguments_of(kept, described)).ptr(), tuple_of(tangents).ptr(), tuple_of(at).ptr(),
        tuple_of(wanted).ptr(), nullptr)));
  }

  // The arguments of the forward pass, undefined in place of constants, which Python knows; zeros for
  // one that no gradient depends on.
  Arguments arguments_of(const Arguments& kept, const std::vector<Described>& described) const {
    if (described.empty()) return Arguments(kept.begin(), kept.begin() + route_->kept_arguments.size());
    Arguments arguments(described.size());
    for (size_t k = 0; k < route_->kept_arguments.size(); ++k) arguments[route_->kept_arguments[k]] = kept[k];
    for (int64_t position : route_->tensors)
      if (!arguments[position].defined()) arguments[position] = zeros(described[position]);
    return arguments;
  }

  // The saved intermediates, which come last.
  Arguments intermediates_of(const Arguments& kept) const {
    const auto& results = route_->kept_results;
    const auto count =
        std::count_if(results.begin(), results.end(), [&](int64_t position) { return position >= route_->outputs; });
    return Arguments(kept.end() - count, kept.end());
  }

 private:
  // Undefined in place of None.
  static variable_list results_in(const pybind11::object& found) {
    if (!found) throw_python_error();
    variable_list results;
    for (pybind11::handle each : pybind11::sequence(found))
      results.push_back(each.is_none() ? at::Tensor() : THPVariable_Unpack(each.ptr()));
    return results;
  }

  std::shared_ptr<const Route> route_;
  Operator call_;
};

}  // namespace opwright
