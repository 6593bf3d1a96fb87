// A call of an operator from C++, by the extension module itself as long as there are levels.
#pragma once

#include <optional>

#include "objects.h"

namespace opwright {

// A result, and the rung that computed it.
struct Served {
  py::object result, rung;
};

// Serve a call by the operator that the innermost level makes of it; nothing at a level that is none of the three.
std::optional<Served> step_below(const py::object& target, const py::object& transforms, Objects arguments);

// Call an operator, at whatever level.
Served serve(const py::object& target, const Objects& arguments);

}  // namespace opwright
