// Conversions of tensors between Python and C++, and calls of Python functions.
#pragma once

#include <pybind11/pybind11.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cstdint>
#include <utility>
#include <vector>

#include "node.h"

namespace opwright {

namespace py = pybind11;
using Objects = std::vector<py::object>;

inline bool is_tensor(py::handle object) { return THPVariable_Check(object.ptr()); }

inline const at::Tensor& tensor_in(py::handle object) { return THPVariable_Unpack(object.ptr()); }

inline py::object object_of(at::Tensor tensor) {
  auto object = py::reinterpret_steal<py::object>(THPVariable_Wrap(std::move(tensor)));
  if (!object) throw py::error_already_set();
  return object;
}

inline py::tuple tuple_of(const Arguments& tensors) {
  py::tuple tuple(tensors.size());
  for (size_t k = 0; k < tensors.size(); ++k) tuple[k] = object_of(tensors[k]);
  return tuple;
}

inline py::tuple tuple_of(const Positions& positions) {
  py::tuple tuple(positions.size());
  for (size_t k = 0; k < positions.size(); ++k) tuple[k] = py::int_(positions[k]);
  return tuple;
}

inline py::object call(py::handle callable, const Objects& arguments) {
  static_assert(sizeof(py::object) == sizeof(PyObject*));
  auto* given = reinterpret_cast<PyObject* const*>(arguments.data());
  auto result =
      py::reinterpret_steal<py::object>(PyObject_Vectorcall(callable.ptr(), given, arguments.size(), nullptr));
  if (!result) throw py::error_already_set();
  return result;
}

inline bool is_tuple_of_tensors(py::handle object) {
  if (!PyTuple_CheckExact(object.ptr())) return false;
  for (py::handle member : py::reinterpret_borrow<py::tuple>(object))
    if (!is_tensor(member)) return false;
  return true;
}

// What an operator returned: its tensors, and how to replace them; binding/returned.py in C++.
class Returned {
 public:
  explicit Returned(const py::object& result) : is_tuple_(is_tuple_of_tensors(result)) {
    if (is_tensor(result)) {
      tensors.push_back(tensor_in(result));
    } else if (is_tuple_) {
      for (py::handle member : py::reinterpret_borrow<py::tuple>(result)) tensors.push_back(tensor_in(member));
    } else {
      structured_ = py::module_::import("opwright.binding.returned").attr("Returned")(result);
      for (py::handle tensor : structured_.attr("tensors")) tensors.push_back(tensor_in(tensor));
      for (py::handle place : structured_.attr("places")) places.push_back(place.cast<int64_t>());
      return;
    }
    for (size_t place = 0; place < tensors.size(); ++place) places.push_back(static_cast<int64_t>(place));
  }

  // The same structure with the current `tensors`.
  py::object rebuilt() const {
    if (structured_) return structured_.attr("rebuilt")(tuple_of(tensors));
    return is_tuple_ ? py::object(tuple_of(tensors)) : object_of(tensors[0]);
  }

  Arguments tensors;
  Positions places;  // their positions among the leaves

 private:
  bool is_tuple_;
  py::object structured_;  // the Python object for other structures; null for a tensor and a tuple
};

}  // namespace opwright
