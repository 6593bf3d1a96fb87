// A guard: one value that a function reads from outside its arguments, how to fetch it, and what it was. The numbers are
// those of tracing/outside/guard.py.
#pragma once

#include <pybind11/pybind11.h>

#include <algorithm>
#include <vector>

#include "sameness.h"
#include "version.h"

namespace opwright {

namespace py = pybind11;

struct Guard {
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
    of_class = 15,
    member = 16
  };
  enum Check : int { nothing = 0, plain = 1, identity = 2, type = 3, length = 4, in_slot = 5 };

  int fetch, check;
  PyObject *key, *expected;
  Py_ssize_t position = 0;
  std::vector<Guard> inner = {};
  bool may_settle = false;          // some guards in it only look up a value by name or key
  bool is_settled = false;          // by the version of the container of the value
  Version version = {};             // of the value when all settled guards in it held
  size_t leaves_from = 0;           // behind this place, guards in it have nothing but a name to look up
  bool are_leaves_settled = false;  // all of these
  bool is_dict = false;             // it fetches `__dict__`
  size_t slot = 0;                  // to fill
  PyObject* last = nullptr;         // what was in the slot at the last call; only compared, unless it is settled

  // spec: (fetch, key, check, expected, inner specs)
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
      return !each.may_be_settled() || each.check == in_slot || !each.inner.empty();
    };
    const auto leaves = std::stable_partition(guard.inner.begin(), guard.inner.end(), has_more);
    guard.leaves_from = static_cast<size_t>(leaves - guard.inner.begin());
    guard.may_settle =
        std::any_of(guard.inner.begin(), guard.inner.end(), [](const Guard& each) { return each.may_be_settled(); });
    return guard;
  }

  // Whether the version of its holder may settle it.
  bool may_be_settled() const {
    const bool is_named = fetch == item || fetch == keys || fetch == attribute || fetch == method || fetch == of_class;
    const bool is_tensor = check == in_slot && fetch == item && inner.empty();
    return is_tensor || (is_named && (check == identity || (check < identity && inner.empty())));
  }

  bool is_settled_by(PyObject* holder) const {
    if (!may_be_settled()) return false;
    switch (fetch) {
      case item:
        return PyDict_Check(holder);
      case keys:
        return PyDict_CheckExact(holder);
      case attribute:
        return PyType_Check(holder) ? is_own_member(holder, key, expected) : is_own_attribute(holder, key, expected);
      case method:
        return PyType_Check(holder) && is_own_member(holder, key, expected);
      case of_class:
        return PyType_Check(holder);
    }
    return false;
  }

  // Whether it holds, by a fast check: for the most common ones, of functions' attributes.
  bool is_at_hand(PyObject* holder) const {
    if (check > identity || !inner.empty() || !PyFunction_Check(holder)) return false;
    if (fetch == code) return PyFunction_GET_CODE(holder) == expected;
    if (fetch == defaults) return or_none(PyFunction_GET_DEFAULTS(holder)) == expected;
    return fetch == keyword_defaults && or_none(PyFunction_GET_KW_DEFAULTS(holder)) == expected;
  }

  // The value if a plain lookup finds it; null, without an error, if it is missing or must be computed.
  PyObject* at_hand(PyObject* holder) const {
    switch (fetch) {
      case self:
        return holder;
      case item:
        return PyDict_Check(holder) ? PyDict_GetItemWithError(holder, key) : nullptr;
      case index:
        if (PyList_Check(holder))
          return position < PyList_GET_SIZE(holder) ? PyList_GET_ITEM(holder, position) : nullptr;
        if (PyTuple_Check(holder))
          return position < PyTuple_GET_SIZE(holder) ? PyTuple_GET_ITEM(holder, position) : nullptr;
        return nullptr;
      case keys:
        return has_keys(holder, expected) ? expected : nullptr;
      case code:
        return PyFunction_Check(holder) ? PyFunction_GET_CODE(holder) : nullptr;
      case globals:
        return PyFunction_Check(holder) ? PyFunction_GET_GLOBALS(holder) : nullptr;
      case defaults:
        return PyFunction_Check(holder) ? or_none(PyFunction_GET_DEFAULTS(holder)) : nullptr;
      case keyword_defaults:
        return PyFunction_Check(holder) ? or_none(PyFunction_GET_KW_DEFAULTS(holder)) : nullptr;
      case attribute:
        return is_dict ? dict_of(holder) : nullptr;
      case via:
        return is_type_of() ? reinterpret_cast<PyObject*>(Py_TYPE(holder)) : nullptr;
      case known:
        return key;
    }
    return nullptr;
  }

  bool is_type_of() const { return key == reinterpret_cast<PyObject*>(&PyType_Type); }

  // The attributes of an object where it has them in a dictionary of its own.
  static PyObject* dict_of(PyObject* holder) {
    if (PyType_Check(holder)) return nullptr;
    PyObject** const attributes = _PyObject_GetDictPtr(holder);
    return attributes ? *attributes : nullptr;
  }

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
};

}  // namespace opwright
