// An entry: the calls of one operator as they come, with keywords, defaults and structures, played by the tapes of the
// operators of flat arguments behind it, or left to the function.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "guards.h"
#include "left.h"
#include "player.h"
#include "signature.h"

namespace opwright {

// It owns no Python object but its tapes and guards; `owner`, a weak reference, holds what they look at.
class Entry {
 public:
  // (structure of the arguments, or None where they are flat; tape, or null; calls left to the function, or null; guards)
  using Given = std::tuple<py::object, std::shared_ptr<Tape>, std::shared_ptr<LeftCalls>, std::shared_ptr<Guards>>;

  // `changed` are the positions of arguments that the operator changes: its tape gives (what it returns, [their new
  // values]). `left` is what a call returns that is left to the function.
  Entry(Signature signature, const std::vector<Given>& given, Positions changed, py::handle left, py::object owner)
      : signature_(std::move(signature)), player_{std::move(changed)}, left_(left.ptr()), owner_(std::move(owner)) {
    for (const auto& [structure, tape, left_calls, guards] : given)
      ways_.push_back({structure.is_none() ? std::nullopt : std::optional<Structure>(std::in_place, structure), tape,
                       left_calls, guards});
  }

  // The results; `left`; or null if a mode is active or no variant takes these arguments.
  py::object call(PyObject* const* given, Py_ssize_t count, PyObject* keywords) const {
    if (!is_quiet()) return {};
    const py::object owner = owner_of(owner_);
    Bound bound;
    if (!owner || !signature_.bind(given, count, keywords, bound)) return {};
    for (const Way& way : ways_) {
      if (!way.structure) {
        if (py::object results = run(way, bound.arguments.data(), bound.arguments.size())) return results;
        continue;
      }
      Leaves leaves;
      if (!take_apart(*way.structure, bound, leaves)) continue;
      if (py::object results = run(way, leaves.data(), leaves.size())) return results;
    }
    return {};
  }

 private:
  struct Way {
    std::optional<Structure> structure;
    std::shared_ptr<const Tape> tape;
    std::shared_ptr<const LeftCalls> left;
    std::shared_ptr<Guards> guards;
  };

  py::object run(const Way& way, PyObject* const* leaves, size_t count) const {
    if (way.left && way.left->has(leaves, count) && way.guards->hold())
      return py::reinterpret_borrow<py::object>(left_);
    Played played;
    return way.tape && player_.play(*way.tape, leaves, count, played) ? player_.results_of(played) : py::object();
  }

  // The structure is a tuple of all arguments.
  static bool take_apart(const Structure& structure, const Bound& bound, Leaves& leaves) {
    const auto& members = structure.members();
    if (members.size() != bound.arguments.size()) return false;
    for (size_t k = 0; k < members.size(); ++k)
      if (!members[k].take_apart(bound.arguments[k], leaves)) return false;
    return true;
  }

  Signature signature_;
  std::vector<Way> ways_;
  Player player_;
  PyObject* left_;
  py::object owner_;
};

}  // namespace opwright
