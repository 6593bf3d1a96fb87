// What the kernels of an optimizer depend on, written as numbers, and compared with the step before: optim/serving/plan.py
// says the same in Python, ten times slower.
#pragma once

#include <pybind11/pybind11.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cstdint>
#include <vector>

#include "objects.h"

namespace opwright {

// It owns nothing: the plan that it belongs to holds all objects whose addresses it has, so no others can have these.
class Watched {
 public:
  // plain: the types of tensors that nobody listens to.
  explicit Watched(const py::tuple& plain) {
    for (py::handle type : plain) plain_.push_back(reinterpret_cast<PyTypeObject*>(type.ptr()));
  }

  // Look at the parameters of each group and at the states of all. Returns whether all that have a gradient are plain and
  // strided, with their gradients and states.
  bool look(const py::list& groups, const py::dict& states) {
    const bool is_plain = write(groups, states);
    last_.swap(now_);
    return is_plain;
  }

  // Whether nothing but the addresses of gradients has changed since `look`.
  bool holds(const py::list& groups, const py::dict& states) { return write(groups, states) && now_ == last_; }

  // The addresses of the gradients that were seen last.
  py::list gradients() const {
    py::list list(gradients_.size());
    for (size_t k = 0; k < gradients_.size(); ++k) list[k] = py::int_(gradients_[k]);
    return list;
  }

 private:
  bool is_plain(PyObject* object) const {
    for (PyTypeObject* type : plain_)
      if (Py_TYPE(object) == type) return true;
    return false;
  }

  void put(const void* address) { now_.push_back(reinterpret_cast<int64_t>(address)); }

  void put_layout(const at::Tensor& tensor) {
    now_.push_back(static_cast<int64_t>(tensor.scalar_type()));
    now_.push_back(static_cast<int64_t>(tensor.key_set().raw_repr()));
    for (int64_t size : tensor.sizes()) now_.push_back(size);
    for (int64_t stride : tensor.strides()) now_.push_back(stride);
  }

  // False for tensors that have no memory of their own.
  bool put_tensor(const at::Tensor& tensor) {
    if (tensor.layout() != at::kStrided || !tensor.has_storage()) return false;
    put_layout(tensor);
    put(tensor.data_ptr());
    return true;
  }

  bool put_gradient(const at::Tensor& parameter) {
    const at::Tensor& gradient = parameter.grad();
    if (gradient.layout() != at::kStrided || !gradient.has_storage()) return false;
    const py::object object = object_of(gradient);
    if (!is_plain(object.ptr())) return false;
    put_layout(gradient);
    gradients_.push_back(reinterpret_cast<int64_t>(gradient.data_ptr()));
    return true;
  }

  bool write(const py::list& groups, const py::dict& states) {
    now_.clear();
    gradients_.clear();
    for (py::handle group : groups) {
      if (!PyList_CheckExact(group.ptr())) return false;
      now_.push_back(PyList_GET_SIZE(group.ptr()));
      for (Py_ssize_t k = 0; k < PyList_GET_SIZE(group.ptr()); ++k) {
        PyObject* const parameter = PyList_GET_ITEM(group.ptr(), k);
        if (!is_plain(parameter)) return false;
        put(parameter);
        const bool has_gradient = THPVariable_Unpack(parameter).grad().defined();
        now_.push_back(has_gradient);
        if (!has_gradient) continue;
        if (!put_tensor(THPVariable_Unpack(parameter)) || !put_gradient(THPVariable_Unpack(parameter))) return false;
      }
    }
    return write_states(states);
  }

  bool write_states(const py::dict& states) {
    PyObject *key = nullptr, *value = nullptr, *name = nullptr, *held = nullptr;
    for (Py_ssize_t k = 0; PyDict_Next(states.ptr(), &k, &key, &value);) {
      put(key);
      put(value);
      if (!PyDict_CheckExact(value)) return false;
      for (Py_ssize_t j = 0; PyDict_Next(value, &j, &name, &held);) {
        put(name);
        put(held);
        if (is_plain(held) && !put_tensor(THPVariable_Unpack(held))) return false;
      }
    }
    return true;
  }

  std::vector<PyTypeObject*> plain_;
  std::vector<int64_t> last_, now_, gradients_;
};

}  // namespace opwright
