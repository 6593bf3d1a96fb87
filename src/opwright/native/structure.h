// Tuples, lists, dicts, named tuples and torch's records: taken apart into leaves, and put together of others. What
// torch.utils._pytree does in Python, for a structure that is known. Other containers are put together by Python, and
// not taken apart.
#pragma once

#include <c10/util/SmallVector.h>
#include <pybind11/pybind11.h>

#include <vector>

#include "sameness.h"

namespace opwright {

namespace py = pybind11;

// Objects that are held on to: other threads may change the containers that they were found in.
class Leaves {
 public:
  Leaves() = default;
  Leaves(const Leaves&) = delete;
  Leaves& operator=(const Leaves&) = delete;
  ~Leaves() {
    for (PyObject* leaf : found_) Py_DECREF(leaf);
  }

  void add(PyObject* leaf) { found_.push_back(Py_NewRef(leaf)); }
  size_t size() const { return found_.size(); }
  PyObject* const* data() const { return found_.data(); }

 private:
  c10::SmallVector<PyObject*, 16> found_;
};

// It owns nothing: who makes it holds keys and classes for as long as it is used.
class Structure {
 public:
  // None for a leaf, or (kind, context, members).
  explicit Structure(py::handle spec) {
    if (spec.is_none()) return;
    const auto facts = py::reinterpret_borrow<py::tuple>(spec);
    kind_ = static_cast<Kind>(facts[0].cast<int>());
    context_ = facts[1].ptr();
    for (py::handle member : facts[2].cast<py::tuple>()) members_.emplace_back(member);
  }

  const std::vector<Structure>& members() const { return members_; }

  // Add the leaves of a value; false if it is another structure.
  bool take_apart(PyObject* value, Leaves& leaves) const {
    switch (kind_) {
      case leaf:
        leaves.add(value);
        return true;
      case tuple:
        return PyTuple_CheckExact(value) && take_members(value, leaves);
      case named_tuple:
      case record:
        return reinterpret_cast<PyObject*>(Py_TYPE(value)) == context_ && take_members(value, leaves);
#ifndef Py_GIL_DISABLED  // without it another thread may change them now
      case list:
        if (!PyList_CheckExact(value) || PyList_GET_SIZE(value) != size()) return false;
        for (Py_ssize_t k = 0; k < size(); ++k)
          if (!members_[k].take_apart(PyList_GET_ITEM(value, k), leaves)) return false;
        return true;
      case dict:
        return PyDict_CheckExact(value) && take_values(value, leaves);
#endif
      default:
        return false;
    }
  }

  // A value of this structure; `next()` gives a new reference to each leaf, in order, or raises.
  template <typename Next>
  py::object put_together(Next& next) const {
    if (kind_ == leaf) return next();
    Members members;
    for (const Structure& member : members_) members.push_back(member.put_together(next));
    return around(members);
  }

 private:
  using Members = c10::SmallVector<py::object, 8>;
  enum Kind : int { leaf = 0, tuple = 1, list = 2, dict = 3, named_tuple = 4, record = 5, registered = 6 };

  Py_ssize_t size() const { return static_cast<Py_ssize_t>(members_.size()); }

  bool take_members(PyObject* value, Leaves& leaves) const {
    if (PyTuple_GET_SIZE(value) != size()) return false;
    for (Py_ssize_t k = 0; k < size(); ++k)
      if (!members_[k].take_apart(PyTuple_GET_ITEM(value, k), leaves)) return false;
    return true;
  }

  bool take_values(PyObject* value, Leaves& leaves) const {
    if (PyDict_GET_SIZE(value) != size()) return false;
    PyObject *key = nullptr, *found = nullptr;
    for (Py_ssize_t place = 0, k = 0; PyDict_Next(value, &place, &key, &found); ++k)
      if (!are_same(key, PyTuple_GET_ITEM(context_, k)) || !members_[k].take_apart(found, leaves)) return false;
    return true;
  }

  // A new tuple or list, with the members put into it.
  static PyObject* filled(PyObject* made, int (*put)(PyObject*, Py_ssize_t, PyObject*), const Members& members) {
    if (!made) throw py::error_already_set();
    for (size_t k = 0; k < members.size(); ++k) put(made, static_cast<Py_ssize_t>(k), Py_NewRef(members[k].ptr()));
    return made;
  }

  PyObject* tuple_of(const Members& members) const { return filled(PyTuple_New(size()), PyTuple_SetItem, members); }
  PyObject* list_of(const Members& members) const { return filled(PyList_New(size()), PyList_SetItem, members); }

  py::object around(const Members& members) const {
    PyObject* made = nullptr;
    switch (kind_) {
      case tuple:
        made = tuple_of(members);
        break;
      case record:
        made = PyObject_CallOneArg(context_, py::reinterpret_steal<py::object>(tuple_of(members)).ptr());
        break;
      case list:
        made = list_of(members);
        break;
      case registered:
        made = PyObject_CallOneArg(context_, py::reinterpret_steal<py::object>(list_of(members)).ptr());
        break;
      case dict: {
        made = PyDict_New();
        for (Py_ssize_t k = 0; made && k < size(); ++k)
          if (PyDict_SetItem(made, PyTuple_GET_ITEM(context_, k), members[k].ptr()) < 0) Py_CLEAR(made);
        break;
      }
      default: {
        static_assert(sizeof(py::object) == sizeof(PyObject*));
        auto* given = reinterpret_cast<PyObject* const*>(members.data());
        made = PyObject_Vectorcall(context_, given, members.size(), nullptr);
      }
    }
    if (!made) throw py::error_already_set();
    return py::reinterpret_steal<py::object>(made);
  }

  Kind kind_ = leaf;
  PyObject* context_ = nullptr;  // a dict's keys, a named tuple's or record's class, what makes a container of a list
  std::vector<Structure> members_;
};

}  // namespace opwright
