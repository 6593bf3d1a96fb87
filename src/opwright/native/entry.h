// An entry: the calls of one operator as they come, with keywords, defaults and structures, played by the tapes of the
// operators of flat arguments behind it.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "objects.h"
#include "signature.h"
#include "structure.h"
#include "tape.h"

namespace opwright {

// It owns no Python object but its tapes; `owner`, a weak reference, holds what it looks at.
class Entry {
 public:
  // Tapes: (structure of the arguments, or None where they are flat; tape). `changed` are the positions of arguments that
  // the operator changes: its tape gives (what it returns, [their new values]).
  Entry(Signature signature, const std::vector<std::pair<py::object, std::shared_ptr<Tape>>>& tapes, Positions changed,
        py::object owner)
      : signature_(std::move(signature)), changed_(std::move(changed)), owner_(std::move(owner)) {
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
        if (play(*tape, bound.arguments.data(), bound.arguments.size(), played)) return results_of(played);
        continue;
      }
      Leaves leaves;
      if (take_apart(*structure, bound, leaves) && play(*tape, leaves.data(), leaves.size(), played))
        return results_of(played);
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

  bool play(const Tape& tape, PyObject* const* leaves, size_t count, Played& played) const {
    if (changed_.empty()) return tape.play(leaves, count, changed_, played);
    Arguments targets;
    if (!may_change(leaves, count)) return false;
    for (int64_t position : changed_) targets.push_back(tensor_in(leaves[position]));
    try {
      if (!tape.play(leaves, count, changed_, played)) return false;
    } catch (const py::error_already_set&) {
      throw;
    } catch (const python_error&) {
      throw;
    } catch (const std::exception&) {  // nothing has changed yet: Python finds out what it means
      return false;
    }
    change(targets, played);
    return true;
  }

  // Whether what changes is a plain tensor that nothing else shows, and that torch lets change; binding/serving/mutating.py
  // in C++.
  bool may_change(PyObject* const* leaves, size_t count) const {
    const bool is_recording = at::GradMode::is_enabled();
    for (int64_t position : changed_) {
      if (reinterpret_cast<PyObject*>(Py_TYPE(leaves[position])) != THPVariableClass) return false;
      const at::Tensor& target = tensor_in(leaves[position]);
      if (target.layout() != at::kStrided || !(target.is_cpu() || target.is_cuda())) return false;
      if (is_recording && target.requires_grad() && target.is_leaf()) return false;
      const auto strides = target.strides();
      if (std::find(strides.begin(), strides.end(), 0) != strides.end()) return false;
      for (size_t other = 0; other < count; ++other)
        if (other != static_cast<size_t>(position) && is_tensor(leaves[other]) &&
            tensor_in(leaves[other]).has_storage() && tensor_in(leaves[other]).is_alias_of(target))
          return false;
    }
    return true;
  }

  // Copy the new values, which are the last members of the result, and return in their place what has them now.
  void change(const Arguments& targets, Played& played) const {
    const py::gil_scoped_release no_gil;
    const auto& members = played.route->members;
    const size_t first = members.size() - targets.size();
    Arguments values;
    for (size_t k = 0; k < targets.size(); ++k) values.push_back(played.made[members[first + k].position].toTensor());
    for (size_t k = 0; k < targets.size(); ++k) {
      targets[k].copy_(values[k]);
      played.made[members[first + k].position] = targets[k];
    }
  }

  py::object results_of(Played& played) const {
    size_t next = 0;
    const auto member = [&] {
      const Member& found = played.route->members[next++];
      switch (found.kind) {
        case Member::made:
          return object_of(played.made[found.position].toTensor());
        case Member::given:
          return object_of(played.arguments[found.position]);
        default:
          return py::reinterpret_borrow<py::object>(found.value);
      }
    };
    const Structure& result = played.route->result;
    return (changed_.empty() ? result : result.members()[0]).put_together(member);
  }

  Signature signature_;
  std::vector<std::pair<std::optional<Structure>, std::shared_ptr<const Tape>>> tapes_;
  Positions changed_;
  py::object owner_;
};

}  // namespace opwright
