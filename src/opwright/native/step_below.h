// An operator under function transforms calls the transform of itself, one level below: binding/transforms/step_below.py in C++.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "draws.h"
#include "levels.h"
#include "node.h"
#include "objects.h"
#include "pulled_back.h"
#include "quiet.h"
#include "served.h"

namespace opwright {

// A call at the innermost level.
struct Call {
  py::object target;      // the operator
  py::object transforms;  // its transforms
  Objects arguments;
};

inline Served serve(const py::object& target, const Objects& arguments) {
  if (is_transformed() && !is_overheard())
    if (auto served = step_below(target, target.attr("transforms"), arguments)) return *std::move(served);
  py::object result = call(target, arguments);
  return {std::move(result), target.attr("last_rung")};
}

// Nothing if no argument has a batch and random numbers are drawn, for each entry or to raise the error of `vmap`.
inline std::optional<Served> over_batch(const Level& level, Call asked) {
  Positions positions;
  std::vector<std::pair<at::Tensor, int64_t>> batches;
  for (size_t position = 0; position < asked.arguments.size(); ++position) {
    if (!is_tensor(asked.arguments[position])) continue;
    auto batch = level.unbatched(tensor_in(asked.arguments[position]));
    if (!batch) continue;
    positions.push_back(static_cast<int64_t>(position));
    batches.push_back(*std::move(batch));
  }
  std::optional<Below> below(std::in_place);
  if (positions.empty()) {
    const GeneratorState before = GeneratorState::now();
    Served served = serve(asked.target, asked.arguments);
    if (before == GeneratorState::now() || level.randomness() == std::string_view("same")) return served;
    before.go_there();
    return std::nullopt;
  }
  for (size_t k = 0; k < positions.size(); ++k) {
    const auto& [tensor, dimension] = batches[k];
    asked.arguments[positions[k]] = object_of(dimension == 0 ? tensor : tensor.movedim(dimension, 0));
  }
  const py::object batched = asked.transforms.attr("batched")(tuple_of(positions), level.randomness());
  const Served served = serve(batched, asked.arguments);
  below.reset();
  Returned returned(served.result);
  for (at::Tensor& tensor : returned.tensors) tensor = level.add_batch(tensor);
  return Served{returned.rebuilt(), served.rung};
}

// Split the results of the forward-mode operator into results and tangents, as in derivation/forward.py.
inline std::pair<py::object, py::tuple> split(const py::tuple& found) {
  if (!is_tuple_of_tensors(found)) return {found[0], found[1]};
  size_t count = 0;
  for (size_t tangents = 0; count + tangents < found.size(); ++count)
    tangents += is_differentiable(tensor_in(py::object(found[count])));
  const py::tuple results = found[py::slice(0, count, 1)];
  return {count == 1 ? py::object(results[0]) : py::object(results), found[py::slice(count, found.size(), 1)]};
}

inline std::optional<Served> pushed_forward(const Level& level, Call asked) {
  Positions moving;
  Objects tangents;
  for (size_t position = 0; position < asked.arguments.size(); ++position) {
    py::object& argument = asked.arguments[position];
    if (!is_tensor(argument) || !level.has(tensor_in(argument))) continue;
    const at::Tensor tensor = tensor_in(argument);
    argument = object_of(level.unwrap(tensor));
    const at::Tensor& tangent = tensor._fw_grad(/*level=*/0);  // also undefined if forward mode is off
    if (!tangent.defined()) continue;
    if (tangent.scalar_type() != tensor.scalar_type()) return std::nullopt;  // what is computed from it has its dtype
    moving.push_back(static_cast<int64_t>(position));
    tangents.push_back(object_of(level.unwrap(tangent)));
  }
  std::optional<Below> below(std::in_place);
  if (moving.empty()) return serve(asked.target, asked.arguments);
  const py::object forward = asked.transforms.attr("jvp")(tuple_of(moving));
  asked.arguments.insert(asked.arguments.end(), tangents.begin(), tangents.end());
  const Served served = serve(forward, asked.arguments);
  below.reset();
  const auto [result, moved] = split(served.result);
  Returned returned(result);
  size_t next = 0;
  for (at::Tensor& tensor : returned.tensors) {
    tensor = level.wrap(tensor);
    if (!is_differentiable(tensor)) continue;
    const at::Tensor tangent = level.wrap(tensor_in(py::object(moved[next++])));
    tensor._set_fw_grad(tangent, /*level=*/0, /*is_inplace_op=*/false);
  }
  return Served{returned.rebuilt(), served.rung};
}

inline Served recorded(const Level& level, const Call& asked) {
  Objects arguments = asked.arguments;
  Arguments lifted;
  bool is_wanted = false;
  for (py::object& argument : arguments) {
    if (!is_tensor(argument)) continue;
    const at::Tensor tensor = tensor_in(argument);
    is_wanted = is_wanted || (level.has(tensor) && tensor.requires_grad());
    lifted.push_back(level.lift(tensor));
    argument = object_of(level.unwrap(tensor));
  }
  const bool is_recorded = is_wanted && at::GradMode::is_enabled();
  std::optional<Below> below(std::in_place);
  if (!is_recorded) return serve(asked.target, arguments);
  const GeneratorState before = GeneratorState::now();
  const Served served = serve(asked.target, arguments);
  auto drawn_from = before == GeneratorState::now() ? nullptr : std::make_unique<const GeneratorState>(before);
  below.reset();
  Returned returned(served.result);
  const auto node =
      new_node<PulledBack>(asked.transforms, asked.arguments, lifted, returned.places, std::move(drawn_from));
  for (at::Tensor& tensor : returned.tensors) {
    tensor = level.wrap(tensor);
    static_cast<PulledBack&>(*node).add_output(tensor, node);
  }
  return {returned.rebuilt(), served.rung};
}

inline std::optional<Served> step_below(const py::object& target, const py::object& transforms, Objects arguments) {
  for (py::object& argument : arguments)
    if (is_tensor(argument)) argument = object_of(functorch::unwrapIfDead(tensor_in(argument)));
  const Level level = Level::innermost();
  switch (level.transform()) {
    case functorch::TransformType::Vmap:
      return over_batch(level, {target, transforms, std::move(arguments)});
    case functorch::TransformType::Jvp:
      return pushed_forward(level, {target, transforms, std::move(arguments)});
    case functorch::TransformType::Grad:
      return recorded(level, {target, transforms, std::move(arguments)});
    default:
      return std::nullopt;
  }
}

// The same for Python: a tuple, or None.
inline py::object step_below_for_python(const py::object& target, const py::object& transforms,
                                        const py::sequence& arguments) {
  Objects given;
  for (py::handle argument : arguments) given.push_back(py::reinterpret_borrow<py::object>(argument));
  const auto served = step_below(target, transforms, std::move(given));
  return served ? py::make_tuple(served->result, served->rung) : py::object(py::none());
}

}  // namespace opwright
