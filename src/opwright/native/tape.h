// A tape: the calls of one operator of flat arguments on the hot path, without a line of Python. It runs the forward
// kernel of the first variant that takes the arguments and records the node that runs the backward kernel.
#pragma once

#include <ATen/ScalarOps.h>
#include <torch/csrc/autograd/functions/utils.h>

#include <algorithm>
#include <atomic>
#include <bitset>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "guards.h"
#include "quiet.h"
#include "through.h"

namespace opwright {

constexpr size_t most_arguments = 256;
using Mask = std::bitset<most_arguments>;  // a bit for every position

inline Mask mask_of(const Positions& positions) {
  Mask found;
  for (int64_t position : positions) found.set(position);
  return found;
}

// A new reference to what a weak one leads to; null if it is gone.
inline py::object owner_of(const py::object& weak) {
#if PY_VERSION_HEX >= 0x030D0000
  PyObject* owner = nullptr;
  if (PyWeakref_GetRef(weak.ptr(), &owner) < 0) throw py::error_already_set();
  return py::reinterpret_steal<py::object>(owner);
#else
  PyObject* owner = PyWeakref_GET_OBJECT(weak.ptr());
  return owner == Py_None ? py::object() : py::reinterpret_borrow<py::object>(owner);
#endif
}

// The arguments of a call by what they are.
struct Kinds {
  Mask tensors, floats, integers;  // the numbers are those that a kernel is given
  bool operator==(const Kinds& other) const {
    return tensors == other.tensors && floats == other.floats && integers == other.integers;
  }
};

// The routes for calls with the same constants.
struct Way {
  using Routes = std::vector<std::shared_ptr<const Route>>;

  Kinds kinds;
  std::vector<std::pair<size_t, PyObject*>> constants;  // by position; who makes the tape holds them
  std::vector<std::pair<Mask, Routes>> routes;          // by who requires gradients

  bool is_for(const Kinds& given, PyObject* const* leaves) const {
    if (!(given == kinds)) return false;
    for (const auto& [position, expected] : constants)
      if (!are_same(leaves[position], expected)) return false;
    return true;
  }

  const Routes* find(const Mask& mask) const {
    for (const auto& [key, found] : routes)
      if (key == mask) return &found;
    return nullptr;
  }
};

// What a tape has run: the route that took the call, its results, and the arguments, undefined in place of constants.
struct Played {
  const Route* route = nullptr;
  Arguments arguments;
  torch::jit::Stack made;
};

class Tape : public Runs {
 public:
  // A way: positions of tensors, of floats and of ints that kernels are given; constants by position; routes, by the
  // positions of what requires gradients.
  using Given = std::tuple<Positions, Positions, Positions, std::vector<std::pair<size_t, py::object>>,
                           std::vector<std::pair<Positions, std::vector<std::shared_ptr<Route>>>>>;

  // `owner`, a weak reference, differentiates what is recorded, and holds all that stands in ways, routes and varying
  // numbers; `state`, another one, holds what the guards look at.
  Tape(std::vector<Given> ways, const std::vector<std::tuple<size_t, bool, py::tuple>>& varying, size_t arity,
       std::vector<py::object> plain_types, py::object owner, std::shared_ptr<Guards> guards, py::object state)
      : arity_(arity),
        plain_types_(std::move(plain_types)),
        owner_(std::move(owner)),
        guards_(std::move(guards)),
        state_(std::move(state)) {
    if (arity == 0 || arity > most_arguments) throw py::value_error("a tape takes from 1 to 256 arguments");
    for (auto& [tensors, floats, integers, constants, routes] : ways) {
      Way way{{mask_of(tensors), mask_of(floats), mask_of(integers)}, {}, {}};
      for (const auto& [position, value] : constants) way.constants.emplace_back(position, value.ptr());
      for (auto& [positions, found] : routes)
        way.routes.emplace_back(mask_of(positions), Way::Routes(found.begin(), found.end()));
      ways_.push_back(std::move(way));
    }
    for (const auto& [position, is_float, apart] : varying) {
      varying_.push_back({position, is_float, {}});
      for (py::handle value : apart) varying_.back().apart.push_back(value.ptr());
    }
  }

  // Run a call; false if no variant takes these arguments. The operator changes some of them afterwards.
  bool play(PyObject* const* leaves, size_t count, const Positions& changed, Played& played,
            bool is_known_as_traced = false) const {
    if (count != arity_) return false;
    const py::object owner = owner_of(owner_);
    if (!owner || is_replaced_ || !(is_known_as_traced || is_as_traced()))
      return false;  // another tape is there by now, or something has changed
    Kinds kinds;
    Mask mask;
    Arguments& arguments = played.arguments;
    arguments.assign(arity_, at::Tensor());
    for (size_t k = 0; k < arity_; ++k) {
      if (!is_plain(leaves[k])) continue;
      kinds.tensors.set(k);
      arguments[k] = THPVariable_Unpack(leaves[k]);
      if (has_tangent(arguments[k])) return false;
      if (arguments[k].requires_grad()) mask.set(k);
    }
    if (!at::GradMode::is_enabled()) mask.reset();
    Numbers numbers;
    take_numbers(leaves, kinds, arguments, numbers);
    const Way::Routes* routes = nullptr;
    for (const Way& way : ways_)
      if (way.is_for(kinds, leaves) && (routes = way.find(mask))) break;
    if (!routes) return false;
    const bool is_recorded = mask.any();
    Differentiable::Operator differentiate;
    if (is_recorded) differentiate = std::make_shared<c10::SafePyObject>(owner.inc_ref().ptr(), getPyInterpreter());
    const py::gil_scoped_release no_gil;
    for (const auto& [position, number] : numbers)
      arguments[position] = at::detail::scalar_tensor_static(number, number.type(), at::kCPU);
    for (const auto& route : *routes) {
      if (!takes(*route, arguments, numbers)) continue;
      Arguments drawn;
      if (is_recorded && route->is_random) drawn.push_back(GeneratorState::bytes_now());
      if (!run_forward(*route, arguments, played.made)) continue;
      if (is_recorded) keep_old_values(*route, changed, arguments);
      played.route = route.get();
      if (is_recorded) attach(route, differentiate, arguments, std::move(drawn), played.made);
      return true;
    }
    return false;
  }

  // Run nothing from now on: there is another tape, which knows more.
  void replace() { is_replaced_ = true; }

  // The way of calls like this one; -1 if there is none, or one with numbers that change.
  int64_t way_of(const std::vector<py::object>& arguments) const {
    if (arguments.size() != arity_) return -1;
    Kinds kinds;
    std::vector<PyObject*> leaves;
    for (const py::object& argument : arguments) {
      if (is_plain(argument.ptr())) kinds.tensors.set(leaves.size());
      leaves.push_back(argument.ptr());
    }
    const auto found = std::find_if(ways_.begin(), ways_.end(), [&](const Way& w) { return w.is_for(kinds, leaves.data()); });
    return found == ways_.end() ? -1 : found - ways_.begin();
  }

  bool run_way(size_t way, Arguments& arguments, variable_list& results) const override {
    const py::object owner = owner_of(owner_);
    const Way::Routes* const routes = owner && !is_replaced_ && is_as_traced() ? ways_[way].find(Mask()) : nullptr;
    if (!routes) return false;
    const py::gil_scoped_release no_gil;
    const auto is_special = [](const at::Tensor& tensor) {
      return tensor.defined() && (tensor.unsafeGetTensorImpl()->is_python_dispatch() || has_tangent(tensor));
    };
    if (std::any_of(arguments.begin(), arguments.end(), is_special)) return false;
    torch::jit::Stack made;
    for (const auto& route : *routes) {
      const auto is_constant = [](const Member& member) { return member.kind == Member::constant; };
      if (std::any_of(route->members.begin(), route->members.end(), is_constant)) continue;
      if (!takes(*route, arguments, {}) || !run_forward(*route, arguments, made)) continue;
      for (const Member& member : route->members)
        results.push_back(member.kind == Member::given ? arguments[member.position] : made[member.position].toTensor());
      return true;
    }
    return false;
  }

 private:
  using Numbers = c10::SmallVector<std::pair<size_t, c10::Scalar>, 4>;

  bool is_plain(PyObject* argument) const {
    for (const py::object& type : plain_types_)
      if (reinterpret_cast<PyObject*>(Py_TYPE(argument)) == type.ptr()) return true;
    return false;
  }

  // Whether what the function reads outside of its arguments is as it was when it was traced.
  bool is_as_traced() const {
    if (!guards_) return true;
    const py::object state = owner_of(state_);
    return state && guards_->hold();
  }

  // The numbers that kernels are given at run time: on the processor, since a GPU would be waited for.
  void take_numbers(PyObject* const* leaves, Kinds& kinds, const Arguments& arguments, Numbers& numbers) const {
    for (const Varying& varying : varying_) {
      const auto number = varying.given(leaves[varying.position]);
      if (!number) continue;
      numbers.emplace_back(varying.position, *number);
      (varying.is_float ? kinds.floats : kinds.integers).set(varying.position);
    }
    const auto is_elsewhere = [](const at::Tensor& t) { return t.defined() && !t.is_cpu(); };
    if (numbers.empty() || std::none_of(arguments.begin(), arguments.end(), is_elsewhere)) return;
    numbers.clear();
    kinds.floats.reset();
    kinds.integers.reset();
  }

  static bool takes(const Route& route, const Arguments& arguments, const Numbers& numbers) {
    if (!lie_in(arguments, route.orders)) return false;
    if (route.row_major && !lie_row_by_row(arguments, route.whole_memory)) return false;
    if (route.no_tensor_twice && has_one_twice(arguments)) return false;
    if (route.no_gradients && std::any_of(arguments.begin(), arguments.end(), requires_grad)) return false;
    for (const NumberGuard& guard : route.number_guards)
      for (const auto& [position, number] : numbers)
        if (position == guard.position && !guard.holds(number)) return false;
    for (const Member& member : route.members)  // `x.contiguous()` is `x` only where it was so in the trace
      if (member.kind == Member::given && !arguments[member.position].is_contiguous()) return false;
    return true;
  }

  static bool requires_grad(const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); }

  static bool has_one_twice(const Arguments& arguments) {
    for (size_t k = 1; k < arguments.size(); ++k)
      if (arguments[k].defined() && std::any_of(arguments.begin(), arguments.begin() + k,
                                                [&](const at::Tensor& other) { return other.is_same(arguments[k]); }))
        return true;
    return false;
  }

  static bool lie_row_by_row(const Arguments& arguments, bool whole_memory) {
    return std::all_of(arguments.begin(), arguments.end(), [whole_memory](const at::Tensor& t) {
      if (!t.defined()) return true;
      return t.is_contiguous() && (!whole_memory || (t.storage_offset() == 0 && t.storage().nbytes() == t.nbytes()));
    });
  }

  // Outputs, then intermediates; false if the variant declines.
  static bool run_forward(const Route& route, const Arguments& arguments, torch::jit::Stack& made) {
    made.clear();
    for (int64_t position : route.tensors) made.emplace_back(arguments[position]);
    run(*route.forward, made);
    return made[0].toTensor().defined();
  }

  // Copies of what changes, with the same history, where the backward pass reads the old values.
  static void keep_old_values(const Route& route, const Positions& changed, Arguments& arguments) {
    const auto& kept = route.kept_arguments;
    const Member* value = route.members.data() + route.members.size() - changed.size();
    for (int64_t position : changed) {
      if (value++->kind != Member::made) continue;  // the call leaves it as it is
      if (std::find(kept.begin(), kept.end(), position) == kept.end()) continue;
      const at::Tensor changing = arguments[position];
      {
        const at::AutoDispatchBelowADInplaceOrView below_autograd;
        arguments[position] = changing.clone();
      }
      if (changing.requires_grad())
        torch::autograd::impl::set_gradient_edge(arguments[position], torch::autograd::impl::gradient_edge(changing));
    }
  }

  static void attach(const std::shared_ptr<const Route>& route, const Differentiable::Operator& differentiate,
                     const Arguments& arguments, Arguments drawn, torch::jit::Stack& made) {
    const auto node = new_node<Derivative>(Differentiable(route, differentiate), arguments, std::move(drawn));
    for (int64_t position = 0; position < route->outputs; ++position) {
      const bool differentiable =
          std::find(route->tangents.begin(), route->tangents.end(), position) != route->tangents.end();
      if (differentiable)
        torch::autograd::set_history(made[position].toTensor(), node);
      else
        node->add_input_metadata(Node::undefined_input());
    }
    static_cast<Derivative&>(*node).keep(arguments, made);
    if (!route->feeding.empty()) pass_through(*route, node, made);
  }

  std::vector<Way> ways_;
  std::vector<Varying> varying_;
  size_t arity_;
  std::vector<py::object> plain_types_;
  py::object owner_;  // nodes hold it for as long as they live
  std::shared_ptr<Guards> guards_;
  py::object state_;
  std::atomic<bool> is_replaced_{false};
};

}  // namespace opwright
