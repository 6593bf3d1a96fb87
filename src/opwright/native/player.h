// Plays a tape, and writes what the operator changes.
#pragma once

#include <string_view>

#include "objects.h"
#include "overlap.h"
#include "tape.h"

namespace opwright {

struct Player {
  // Positions of the arguments that the operator changes: its tape gives (what it returns, [their new values]).
  Positions changed;

  // False if no variant takes these arguments. `is_as_traced`: the caller has compared the guards of the tape.
  bool play(const Tape& tape, PyObject* const* leaves, size_t count, Played& played, bool is_as_traced = false) const {
    if (changed.empty()) return tape.play(leaves, count, changed, played, is_as_traced);
    Arguments targets;
    if (!may_change(leaves, count)) return false;
    for (int64_t position : changed) targets.push_back(tensor_in(leaves[position]));
    try {
      if (!tape.play(leaves, count, changed, played, is_as_traced)) return false;
    } catch (const py::error_already_set& error) {
      if (played.route && ends_recomputation(error.type().ptr())) write(targets, played);
      throw;
    } catch (const python_error& error) {  // which may hold it, or still be the one that Python has under way
      if (played.route && ends_recomputation(error.type ? error.type : PyErr_Occurred())) {
        const py::error_scope under_way;
        write(targets, played);
      }
      throw;
    } catch (const std::exception&) {  // nothing has changed yet: Python finds out what it means
      return false;
    }
    write(targets, played);
    return true;
  }

  py::object results_of(Played& played) const {
    const Structure& result = played.route->result;
    return put_together(changed.empty() ? result : result.members()[0], played);
  }

  static py::object put_together(const Structure& result, Played& played) {
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
    return result.put_together(member);
  }

 private:
  // Whether what changes is a plain tensor that nothing else shows, and that torch lets change; binding/serving/mutating.py
  // in C++.
  bool may_change(PyObject* const* leaves, size_t count) const {
    const bool is_recording = at::GradMode::is_enabled();
    for (int64_t position : changed) {
      if (reinterpret_cast<PyObject*>(Py_TYPE(leaves[position])) != THPVariableClass) return false;
      const at::Tensor& target = tensor_in(leaves[position]);
      if (target.layout() != at::kStrided || !(target.is_cpu() || target.is_cuda())) return false;
      if (is_recording && target.requires_grad() && target.is_leaf()) return false;
      if (may_overlap_itself(target)) return false;
      for (size_t other = 0; other < count; ++other)
        if (other != static_cast<size_t>(position) && is_tensor(leaves[other]) &&
            tensor_in(leaves[other]).has_storage() && tensor_in(leaves[other]).is_alias_of(target))
          return false;
    }
    return true;
  }

  // Whether a checkpoint ends its second forward pass, as it does when the last tensor that it needs is saved. By then the
  // kernel has run, and in eager a norm has changed its statistics a second time.
  static bool ends_recomputation(PyObject* type) {
    return type && PyType_Check(type) &&
           std::string_view(reinterpret_cast<PyTypeObject*>(type)->tp_name) == "_StopRecomputationError";
  }

  // Copy the new values, which are the last members of the result, and return in their place what has them now. A member
  // that is no tensor stands for an argument that the call left as it was.
  void write(const Arguments& targets, Played& played) const {
    const py::gil_scoped_release no_gil;
    const auto& members = played.route->members;
    const size_t first = members.size() - targets.size();
    Arguments values(targets.size());
    for (size_t k = 0; k < targets.size(); ++k)
      if (members[first + k].kind == Member::made) values[k] = played.made[members[first + k].position].toTensor();
    for (size_t k = 0; k < targets.size(); ++k) {
      if (!values[k].defined()) continue;
      targets[k].copy_(values[k]);
      played.made[members[first + k].position] = targets[k];
    }
  }
};

}  // namespace opwright
