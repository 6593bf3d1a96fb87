// The autograd node of an operator's results.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "compiled.h"
#include "differentiable.h"
#include "draws.h"
#include "node.h"
#include "passing.h"
#include "quiet.h"
#include "route.h"

namespace opwright {

constexpr size_t most_on_stack = 64;  // of the arguments of an operator, in the dispatcher; kernels with more take lists

// The tensors on the stack as one list, the numbers after them as another.
inline void put_in_lists(torch::jit::Stack& stack) {
  c10::List<at::Tensor> tensors;
  c10::List<int64_t> numbers;
  for (c10::IValue& each : stack) {
    if (each.isTensor())
      tensors.push_back(std::move(each).toTensor());
    else
      numbers.push_back(each.toInt());
  }
  stack.clear();
  stack.emplace_back(std::move(tensors));
  stack.emplace_back(std::move(numbers));
}

// Run a kernel on the stack; it falls through at the autograd key, and nothing is recorded. The key is not excluded: a
// library operation that the kernel calls boxed, with a list of sizes, is understood by the operation's autograd kernel
// and not by the one for the processor, and a failed call takes milliseconds to describe.
inline void run(const c10::OperatorHandle& kernel, torch::jit::Stack& stack) {
  if (stack.size() > most_on_stack) put_in_lists(stack);
  const c10::impl::ExcludeDispatchKeyGuard no_views(c10::DispatchKey::ADInplaceOrView);
  const at::AutoGradMode no_gradients(false);
  kernel.callBoxed(stack);
}

class Derivative : public KeepingNode {
 public:
  // Arguments are undefined in place of constants; `drawn` is where random numbers were drawn from, if they were.
  Derivative(Differentiable differentiate, const Arguments& arguments, Arguments drawn)
      : KeepingNode(torch::autograd::collect_next_edges(arguments)),
        differentiate_(std::move(differentiate)),
        drawn_(std::move(drawn)) {
    if (route().kept_arguments.size() < arguments.size())
      for (const at::Tensor& argument : arguments)
        described_.push_back(argument.defined() ? Described(argument) : Described());
    for (const auto& [argument, dimension] : route().sizes) sizes_.push_back(arguments[argument].size(dimension));
  }

  // Save what the backward kernel reads. Outputs must have their node by now, so that saving them makes no cycle.
  void keep(const Arguments& arguments, const torch::jit::Stack& made) {
    kept_.reserve(route().kept_arguments.size() + route().kept_results.size());
    const Positions& checked = route().checked;
    for (int64_t position : route().kept_arguments) {
      const at::Tensor& argument = arguments[position];
      const bool may_change = std::find(checked.begin(), checked.end(), position) != checked.end();
      kept_.emplace_back(may_change ? argument.variable_data() : argument, false);
    }
    for (int64_t position : route().kept_results)
      kept_.emplace_back(made[position].toTensor(), position < route().outputs);
  }

  std::string name() const override { return route().node_name; }

  variable_list apply(variable_list&& cotangents) override {
    variable_list gradients(num_outputs());
    const Passing before = route().feeding.empty() ? Passing() : before_.take();
    const Positions used = used_of(route().tangents, cotangents);
    if (used.empty()) return gradients;
    const Arguments tangents = cotangents_of(route().tangents, cotangents);
    begin_pass(tangents);
    TORCH_CHECK(before.is_whole(), name(), ": a hook or a retained gradient of an output was registered in the middle of ",
                "a backward pass, when part of its gradient had passed. Hint: register it before the backward pass.");
    if (!before.cut().empty()) {
      const Positions asked = wanted();
      const variable_list found = asked.empty() ? variable_list() : flowing(before.kept, before.cut(), tangents, asked);
      for (size_t k = 0; k < found.size(); ++k) gradients[asked[k]] = found[k];
      return gradients;
    }
    const bool is_last = !is_followed(tangents);
    const bool are_all_used = used.size() == tangents.size();  // the kernel has no zeros: zero times infinity is not zero
    if (is_last && are_all_used && !spares_products() && run_kernel(tangents, gradients)) return gradients;
    const Arguments kept = unpack();
    if (is_last && run_known_pass(used, kept, tangents, gradients)) return gradients;
    differentiate_again(differentiate_, drawn_, kept, described_, tangents, wanted(), gradients);
    return gradients;
  }

  // The gradient of an output passes on. Returns what flows from it to the outputs that it is computed from, undefined
  // where nobody looks: only there it flows on to the arguments by way of this node.
  variable_list flowing_from(const Node& node, const Fed& fed, const at::Tensor& cotangent) {
    Passing alone;
    Passing& passing = is_run(*this) ? before_.now() : alone;
    const Positions at = passing.cut_of(node, fed);
    passing.add(node, fed, at);
    if (at.empty()) return {};
    if (passing.kept.empty()) passing.kept = unpack();
    variable_list cotangents(num_inputs()), gradients(fed.from.size());
    cotangents[fed.output] = cotangent;
    const variable_list found = flowing(passing.kept, at, cotangents_of(route().tangents, cotangents), {});
    for (size_t k = 0, next = 0; next < at.size(); ++k)
      if (fed.from[k] == at[next]) gradients[k] = found[next++];
    return gradients;
  }

  // What other outputs need stays: in eager they have nodes of their own.
  void release_variables() override {
    if (!route().freed.empty()) {
      const std::lock_guard<std::mutex> lock(mutex_);
      passed_ |= std::exchange(passing_, ~uint64_t{0});
      for (size_t k = 0; k < route().freed.size(); ++k)
        if (!(passed_ >> k & 1) && !is_freed(k)) return;
    }
    KeepingNode::release_variables();
  }

  void compiled_args(CompiledNodeArgs& asked) const override {
    asked.collect(differentiate_.identity());
    asked.collect(wanted());
    asked.collect(kept_, /*is_output=*/true);  // or not: saved outputs are unpacked with their node
    asked.collect(described_);
    asked.collect(drawn_);
  }

  variable_list apply_with_saved(const variable_list& cotangents, SwapSavedVariables& saved) override {
    saved.before(kept_);
    saved.before(described_);
    saved.before(drawn_);
    const bool is_traceable = drawn_.empty() && !route().has_numbers;
    variable_list gradients =
        put_into_graph(*this, as_function(), is_traceable, cotangents, saved, unpack(), described_, drawn_);
    saved.after(kept_);
    saved.after(described_);
    saved.after(drawn_);
    return gradients;
  }

 private:
  const Route& route() const { return differentiate_.route(); }

  // Whether the passes so far have freed what the pass of this tangent needs.
  bool is_freed(size_t tangent) const {
    const Positions& others = route().freed[tangent];
    return std::any_of(others.begin(), others.end(), [this](int64_t other) { return passed_ >> other & 1; });
  }

  void begin_pass(const Arguments& tangents) {
    if (route().freed.empty()) return;
    const std::lock_guard<std::mutex> lock(mutex_);
    passing_ = 0;
    for (size_t k = 0; k < tangents.size(); ++k) {
      if (!tangents[k].defined()) continue;
      TORCH_CHECK(!is_freed(k), torch::autograd::ERR_BACKWARD_TWICE);
      passing_ |= uint64_t{1} << k;
    }
  }

  // The arguments whose gradients are asked for.
  Positions wanted() const {
    Positions found;
    for (int64_t position : route().gradients)
      if (task_should_compute_output(position)) found.push_back(position);
    return found;
  }

  // Whether the kernel would compute products for gradients that are not needed.
  bool spares_products() const {
    const auto is_asked_for = [this](int64_t position) { return task_should_compute_output(position); };
    const auto is_spared = [&](const Positions& gradients) {
      return std::none_of(gradients.begin(), gradients.end(), is_asked_for);
    };
    return std::any_of(route().spared.begin(), route().spared.end(), is_spared);
  }

  // Whether this pass is itself differentiated or mapped, which a kernel would hide. In a batch of the vmap before
  // torch.func nothing can be drawn again, but kernels run.
  bool is_followed(const Arguments& tangents) const {
    const auto is_followed = [this](const at::Tensor& t) {
      return drawn_.empty() ? has_tangent(t) : t._fw_grad(/*level=*/0).defined();
    };
    return at::GradMode::is_enabled() || is_transformed() || std::any_of(tangents.begin(), tangents.end(), is_followed);
  }

  // False if it falls through, because an allocation failed.
  bool run_kernel(const Arguments& tangents, variable_list& gradients) {
    torch::jit::Stack stack;
    stack.reserve(route().reads.size() + tangents.size() + sizes_.size());
    for (at::Tensor& read : unpack(route().reads)) stack.emplace_back(std::move(read));
    for (const at::Tensor& tangent : tangents) stack.emplace_back(tangent);
    for (int64_t size : sizes_) stack.emplace_back(size);
    run(*route().backward, stack);
    if (!stack[0].toTensor().defined()) return false;
    for (size_t k = 0; k < stack.size(); ++k) gradients[route().gradients[k]] = std::move(stack[k]).toTensor();
    return true;
  }

  // As an earlier pass like this one was run by Python. False if there was none, or the kernels do not take these tensors.
  bool run_known_pass(const Positions& used, const Arguments& kept, const Arguments& tangents,
                      variable_list& gradients) const {
    if (route().passes.empty() || !drawn_.empty() || !is_quiet()) return false;
    const Positions asked = wanted();
    for (const Pass& pass : route().passes) {
      if (pass.used != used || pass.wanted != asked) continue;
      Arguments given = differentiate_.arguments_of(kept, described_);
      std::copy_if(tangents.begin(), tangents.end(), std::back_inserter(given), [](const auto& t) { return t.defined(); });
      const Arguments intermediates = differentiate_.intermediates_of(kept);
      for (int64_t position : pass.intermediates) given.push_back(intermediates[position]);
      variable_list found;
      const pybind11::gil_scoped_acquire gil;
      const std::shared_ptr<const Runs> tape = pass.tape.lock();
      if (!tape || !tape->run_way(pass.way, given, found)) return false;
      for (size_t k = 0; k < found.size(); ++k) gradients[pass.gradients[k]] = std::move(found[k]);
      return true;
    }
    return false;
  }

  static std::optional<GeneratorState> drawn_from(const Arguments& drawn) {
    return drawn.empty() ? std::nullopt : std::optional(GeneratorState::from(drawn[0]));
  }

  // What flows from the outputs to arguments, or if none are asked for, to the outputs where it is cut.
  variable_list flowing(const Arguments& kept, const Positions& at, const Arguments& tangents, const Positions& wanted) {
    const std::optional<GeneratorState> from = drawn_from(drawn_);
    const DrawnAgain draws(from ? &*from : nullptr);
    return differentiate_.cut(kept, described_, tangents, at, wanted);
  }

  // With the random numbers of the forward pass.
  static void differentiate_again(const Differentiable& differentiate, const Arguments& drawn, const Arguments& kept,
                                  const std::vector<Described>& described, const Arguments& tangents,
                                  const Positions& wanted, variable_list& gradients) {
    const std::optional<GeneratorState> from = drawn_from(drawn);
    const DrawnAgain draws(from ? &*from : nullptr);
    differentiate(kept, described, tangents, wanted, gradients);
  }

  // The backward pass without the node, which may be gone when a graph runs: operators on tensors without data.
  torch::autograd::functional_apply_t as_function() const {
    return [differentiate = differentiate_, wanted = wanted(), count = num_outputs()](
               const variable_list& cotangents, const std::vector<c10::IValue>& besides) {
      Given given(besides);
      const auto kept = given.unpack<Arguments>();
      const auto described = given.unpack<std::vector<Described>>();
      const auto drawn = given.unpack<Arguments>();
      variable_list gradients(count);
      const Positions& outputs = differentiate.route().tangents;
      if (used_of(outputs, cotangents).empty()) return gradients;
      differentiate_again(differentiate, drawn, kept, described, cotangents_of(outputs, cotangents), wanted, gradients);
      return gradients;
    };
  }

  Differentiable differentiate_;
  std::vector<int64_t> sizes_;
  std::vector<Described> described_;  // the arguments; empty if all of them are kept
  // By tangents, of the passes that have freed what they need, and of the one under way; all, if none of ours is.
  uint64_t passed_ = 0, passing_ = ~uint64_t{0};
  PassingByPass before_;
  Arguments drawn_;  // one, or none: where random numbers were drawn from
};

}  // namespace opwright
