// Guards: values that a function reads from outside its arguments, compared with what they were when it was traced. What
// tracing/outside/guard.py says in Python, from the same numbers.
#pragma once

#include <c10/core/DefaultDtype.h>
#include <torch/csrc/autograd/python_variable.h>

#include <memory>

#include "guard.h"
#include "recorder.h"
#include "slots.h"

namespace opwright {

// It owns nothing, because Python's garbage collector could not see its references. The state in
// binding/variants/states.py owns the function, names and values, and callers hold that state.
class Guards {
 public:
  // spec: (fetch, key, check, expected, inner specs), for the function itself; `slots` is how many there are. Nothing holds
  // under another default dtype than the one given.
  Guards(const py::tuple& spec, py::handle function, py::handle absent, py::handle ask, size_t slots,
         at::ScalarType default_dtype)
      : root_(Guard::read(spec)),
        function_(function.ptr()),
        absent_(absent.ptr()),
        ask_(ask.ptr()),
        slots_(slots),
        default_dtype_(default_dtype) {}

  size_t slots() const { return slots_; }

  // For the function itself.
  bool hold() {
    Slots found(slots_);
    return hold(found);
  }

  // The values in slots, or None if a guard fails.
  py::object found() {
    Slots slots(slots_);
    if (!hold(slots)) return py::none();
    py::list values;
    for (size_t slot = 0; slot < slots_; ++slot) values.append(py::reinterpret_borrow<py::object>(slots[slot]));
    return values;
  }

  // By the words of memory that the last comparison looked at, if none has changed; else one by one.
  bool hold(Slots& found) {
    if (c10::get_default_dtype_as_scalartype() != default_dtype_) return false;
    if (const std::shared_ptr<const Trail> trail = trail_; trail && trail->is_unchanged()) {
      pace_.succeeded();
      return still_hold(*trail, found);
    }
    trail_.reset();
    if (!all_hold(root_, function_, found)) return false;
    if (!are_distinct_) are_distinct_ = found.are_distinct();
    if (are_distinct_ && pace_.is_due()) trail_ = Recorder(absent_, slots_).recorded(root_, function_);
    return are_distinct_;
  }

  // How many words of memory the next comparison looks at, and how many guards it compares one by one.
  std::pair<size_t, size_t> counts() const {
    return trail_ ? std::make_pair(trail_->words.size(), trail_->live.size()) : std::make_pair(size_t{0}, size_t{1});
  }

 private:
  // The guards that no words of memory can stand for; what they look at was as it was a moment ago.
  bool still_hold(const Trail& trail, Slots& found) {
    trail.fill(found);
    if (trail.live.empty()) return true;
    c10::SmallVector<py::object, 16> held;  // a comparison may let other threads run
    for (const auto& [guard, holder] : trail.live) held.push_back(py::reinterpret_borrow<py::object>(holder));
    for (const auto& [guard, holder] : trail.live)
      if (!holds(*guard, holder, found)) return false;
    if (!are_distinct_) are_distinct_ = found.are_distinct();
    return are_distinct_;
  }

  bool holds(Guard& guard, PyObject* holder, Slots& slots) {
    PyObject* const found = guard.at_hand(holder);
    if (found == guard.expected && guard.check <= Guard::identity)
      return all_hold(guard, found, slots);  // its owner keeps it alive
    // Held, because a comparison may let other threads run, which may remove it.
    const py::object held = found ? py::reinterpret_borrow<py::object>(found) : fetched(guard, holder);
    PyObject* const value = held.ptr();
    if (!value) {
      forget_error();
      return guard.expected == absent_;
    }
    if (value == absent_) return guard.expected == absent_;
    if (guard.check == Guard::in_slot && !fills_slot(guard, value, slots)) return false;
    return passes(guard, value) && all_hold(guard, value, slots);
  }

  // Whether all guards in a value hold. Guards that its version settles are skipped while the version stays.
  bool all_hold(Guard& guard, PyObject* value, Slots& slots) {
    const Version before = guard.may_settle ? version_of(value) : Version();
    const bool is_seen = before.is_known() && before == guard.version;
    const size_t count = is_seen && guard.are_leaves_settled ? guard.leaves_from : guard.inner.size();
    for (size_t k = 0; k < count; ++k) {
      Guard& inner = guard.inner[k];
      if (is_seen && inner.is_settled ? !still_holds(inner, slots)
                                      : !inner.is_at_hand(value) && !holds(inner, value, slots))
        return false;
    }
    if (before.is_known() && !is_seen) settle(guard, value, before);
    return true;
  }

  // A guard that is settled: its value is as it was.
  bool still_holds(Guard& guard, Slots& slots) {
    return guard.check == Guard::in_slot ? slots.put(guard.slot, guard.last) : all_hold(guard, guard.expected, slots);
  }

  bool fills_slot(Guard& guard, PyObject* value, Slots& slots) {
    remember(guard, value);
    return slots.put(guard.slot, value);
  }

  // The same values as at the last call are as distinct as they were then.
  void remember(Guard& guard, PyObject* value) {
    are_distinct_ = are_distinct_ && guard.last == value;
    guard.last = value;
  }

  // A comparison may run code, also of other threads: the result belongs to a version only if that is unchanged
  // afterwards.
  void settle(Guard& guard, PyObject* value, const Version& before) {
    for (Guard& inner : guard.inner) {
      inner.is_settled = inner.is_settled_by(value);
      if (inner.is_settled && inner.check == Guard::in_slot) remember(inner, PyDict_GetItemWithError(value, inner.key));
    }
    const auto is_settled = [](const Guard& inner) { return inner.is_settled; };
    const auto leaves = guard.inner.begin() + static_cast<std::ptrdiff_t>(guard.leaves_from);
    guard.are_leaves_settled = std::all_of(leaves, guard.inner.end(), is_settled);
    guard.version = version_of(value) == before ? before : Version();
  }

  static py::object own(PyObject* made) { return py::reinterpret_steal<py::object>(made); }

  // A value that must be computed; null, with or without an error, if there is none.
  py::object fetched(const Guard& guard, PyObject* holder) const {
    switch (guard.fetch) {
      case Guard::item:
        return PyDict_Check(holder) ? py::object() : own(PyObject_GetItem(holder, guard.key));
      case Guard::index:
        return own(PySequence_GetItem(holder, guard.position));
      case Guard::keys:
        return keys_of(holder);
      case Guard::cell: {
        PyObject* cells = PyFunction_Check(holder) ? PyFunction_GET_CLOSURE(holder) : nullptr;
        if (!cells || guard.position >= PyTuple_GET_SIZE(cells)) return {};
        return own(PyCell_Get(PyTuple_GET_ITEM(cells, guard.position)));
      }
      case Guard::attribute:
        return own(attribute_of(holder, guard.key));
      case Guard::method: {
        py::object found = own(attribute_of(holder, guard.key));
        const bool is_bound = found && PyMethod_Check(found.ptr());
        return is_bound ? py::reinterpret_borrow<py::object>(PyMethod_GET_FUNCTION(found.ptr())) : found;
      }
      case Guard::call:
        return own(PyObject_CallNoArgs(holder));
      case Guard::context: {
        PyObject* found = nullptr;
        return PyContextVar_Get(holder, absent_, &found) < 0 ? py::object() : own(found);
      }
      case Guard::member:
        return own(PyObject_GenericGetAttr(holder, guard.key));
      case Guard::via:
      case Guard::of_class:
        return guard.is_type_of() ? py::object() : own(PyObject_CallOneArg(guard.key, holder));
    }
    return {};
  }

  // The keys of a dictionary in their order, without calling the user's `__iter__`.
  static py::object keys_of(PyObject* holder) {
    if (!PyDict_Check(holder)) return own(PySequence_Tuple(holder));
    auto* const kind = PyODict_Check(holder) ? &PyODict_Type : &PyDict_Type;  // which has an order of its own
    const py::object keys = own(kind->tp_iter(holder));
    return keys ? own(PySequence_Tuple(keys.ptr())) : keys;
  }

  // The stored attribute, without calling the user's `__getattribute__` or `__getattr__`.
  static PyObject* attribute_of(PyObject* holder, PyObject* name) {
    return PyType_Check(holder) ? PyType_Type.tp_getattro(holder, name) : PyObject_GenericGetAttr(holder, name);
  }

  bool passes(const Guard& guard, PyObject* value) const {
    switch (guard.check) {
      case Guard::nothing:
        return guard.expected != absent_;
      case Guard::plain:
        return are_same(value, guard.expected, ask_);
      case Guard::identity:
        return value == guard.expected;
      case Guard::type:
        return reinterpret_cast<PyObject*>(Py_TYPE(value)) == guard.expected;
      case Guard::length:
        return reinterpret_cast<PyObject*>(Py_TYPE(value)) == PyTuple_GET_ITEM(guard.expected, 0) &&
               size_of(value) == PyLong_AsSsize_t(PyTuple_GET_ITEM(guard.expected, 1));
      case Guard::in_slot:
        return guard.expected == Py_None ? THPVariable_Check(value)
                                         : reinterpret_cast<PyObject*>(Py_TYPE(value)) == guard.expected;
    }
    return false;
  }

  static Py_ssize_t size_of(PyObject* value) {
    if (PyList_Check(value) || PyTuple_Check(value)) return Py_SIZE(value);  // whatever `__len__` of a subclass says
    const Py_ssize_t size = PyObject_Size(value);
    if (size < 0) forget_error();
    return size;
  }

  Guard root_;
  PyObject *function_, *absent_, *ask_;
  size_t slots_;
  at::ScalarType default_dtype_;
  bool are_distinct_ = false;  // the last values in slots are
  std::shared_ptr<const Trail> trail_;
  Pace pace_;
};

}  // namespace opwright
