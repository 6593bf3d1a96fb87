// A call of an operator from C++, while there are levels of transforms.
#pragma once

#include <optional>

#include "objects.h"

namespace opwright {

// A result, and the rung that computed it.
struct Served {
  py::object result, rung;
};

// Serve a call by the operator of the innermost transform; nothing if that is not grad, vmap or jvp.
std::optional<Served> step_below(const py::object& target, const py::object& transforms, Objects arguments);

// Call an operator, at whatever level.
Served serve(const py::object& target, const Objects& arguments);

}  // namespace opwright
