// Plain values that are the same: of one type and equal, where 0.0 is not -0.0. Types that are not handled here go to
// tracing/outside/plain.py, which does the same in Python.
#pragma once

#include <pybind11/pybind11.h>

#include <cstring>

namespace opwright {

namespace py = pybind11;

// An error means that a value is missing or different, unless it is an interrupt such as KeyboardInterrupt.
inline void forget_error() {
  if (PyErr_Occurred() && !PyErr_ExceptionMatches(PyExc_Exception)) throw py::error_already_set();
  PyErr_Clear();
}

// Null asks nobody: types that are not told apart here have no values that are the same.
inline bool are_same(PyObject* value, PyObject* expected, PyObject* ask = nullptr) {
  if (value == expected) return true;
  if (Py_TYPE(value) != Py_TYPE(expected) || expected == Py_None || PyBool_Check(expected)) return false;
  if (PyFloat_CheckExact(value)) {
    const double now = PyFloat_AS_DOUBLE(value), before = PyFloat_AS_DOUBLE(expected);
    return std::memcmp(&now, &before, sizeof(double)) == 0;
  }
  if (PyLong_CheckExact(value)) return PyObject_RichCompareBool(value, expected, Py_EQ) == 1;
  if (PyUnicode_CheckExact(value)) return PyUnicode_Compare(value, expected) == 0;
  if (PyTuple_CheckExact(value)) {
    const Py_ssize_t size = PyTuple_GET_SIZE(value);
    if (size != PyTuple_GET_SIZE(expected)) return false;
    for (Py_ssize_t k = 0; k < size; ++k)
      if (!are_same(PyTuple_GET_ITEM(value, k), PyTuple_GET_ITEM(expected, k), ask)) return false;
    return true;
  }
  if (!ask) return false;
  PyObject* answer = PyObject_CallFunctionObjArgs(ask, value, expected, nullptr);
  const bool is_true = answer == Py_True;
  Py_XDECREF(answer);
  if (!answer) forget_error();
  return is_true;
}

}  // namespace opwright
