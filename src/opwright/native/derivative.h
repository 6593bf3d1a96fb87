// The node of autograd that stands behind the results of an operator.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/SafePyObject.h>
#include <pybind11/stl.h>
#include <torch/csrc/PyInterpreter.h>
#include <torch/csrc/autograd/functions/utils.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "node.h"
#include "objects.h"
#include "quiet.h"
#include "route.h"

namespace opwright {

// Run a kernel on what is on the stack, below autograd.
inline void run(const c10::OperatorHandle& kernel, torch::jit::Stack& stack) {
  const at::AutoDispatchBelowADInplaceOrView below_autograd;
  const at::AutoGradMode no_gradients(false);
  kernel.callBoxed(stack);
}

class Derivative : public Node {
 public:
  Derivative(std::shared_ptr<const Route> route, std::shared_ptr<c10::SafePyObject> differentiate,
             const Arguments& arguments)
      : Node(torch::autograd::collect_next_edges(arguments)),
        route_(std::move(route)),
        differentiate_(std::move(differentiate)) {
    if (route_->kept_arguments.size() < arguments.size())
      for (const at::Tensor& argument : arguments) described_.emplace_back(argument.sizes().vec(), argument.options());
    for (const auto& [argument, dimension] : route_->sizes) sizes_.push_back(arguments[argument].size(dimension));
  }

  // Keep what the backward kernel reads. Outputs must know their node by now: that they are its own is not to be a cycle.
  void keep(const Arguments& arguments, const torch::jit::Stack& made) {
    kept_.reserve(route_->kept_arguments.size() + route_->kept_results.size());
    for (int64_t position : route_->kept_arguments) kept_.emplace_back(arguments[position], false);
    for (int64_t position : route_->kept_results)
      kept_.emplace_back(made[position].toTensor(), position < route_->outputs);
  }

  std::string name() const override { return route_->node_name; }

  void release_variables() override {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (SavedVariable& saved : kept_) saved.reset_data();
  }

  variable_list apply(variable_list&& incoming) override {
    const Arguments kept = unpack();
    variable_list gradients(num_outputs());
    const Arguments tangents = with_zeros(*this, route_->tangents, incoming);
    if (tangents.empty()) return gradients;
    if (!is_followed(tangents) && run_kernel(kept, tangents, gradients)) return gradients;
    differentiate(kept, tangents, gradients);
    return gradients;
  }

 private:
  // Whether somebody differentiates or maps this pass, which a kernel would hide from him.
  static bool is_followed(const Arguments& tangents) {
    return at::GradMode::is_enabled() || is_transformed() ||
           std::any_of(tangents.begin(), tangents.end(), [](const at::Tensor& t) { return has_tangent(t); });
  }

  Arguments unpack() {
    const std::lock_guard<std::mutex> lock(mutex_);
    Arguments kept;
    kept.reserve(kept_.size());
    for (const SavedVariable& saved : kept_) kept.push_back(saved.unpack(getptr()));
    return kept;
  }

  // False if it declines, because torch refused it an allocation.
  bool run_kernel(const Arguments& kept, const Arguments& tangents, variable_list& gradients) {
    torch::jit::Stack stack;
    stack.reserve(route_->reads.size() + tangents.size() + sizes_.size());
    for (int64_t position : route_->reads) stack.emplace_back(kept[position]);
    for (const at::Tensor& tangent : tangents) stack.emplace_back(tangent);
    for (int64_t size : sizes_) stack.emplace_back(size);
    run(*route_->backward, stack);
    if (!stack[0].toTensor().defined()) return false;
    for (size_t k = 0; k < stack.size(); ++k) gradients[route_->gradients[k]] = std::move(stack[k]).toTensor();
    return true;
  }

  // The backward pass as an operator of its own, in Python, for the gradients that are asked for: what runs under
  // `create_graph=True`.
  void differentiate(const Arguments& kept, const Arguments& tangents, variable_list& gradients) {
    Positions wanted;
    for (int64_t position : route_->gradients)
      if (task_should_compute_output(position)) wanted.push_back(position);
    if (wanted.empty()) return;
    const pybind11::gil_scoped_acquire gil;
    const auto found = pybind11::reinterpret_steal<pybind11::object>(PyObject_CallFunctionObjArgs(
        differentiate_->ptr(getPyInterpreter()), pybind11::cast(route_->number).ptr(),
        tuple_of(arguments_of(kept)).ptr(), tuple_of(intermediates_of(kept)).ptr(), tuple_of(tangents).ptr(),
        pybind11::cast(wanted).ptr(), nullptr));
    if (!found) throw_python_error();
    const pybind11::sequence results(found);
    for (size_t k = 0; k < wanted.size(); ++k) {
      const pybind11::object gradient = results[k];
      if (!gradient.is_none()) gradients[wanted[k]] = THPVariable_Unpack(gradient.ptr());
    }
  }

  // The arguments of the forward pass; one whose values no gradient depends on comes back as zeros.
  Arguments arguments_of(const Arguments& kept) const {
    Arguments arguments;
    if (described_.empty()) return Arguments(kept.begin(), kept.begin() + route_->kept_arguments.size());
    for (const auto& [sizes, options] : described_) arguments.push_back(zeros(sizes, options));
    for (size_t k = 0; k < route_->kept_arguments.size(); ++k) arguments[route_->kept_arguments[k]] = kept[k];
    return arguments;
  }

  // What was kept besides arguments and results, which comes last.
  Arguments intermediates_of(const Arguments& kept) const {
    const auto& results = route_->kept_results;
    const auto count =
        std::count_if(results.begin(), results.end(), [&](int64_t position) { return position >= route_->outputs; });
    return Arguments(kept.end() - count, kept.end());
  }

  std::shared_ptr<const Route> route_;
  std::shared_ptr<c10::SafePyObject> differentiate_;  // (route, arguments, intermediates, incoming, wanted) -> gradients
  std::vector<SavedVariable> kept_;
  std::vector<int64_t> sizes_;
  std::vector<std::pair<std::vector<int64_t>, at::TensorOptions>> described_;  // empty if all arguments are kept
};

}  // namespace opwright
