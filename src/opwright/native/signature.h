// What the parameters of an operator are called, and how the arguments of a call are put in their order. What
// tracing/interface/signature.py says in Python, which has the words for a call that is wrong.
#pragma once

#include <c10/util/SmallVector.h>
#include <pybind11/pybind11.h>

#include <algorithm>
#include <vector>

namespace opwright {

namespace py = pybind11;
using Borrowed = c10::SmallVector<PyObject*, 16>;

// The arguments of a call by parameter; `*args` and `**kwargs` are made for the call.
struct Bound {
  Borrowed arguments;
  py::object rest, by_name;
};

// It owns nothing: who makes it holds the names and the defaults for as long as it is used.
class Signature {
 public:
  // Parameters: (name, default or `absent`, whether it is given by keyword only, whether it collects what is left).
  Signature(const py::tuple& parameters, py::handle absent) : absent_(absent.ptr()) {
    for (py::handle parameter : parameters) {
      const auto facts = py::reinterpret_borrow<py::tuple>(parameter);
      const bool by_keyword = facts[2].cast<bool>(), variadic = facts[3].cast<bool>();
      const auto place = static_cast<Py_ssize_t>(names_.size());
      if (variadic) (by_keyword ? by_name_ : rest_) = place;
      if (!variadic && !by_keyword) ++positional_;
      names_.push_back(variadic ? nullptr : facts[0].ptr());
      defaults_.push_back(facts[1].ptr());
    }
  }

  // `given` are `count` arguments by position, then those by the keywords in the tuple `keywords`, which may be null.
  // False if they do not fit.
  bool bind(PyObject* const* given, Py_ssize_t count, PyObject* keywords, Bound& bound) const {
    bound.arguments.assign(names_.size(), nullptr);
    const Py_ssize_t placed = std::min(count, positional_);
    std::copy(given, given + placed, bound.arguments.begin());
    if (rest_ >= 0)
      bound.arguments[rest_] = collect(given + placed, count - placed, bound);
    else if (count > placed)
      return false;
    if (by_name_ >= 0) {
      bound.by_name = py::dict();
      bound.arguments[by_name_] = bound.by_name.ptr();
    }
    const Py_ssize_t named = keywords ? PyTuple_GET_SIZE(keywords) : 0;
    for (Py_ssize_t k = 0; k < named; ++k)
      if (!put(PyTuple_GET_ITEM(keywords, k), given[count + k], bound)) return false;
    for (size_t place = 0; place < names_.size(); ++place) {
      if (bound.arguments[place]) continue;
      if (defaults_[place] == absent_) return false;
      bound.arguments[place] = defaults_[place];
    }
    return true;
  }

 private:
  static PyObject* collect(PyObject* const* given, Py_ssize_t count, Bound& bound) {
    bound.rest = py::reinterpret_steal<py::object>(PyTuple_New(count));
    for (Py_ssize_t k = 0; k < count; ++k) PyTuple_SET_ITEM(bound.rest.ptr(), k, Py_NewRef(given[k]));
    return bound.rest.ptr();
  }

  bool put(PyObject* keyword, PyObject* value, Bound& bound) const {
    const Py_ssize_t place = place_of(keyword);
    if (place < 0 && by_name_ < 0) return false;
    if (place < 0 && PyDict_SetItem(bound.by_name.ptr(), keyword, value) < 0) throw py::error_already_set();
    if (place < 0) return true;
    if (bound.arguments[place]) return false;
    bound.arguments[place] = value;
    return true;
  }

  // Names are interned as a rule, so that looking whether they are the same object finds most of them.
  Py_ssize_t place_of(PyObject* keyword) const {
    for (size_t place = 0; place < names_.size(); ++place)
      if (names_[place] == keyword) return static_cast<Py_ssize_t>(place);
    if (!PyUnicode_CheckExact(keyword)) return -1;
    for (size_t place = 0; place < names_.size(); ++place)
      if (names_[place] && PyUnicode_Compare(names_[place], keyword) == 0) return static_cast<Py_ssize_t>(place);
    return -1;
  }

  std::vector<PyObject*> names_, defaults_;  // null in place of the names of `*args` and `**kwargs`
  Py_ssize_t positional_ = 0, rest_ = -1, by_name_ = -1;
  PyObject* absent_;
};

}  // namespace opwright
