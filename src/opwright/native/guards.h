// Guards: values that a function reads from outside its arguments, compared with what they were when it was traced. What
// tracing/outside/guard.py says in Python, from the same numbers.
#pragma once

#include <c10/util/SmallVector.h>
#include <pybind11/pybind11.h>
#include <torch/csrc/autograd/python_variable.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "sameness.h"
#include "version.h"

namespace opwright {

namespace py = pybind11;

// The values that guards found in slots, such as the tensors of a module; it holds them.
class Slots {
 public:
  explicit Slots(size_t count) : values_(count, nullptr) {}
  Slots(const Slots&) = delete;
  Slots& operator=(const Slots&) = delete;
  ~Slots() {
    for (PyObject* value : values_) Py_XDECREF(value);
  }

  PyObject* operator[](size_t slot) const { return values_[slot]; }

  // False if another value is in the slot.
  bool put(size_t slot, PyObject* value) {
    if (values_[slot]) return values_[slot] == value;
    values_[slot] = Py_NewRef(value);
    return true;
  }

  // Whether no value is in two slots.
  bool are_distinct() const {
    auto sorted = values_;
    std::sort(sorted.begin(), sorted.end(), std::less<PyObject*>());
    return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  }

 private:
  c10::SmallVector<PyObject*, 16> values_;
};

// It owns nothing, because Python's garbage collector could not see its references. The state in
// binding/variants/states.py owns the function, names and values, and callers hold that state.
class Guards {
 public:
  // spec: (fetch, key, check, expected, inner specs), for the function itself; `slots` is how many there are.
  Guards(const py::tuple& spec, py::handle function, py::handle absent, py::handle ask, size_t slots)
      : root_(read(spec)), function_(function.ptr()), absent_(absent.ptr()), ask_(ask.ptr()), slots_(slots) {}

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

  bool hold(Slots& found) {
    if (!all_hold(root_, function_, found)) return false;
    if (!are_distinct_) are_distinct_ = found.are_distinct();
    return are_distinct_;
  }

 private:
  enum Fetch : int {
    self = 0,
    item = 1,
    index = 2,
    keys = 3,
    code = 4,
    globals = 5,
    defaults = 6,
    keyword_defaults = 7,
    cell = 8,
    attribute = 9,
    method = 10,
    call = 11,
    context = 12,
    via = 13,
    known = 14,
    of_class = 15
  };
  enum Check : int { nothing = 0, plain = 1, identity = 2, type = 3, length = 4, in_slot = 5 };

  struct Guard {
    int fetch, check;
    PyObject *key, *expected;
    Py_ssize_t position = 0;
    std::vector<Guard> inner = {};
    bool may_settle = false;   // some guards in it only look up a value by name or key
    bool is_settled = false;   // by the version of the container of the value
    Version version = {};      // of the value when all settled guards in it held
    size_t leaves_from = 0;    // behind this place, guards in it have nothing but a name to look up
    bool are_leaves_settled = false;  // all of these
    bool is_dict = false;      // it fetches `__dict__`
    size_t slot = 0;           // to fill
    PyObject* last = nullptr;  // what was in the slot at the last call; only compared, unless it is settled
  };

  static Guard read(const py::tuple& spec) {
    Guard guard{spec[0].cast<int>(), spec[2].cast<int>(), spec[1].ptr(), spec[3].ptr()};
    if (guard.fetch == index || guard.fetch == cell) guard.position = spec[1].cast<Py_ssize_t>();
    guard.is_dict = guard.fetch == attribute && PyUnicode_CompareWithASCIIString(guard.key, "__dict__") == 0;
    if (guard.check == in_slot) {
      const auto facts = spec[3].cast<py::tuple>();
      guard.expected = facts[0].ptr();
      guard.slot = facts[1].cast<size_t>();
    }
    for (const py::handle& inner : spec[4].cast<py::tuple>())
      guard.inner.push_back(read(py::reinterpret_borrow<py::tuple>(inner)));
    // The order stays as it is from here on: other threads may go through it.
    const auto has_more = [](const Guard& each) {
      return !may_be_settled(each) || each.check == in_slot || !each.inner.empty();
    };
    const auto leaves = std::stable_partition(guard.inner.begin(), guard.inner.end(), has_more);
    guard.leaves_from = static_cast<size_t>(leaves - guard.inner.begin());
    guard.may_settle = std::any_of(guard.inner.begin(), guard.inner.end(), may_be_settled);
    return guard;
  }

  static bool may_be_settled(const Guard& guard) {
    const bool is_named = guard.fetch == item || guard.fetch == keys || guard.fetch == attribute ||
                          guard.fetch == method || guard.fetch == of_class;
    const bool is_tensor = guard.check == in_slot && guard.fetch == item && guard.inner.empty();
    return is_tensor || (is_named && (guard.check == identity || (guard.check < identity && guard.inner.empty())));
  }

  // Whether a guard holds, by a fast check: for the most common ones, of functions' attributes.
  static bool is_at_hand(const Guard& guard, PyObject* holder) {
    if (guard.check > identity || !guard.inner.empty() || !PyFunction_Check(holder)) return false;
    if (guard.fetch == code) return PyFunction_GET_CODE(holder) == guard.expected;
    if (guard.fetch == defaults) return or_none(PyFunction_GET_DEFAULTS(holder)) == guard.expected;
    return guard.fetch == keyword_defaults && or_none(PyFunction_GET_KW_DEFAULTS(holder)) == guard.expected;
  }

  bool holds(Guard& guard, PyObject* holder, Slots& slots) {
    PyObject* const found = at_hand(guard, holder);
    if (found == guard.expected && guard.check <= identity)
      return all_hold(guard, found, slots);  // its owner keeps it alive
    // Held, because a comparison may let other threads run, which may remove it.
    const py::object held = found ? py::reinterpret_borrow<py::object>(found) : fetched(guard, holder);
    PyObject* const value = held.ptr();
    if (!value) {
      forget_error();
      return guard.expected == absent_;
    }
    if (value == absent_) return guard.expected == absent_;
    if (guard.check == in_slot && !fills_slot(guard, value, slots)) return false;
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
                                      : !is_at_hand(inner, value) && !holds(inner, value, slots))
        return false;
    }
    if (before.is_known() && !is_seen) settle(guard, value, before);
    return true;
  }

  // A guard that is settled: its value is as it was.
  bool still_holds(Guard& guard, Slots& slots) {
    return guard.check == in_slot ? slots.put(guard.slot, guard.last) : all_hold(guard, guard.expected, slots);
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
      inner.is_settled = is_settled_by(inner, value);
      if (inner.is_settled && inner.check == in_slot) remember(inner, PyDict_GetItemWithError(value, inner.key));
    }
    const auto is_settled = [](const Guard& inner) { return inner.is_settled; };
    const auto leaves = guard.inner.begin() + static_cast<std::ptrdiff_t>(guard.leaves_from);
    guard.are_leaves_settled = std::all_of(leaves, guard.inner.end(), is_settled);
    guard.version = version_of(value) == before ? before : Version();
  }

  static bool is_settled_by(const Guard& guard, PyObject* holder) {
    if (!may_be_settled(guard)) return false;
    switch (guard.fetch) {
      case item:
        return PyDict_Check(holder);
      case keys:
        return PyDict_CheckExact(holder);
      case attribute:
        return PyType_Check(holder) ? is_own_member(holder, guard.key, guard.expected)
                                    : is_own_attribute(holder, guard.key, guard.expected);
      case method:
        return PyType_Check(holder) && is_own_member(holder, guard.key, guard.expected);
      case of_class:
        return PyType_Check(holder);
    }
    return false;
  }

  // The value if a plain lookup finds it; null, without an error, if it is missing or must be computed.
  static PyObject* at_hand(const Guard& guard, PyObject* holder) {
    switch (guard.fetch) {
      case self:
        return holder;
      case item:
        return PyDict_Check(holder) ? PyDict_GetItemWithError(holder, guard.key) : nullptr;
      case index:
        if (PyList_Check(holder))
          return guard.position < PyList_GET_SIZE(holder) ? PyList_GET_ITEM(holder, guard.position) : nullptr;
        if (PyTuple_Check(holder))
          return guard.position < PyTuple_GET_SIZE(holder) ? PyTuple_GET_ITEM(holder, guard.position) : nullptr;
        return nullptr;
      case keys:
        return has_keys(holder, guard.expected) ? guard.expected : nullptr;
      case code:
        return PyFunction_Check(holder) ? PyFunction_GET_CODE(holder) : nullptr;
      case globals:
        return PyFunction_Check(holder) ? PyFunction_GET_GLOBALS(holder) : nullptr;
      case defaults:
        return PyFunction_Check(holder) ? or_none(PyFunction_GET_DEFAULTS(holder)) : nullptr;
      case keyword_defaults:
        return PyFunction_Check(holder) ? or_none(PyFunction_GET_KW_DEFAULTS(holder)) : nullptr;
      case attribute:
        return guard.is_dict ? dict_of(holder) : nullptr;
      case via:
        return is_type_of(guard) ? reinterpret_cast<PyObject*>(Py_TYPE(holder)) : nullptr;
      case known:
        return guard.key;
    }
    return nullptr;
  }

  // The attributes of an object where it has them in a dictionary of its own.
  static PyObject* dict_of(PyObject* holder) {
    if (PyType_Check(holder)) return nullptr;
    PyObject** const attributes = _PyObject_GetDictPtr(holder);
    return attributes ? *attributes : nullptr;
  }

  static py::object own(PyObject* made) { return py::reinterpret_steal<py::object>(made); }

  // A value that must be computed; null, with or without an error, if there is none.
  py::object fetched(const Guard& guard, PyObject* holder) const {
    switch (guard.fetch) {
      case item:
        return PyDict_Check(holder) ? py::object() : own(PyObject_GetItem(holder, guard.key));
      case index:
        return own(PySequence_GetItem(holder, guard.position));
      case keys:
        return own(PySequence_Tuple(holder));
      case cell: {
        PyObject* cells = PyFunction_Check(holder) ? PyFunction_GET_CLOSURE(holder) : nullptr;
        if (!cells || guard.position >= PyTuple_GET_SIZE(cells)) return {};
        return own(PyCell_Get(PyTuple_GET_ITEM(cells, guard.position)));
      }
      case attribute:
        return own(attribute_of(holder, guard.key));
      case method: {
        py::object found = own(attribute_of(holder, guard.key));
        const bool is_bound = found && PyMethod_Check(found.ptr());
        return is_bound ? py::reinterpret_borrow<py::object>(PyMethod_GET_FUNCTION(found.ptr())) : found;
      }
      case call:
        return own(PyObject_CallNoArgs(holder));
      case context: {
        PyObject* found = nullptr;
        return PyContextVar_Get(holder, absent_, &found) < 0 ? py::object() : own(found);
      }
      case via:
      case of_class:
        return is_type_of(guard) ? py::object() : own(PyObject_CallOneArg(guard.key, holder));
    }
    return {};
  }

  static bool is_type_of(const Guard& guard) { return guard.key == reinterpret_cast<PyObject*>(&PyType_Type); }

  static PyObject* or_none(PyObject* value) { return value ? value : Py_None; }

  // Whether a dictionary has these keys, in this order, by a fast check.
  static bool has_keys(PyObject* holder, PyObject* expected) {
    if (!PyDict_CheckExact(holder) && !PyODict_CheckExact(holder)) return false;
    if (!PyTuple_CheckExact(expected) || PyDict_GET_SIZE(holder) != PyTuple_GET_SIZE(expected)) return false;
    if (!PyDict_CheckExact(holder)) return PyTuple_GET_SIZE(expected) == 0;  // it has an order of its own
    PyObject* key = nullptr;
    for (Py_ssize_t place = 0, k = 0; PyDict_Next(holder, &place, &key, nullptr); ++k)
      if (key != PyTuple_GET_ITEM(expected, k)) return false;
    return true;
  }

  // The stored attribute, without calling the user's `__getattribute__` or `__getattr__`.
  static PyObject* attribute_of(PyObject* holder, PyObject* name) {
    return PyType_Check(holder) ? PyType_Type.tp_getattro(holder, name) : PyObject_GenericGetAttr(holder, name);
  }

  bool passes(const Guard& guard, PyObject* value) const {
    switch (guard.check) {
      case nothing:
        return guard.expected != absent_;
      case plain:
        return are_same(value, guard.expected, ask_);
      case identity:
        return value == guard.expected;
      case type:
        return reinterpret_cast<PyObject*>(Py_TYPE(value)) == guard.expected;
      case length:
        return reinterpret_cast<PyObject*>(Py_TYPE(value)) == PyTuple_GET_ITEM(guard.expected, 0) &&
               size_of(value) == PyLong_AsSsize_t(PyTuple_GET_ITEM(guard.expected, 1));
      case in_slot:
        return guard.expected == Py_None ? THPVariable_Check(value)
                                         : reinterpret_cast<PyObject*>(Py_TYPE(value)) == guard.expected;
    }
    return false;
  }

  static Py_ssize_t size_of(PyObject* value) {
    const Py_ssize_t size = PyObject_Size(value);
    if (size < 0) forget_error();
    return size;
  }

  Guard root_;
  PyObject *function_, *absent_, *ask_;
  size_t slots_;
  bool are_distinct_ = false;  // the last values in slots are
};

}  // namespace opwright
