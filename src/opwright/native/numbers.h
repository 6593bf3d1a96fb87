// Python numbers that change from call to call: binding/serving/numbers.py in C++.
#pragma once

#include <c10/core/Scalar.h>
#include <pybind11/pybind11.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace opwright {

namespace py = pybind11;

// The floats, or the ints, of one argument, which kernels are given at run time.
struct Varying {
  size_t position;
  bool is_float;
  std::vector<PyObject*> apart;  // values that kernels are written for; who makes it holds them

  // The value as a kernel is given it; nothing if it is a constant, or no number of this type.
  std::optional<c10::Scalar> given(PyObject* value) const {
    if (is_float ? !PyFloat_CheckExact(value) : !PyLong_CheckExact(value)) return std::nullopt;
    for (PyObject* other : apart)
      if (PyObject_RichCompareBool(value, other, Py_EQ) == 1) return std::nullopt;
    if (is_float) {
      const double number = PyFloat_AS_DOUBLE(value);
      return std::fabs(number) < most ? std::optional<c10::Scalar>(number) : std::nullopt;
    }
    int overflow = 0;
    const long long number = PyLong_AsLongLongAndOverflow(value, &overflow);
    return overflow == 0 ? std::optional<c10::Scalar>(static_cast<int64_t>(number)) : std::nullopt;
  }

  static constexpr double most = 3e38;
};

// What a trace assumed of a number: `sign · number relation bound`.
struct NumberGuard {
  // A bound is a float beside floats, an int of 64 bits beside ints: Python compares the others.
  NumberGuard(size_t position, int sign, const std::string& relation, py::handle bound)
      : position(position), sign_(sign), relation_(read(relation)) {
    if (PyFloat_CheckExact(bound.ptr()))
      float_bound_ = bound.cast<double>();
    else
      int_bound_ = bound.cast<int64_t>();
  }

  bool holds(const c10::Scalar& number) const {
    if (number.isFloatingPoint()) return compare(sign_ * number.toDouble(), float_bound_);
    return compare(static_cast<__int128>(sign_) * number.toLong(), static_cast<__int128>(int_bound_));
  }

  size_t position;

 private:
  enum Relation { unequal, less, at_most, greater, at_least };

  static Relation read(const std::string& relation) {
    if (relation == "!=") return unequal;
    if (relation == "<") return less;
    if (relation == "<=") return at_most;
    if (relation == ">") return greater;
    if (relation == ">=") return at_least;
    throw py::value_error("there is no relation " + relation);
  }

  template <typename Number>
  bool compare(Number number, Number bound) const {
    switch (relation_) {
      case unequal:
        return number != bound;
      case less:
        return number < bound;
      case at_most:
        return number <= bound;
      case greater:
        return number > bound;
      case at_least:
        return number >= bound;
    }
    return false;
  }

  int sign_;
  Relation relation_;
  double float_bound_ = 0;
  int64_t int_bound_ = 0;
};

}  // namespace opwright
