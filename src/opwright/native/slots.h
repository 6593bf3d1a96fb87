// The values that guards found in slots, such as the tensors of a module.
#pragma once

#include <Python.h>
#include <c10/util/SmallVector.h>

#include <algorithm>
#include <functional>

namespace opwright {

// It holds them.
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

  size_t size() const { return values_.size(); }

  // Whether no value is in two slots.
  bool are_distinct() const {
    auto sorted = values_;
    sorted.erase(std::remove(sorted.begin(), sorted.end(), nullptr), sorted.end());
    std::sort(sorted.begin(), sorted.end(), std::less<PyObject*>());
    return std::adjacent_find(sorted.begin(), sorted.end()) == sorted.end();
  }

 private:
  c10::SmallVector<PyObject*, 16> values_;
};

}  // namespace opwright
