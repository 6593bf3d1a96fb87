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
    const py::object held = fetched(guard, parent);
    PyObject* value = held.ptr();
    if (!value) {
      forget_error();
      return guard.expected == absent_;
    }
    if (value == absent_) return guard.expected == absent_;
    if (!passes(guard, value)) return false;
    for (const Guard& inner : guard.inner)
      if (!holds(inner, value)) return false;
    return true;
  }

  // An error says that a value is not there, or another one; but not what somebody who interrupts the program raises.
  static void forget_error() {
    if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) throw py::error_already_set();
    PyErr_Clear();
  }

  static py::object borrowed(PyObject* found) { return py::reinterpret_borrow<py::object>(found); }
  static py::object own(PyObject* made) { return py::reinterpret_steal<py::object>(made); }

  // The value, or null, with or without an error, if there is none. It is held on to: what compares values may let other
  // threads run, which may take it out of where it is.
  py::object fetched(const Guard& guard, PyObject* parent) const {
    switch (guard.fetch) {
      case self:
        return borrowed(parent);
      case item:
        return PyDict_Check(parent) ? borrowed(PyDict_GetItemWithError(parent, guard.key))
                                    : own(PyObject_GetItem(parent, guard.key));
      case index:
        return PyList_Check(parent)    ? borrowed(PyList_GetItem(parent, guard.position))
               : PyTuple_Check(parent) ? borrowed(PyTuple_GetItem(parent, guard.position))
                                       : own(PySequence_GetItem(parent, guard.position));
      case keys:
        return own(PySequence_Tuple(parent));
      case code:
        return borrowed(PyFunction_Check(parent) ? PyFunction_GET_CODE(parent) : nullptr);
      case globals:
        return borrowed(PyFunction_Check(parent) ? PyFunction_GET_GLOBALS(parent) : nullptr);
      case defaults:
        return borrowed(PyFunction_Check(parent) ? or_none(PyFunction_GET_DEFAULTS(parent)) : nullptr);
      case keyword_defaults:
        return borrowed(PyFunction_Check(parent) ? or_none(PyFunction_GET_KW_DEFAULTS(parent)) : nullptr);
      case cell: {
        PyObject* cells = PyFunction_Check(parent) ? PyFunction_GET_CLOSURE(parent) : nullptr;
        if (!cells || guard.position >= PyTuple_GET_SIZE(cells)) return {};
        return own(PyCell_Get(PyTuple_GET_ITEM(cells, guard.position)));
      }
      case attribute:
        return own(attribute_of(parent, guard.key));
      case method: {
        py::object found = own(attribute_of(parent, guard.key));
        return found && PyMethod_Check(found.ptr()) ? borrowed(PyMethod_GET_FUNCTION(found.ptr())) : found;
      }
      case call:
        return own(PyObject_CallNoArgs(parent));
      case context: {
        PyObject* found = nullptr;
        return PyContextVar_Get(parent, absent_, &found) < 0 ? py::object() : own(found);
      }
      case via:
        return own(PyObject_CallOneArg(guard.key, parent));
    }
    return {};
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
               size_of(value) == PyLong_AsSsize_t(PyTuple_GET_ITEM(guard.expected, 1));
    }
    return false;
  }

  static Py_ssize_t size_of(PyObject* value) {
    const Py_ssize_t size = PyObject_Size(value);
    if (size < 0) forget_error();
    return size;
  }

  bool is_same(PyObject* value, PyObject* expected) const {
    if (value == expected) return true;
    if (Py_TYPE(value) != Py_TYPE(expected) || expected == Py_None || PyBool_Check(expected)) return false;
    if (PyFloat_CheckExact(value)) {
      const double now = PyFloat_AS_DOUBLE(value), before = PyFloat_AS_DOUBLE(expected);
      return std::memcmp(&now, &before, sizeof(double)) == 0;
    }
    PyObject* answer = PyObject_CallFunctionObjArgs(are_same_, value, expected, nullptr);
    const bool is_true = answer == Py_True;
    Py_XDECREF(answer);
    if (!answer) forget_error();
    return is_true;
  }

  Guard root_;
  PyObject *function_, *absent_, *are_same_;
};

}  // namespace opwright
