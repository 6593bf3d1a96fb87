// The calls of a module: the first of its states whose guards hold gives its tensors, and a tape, or nothing, for the call.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "left.h"
#include "player.h"

namespace opwright {

// It owns no Python object but tapes and guards; `owner`, a weak reference, holds what they look at.
class ModuleEntry {
 public:
  // (structure of (args, kwargs), calls left to the module, tape or null, positions of the tensors that change)
  using GivenCall = std::tuple<py::object, std::shared_ptr<LeftCalls>, std::shared_ptr<Tape>, Positions>;
  // (guards, slots of the tensors, whether all calls are left to the module, calls)
  using GivenState = std::tuple<std::shared_ptr<Guards>, std::vector<size_t>, bool, std::vector<GivenCall>>;

  // `left` is what a call returns that is left to the module; so are those in other states if `is_full`.
  ModuleEntry(const std::vector<GivenState>& states, py::handle left, bool is_full, py::object owner)
      : left_(left.ptr()), is_full_(is_full), owner_(std::move(owner)) {
    for (const auto& [guards, tensors, is_left, calls] : states) {
      states_.push_back({guards, tensors, is_left, {}});
      for (const auto& [structure, left_calls, tape, changed] : calls)
        states_.back().calls.push_back({Structure(structure), left_calls, tape, Player{changed}});
    }
  }

  // The results; `left`; or null if a mode is active or the call is not known.
  py::object call(PyObject* args, PyObject* kwargs) const {
    if (!is_quiet()) return {};
    const py::object owner = owner_of(owner_);
    if (!owner) return {};
    for (const State& state : states_) {
      Slots slots(state.guards->slots());
      if (state.guards->hold(slots)) return state.is_left ? left() : call_in(state, slots, args, kwargs);
    }
    return is_full_ ? left() : py::object();
  }

 private:
  struct Call {
    Structure structure;
    std::shared_ptr<const LeftCalls> left;
    std::shared_ptr<const Tape> tape;
    Player player;
  };

  struct State {
    std::shared_ptr<Guards> guards;
    std::vector<size_t> tensors;
    bool is_left;
    std::vector<Call> calls;
  };

  py::object left() const { return py::reinterpret_borrow<py::object>(left_); }

  py::object call_in(const State& state, const Slots& slots, PyObject* args, PyObject* kwargs) const {
    for (const Call& call : state.calls) {
      Leaves given;
      const auto& parts = call.structure.members();
      if (!parts[0].take_apart(args, given) || !parts[1].take_apart(kwargs, given)) continue;
      if (call.left->has(given.data(), given.size())) return left();
      if (!call.tape) return {};
      Borrowed leaves;
      for (size_t slot : state.tensors) leaves.push_back(slots[slot]);
      leaves.append(given.data(), given.data() + given.size());
      Played played;
      if (call.player.play(*call.tape, leaves.data(), leaves.size(), played, true))
        return Player::put_together(played.route->result.members()[0], played);  // behind it, what has changed
    }
    return {};
  }

  std::vector<State> states_;
  PyObject* left_;
  bool is_full_;
  py::object owner_;
};

}  // namespace opwright
