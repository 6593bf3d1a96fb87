// Guards: values that a function reads from outside its arguments, compared with what they were when it was traced. What
// tracing/outside/guard.py says in Python, from the same numbers.
#pragma once

#include <pybind11/pybind11.h>

#include <cstring>
#include <vector>

namespace opwright {

namespace py = pybind11;

// It owns nothing: Python's garbage collector could not see what it holds. The state in binding/states.py owns the
// function, names and values, and whoever asks holds that state.
class Guards {
 public:
  // spec: (fetch, key, check, expected, inner specs), for the function itself.
  Guards(const py::tuple& spec, py::handle function, py::handle absent, py::handle are_same)
      : root_(read(spec)), function_(function.ptr()), absent_(absent.ptr()), are_same_(are_same.ptr()) {}

  bool hold() const { return holds(root_, function_); }

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
    via = 13
  };
  enum Check : int { nothing = 0, plain = 1, identity = 2, type = 3, length = 4 };

  struct Guard {
    int fetch, check;
    PyObject *key, *expected;
    Py_ssize_t position;
    std::vector<Guard> inner;
  };

  static Guard read(const py::tuple& spec) {
    Guard guard{spec[0].cast<int>(), spec[2].cast<int>(), spec[1].ptr(), spec[3].ptr(), 0, {}};
    if (guard.fetch == index || guard.fetch == cell) guard.position = spec[1].cast<Py_ssize_t>();
    for (const py::handle& inner : spec[4].cast<py::tuple>())
      guard.inner.push_back(read(py::reinterpret_borrow<py::tuple>(inner)));
    return guard;
  }

  bool holds(const Guard& guard, PyObject* parent) const {
    py::object owner;
    PyObject* value = fetched(guard, parent, owner);
    if (!value) {
      PyErr_Clear();
      return guard.expected == absent_;
    }
    if (value == absent_) return guard.expected == absent_;
    if (!passes(guard, value)) return false;
    for (const Guard& inner : guard.inner)
      if (!holds(inner, value)) return false;
    return true;
  }

  // The value, which `owner` keeps alive if nobody else does; null, with or without an error, if there is none.
  PyObject* fetched(const Guard& guard, PyObject* parent, py::object& owner) const {
    const auto own = [&](PyObject* made) {
      owner = py::reinterpret_steal<py::object>(made);
      return made;
    };
    switch (guard.fetch) {
      case self:
        return parent;
      case item:
        return PyDict_Check(parent) ? PyDict_GetItemWithError(parent, guard.key)
                                    : own(PyObject_GetItem(parent, guard.key));
      case index:
        if (guard.position >= PySequence_Size(parent)) return nullptr;
        return PyList_Check(parent) ? PyList_GET_ITEM(parent, guard.position)
               : PyTuple_Check(parent) ? PyTuple_GET_ITEM(parent, guard.position)
                                       : own(PySequence_GetItem(parent, guard.position));
      case keys:
        return own(PySequence_Tuple(parent));
      case code:
        return PyFunction_Check(parent) ? PyFunction_GET_CODE(parent) : nullptr;
      case globals:
        return PyFunction_Check(parent) ? PyFunction_GET_GLOBALS(parent) : nullptr;
      case defaults:
        return PyFunction_Check(parent) ? or_none(PyFunction_GET_DEFAULTS(parent)) : nullptr;
      case keyword_defaults:
        return PyFunction_Check(parent) ? or_none(PyFunction_GET_KW_DEFAULTS(parent)) : nullptr;
      case cell: {
        PyObject* cells = PyFunction_Check(parent) ? PyFunction_GET_CLOSURE(parent) : nullptr;
        if (!cells || guard.position >= PyTuple_GET_SIZE(cells)) return nullptr;
        return own(PyCell_Get(PyTuple_GET_ITEM(cells, guard.position)));
      }
      case attribute:
        return own(attribute_of(parent, guard.key));
      case method: {
        PyObject* found = own(attribute_of(parent, guard.key));
        return found && PyMethod_Check(found) ? PyMethod_GET_FUNCTION(found) : found;
      }
      case call:
        return own(PyObject_CallNoArgs(parent));
      case context: {
        PyObject* found = nullptr;
        return PyContextVar_Get(parent, absent_, &found) < 0 ? nullptr : own(found);
      }
      case via:
        return own(PyObject_CallOneArg(guard.key, parent));
    }
    return nullptr;
  }

  static PyObject* or_none(PyObject* value) { return value ? value : Py_None; }

  // What is stored, without a `__getattribute__` or `__getattr__` of the user's.
  static PyObject* attribute_of(PyObject* parent, PyObject* name) {
    return PyType_Check(parent) ? PyType_Type.tp_getattro(parent, name) : PyObject_GenericGetAttr(parent, name);
  }

  bool passes(const Guard& guard, PyObject* value) const {
    switch (guard.check) {
      case nothing:
        return guard.expected != absent_;
      case plain:
        return is_same(value, guard.expected);
      case identity:
        return value == guard.expected;
      case type:
        return reinterpret_cast<PyObject*>(Py_TYPE(value)) == guard.expected;
      case length:
        return reinterpret_cast<PyObject*>(Py_TYPE(value)) == PyTuple_GET_ITEM(guard.expected, 0) &&
               PyObject_Size(value) == PyLong_AsSsize_t(PyTuple_GET_ITEM(guard.expected, 1));
    }
    return false;
  }

  bool is_same(PyObject* value, PyObject* expected) const {
    if (value == expected) return true;
    if (Py_TYPE(value) != Py_TYPE(expected) || expected == Py_None || PyBool_Check(expected)) return false;
    if (PyFloat_CheckExact(value)) {
      const double now = PyFloat_AS_DOUBLE(value), before = PyFloat_AS_DOUBLE(expected);
      return std::memcmp(&now, &before, sizeof(double)) == 0 || (now != now && before != before);
    }
    PyObject* answer = PyObject_CallFunctionObjArgs(are_same_, value, expected, nullptr);
    const bool is_true = answer == Py_True;
    Py_XDECREF(answer);
    PyErr_Clear();
    return is_true;
  }

  Guard root_;
  PyObject *function_, *absent_, *are_same_;
};

}  // namespace opwright
