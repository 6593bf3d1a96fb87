// An entry: the calls of one operator as they come, with keywords, defaults and structures, played by the tapes of the
// operators of flat arguments behind it.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "player.h"
#include "signature.h"

namespace opwright {

// It owns no Python object but its tapes; `owner`, a weak reference, holds what it looks at.
class Entry {
 public:
  // Tapes: (structure of the arguments, or None where they are flat; tape). `changed` are the positions of arguments that
  // the operator changes: its tape gives (what it returns, [their new values]).
  Entry(Signature signature, const std::vector<std::pair<py::object, std::shared_ptr<Tape>>>& tapes, Positions changed,
        py::object owner)
      : signature_(std::move(signature)), player_{std::move(changed)}, owner_(std::move(owner)) {
    for (const auto& [structure, tape] : tapes)
      tapes_.emplace_back(structure.is_none() ? std::nullopt : std::optional<Structure>(std::in_place, structure),
                          tape);
  }

  // The results; null if a mode is active or no variant takes these arguments.
  py::object call(PyObject* const* given, Py_ssize_t count, PyObject* keywords) const {
    if (!is_quiet()) return {};
    const py::object owner = owner_of(owner_);
    Bound bound;
    if (!owner || !signature_.bind(given, count, keywords, bound)) return {};
    for (const auto& [structure, tape] : tapes_) {
      Played played;
      if (!structure) {
        if (player_.play(*tape, bound.arguments.data(), bound.arguments.size(), played))
          return player_.results_of(played);
        continue;
      }
      Leaves leaves;
      if (take_apart(*structure, bound, leaves) && player_.play(*tape, leaves.data(), leaves.size(), played))
        return player_.results_of(played);
    }
    return {};
  }

 private:
  // The structure is a tuple of all arguments.
  static bool take_apart(const Structure& structure, const Bound& bound, Leaves& leaves) {
    const auto& members = structure.members();
    if (members.size() != bound.arguments.size()) return false;
    for (size_t k = 0; k < members.size(); ++k)
      if (!members[k].take_apart(bound.arguments[k], leaves)) return false;
    return true;
  }

  Signature signature_;
  std::vector<std::pair<std::optional<Structure>, std::shared_ptr<const Tape>>> tapes_;
  Player player_;
  py::object owner_;
};

}  // namespace opwright
