// A program that knows libtorch and a library of operators, and no Python: program LIBRARY
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <dlfcn.h>

#include <iostream>
#include <tuple>

using Cell = std::tuple<at::Tensor, at::Tensor>(const at::Tensor&, const at::Tensor&);
using Scale = at::Tensor(const at::Tensor&, double, int64_t);

template <class Function>
auto find(const char* name) {
  return c10::Dispatcher::singleton().findSchemaOrThrow(name, "").typed<Function>();
}

template <class Call>
void expect_refusal(const char* what, Call call) {
  try {
    call();
    std::cout << what << ": no refusal\n";
  } catch (const std::exception& error) {
    const std::string text = error.what();
    std::cout << what << ": " << text.substr(0, text.find('\n')) << "\n";
  }
}

int main(int, char** arguments) {
  if (!dlopen(arguments[1], RTLD_NOW)) return std::cerr << dlerror() << "\n", 1;
  const auto cell = find<Cell>("shipped_operators::cell");
  const auto scale = find<Scale>("shipped_scale::scale");
  const at::Tensor gates = at::randn({4, 9}), old_cell = at::randn({4, 3});

  const auto [hidden, state] = cell.call(gates, old_cell);
  const auto parts = gates.chunk(3, -1);
  const at::Tensor expected = old_cell + at::elu(parts[2]) * at::sigmoid(parts[0]);
  const at::Tensor expected_hidden = at::tanh(expected) * at::sigmoid(parts[1]);
  std::cout << "cell: " << at::allclose(state, expected) << at::allclose(hidden, expected_hidden) << "\n";
  std::cout << "scale: " << at::allclose(scale.call(old_cell, 2.5, -3), old_cell * -7.5 + 1) << "\n";

  expect_refusal("dtype", [&] { cell.call(gates.to(at::kDouble), old_cell.to(at::kDouble)); });
  expect_refusal("empty", [&] { cell.call(gates.slice(0, 0, 0), old_cell.slice(0, 0, 0)); });
  const at::Tensor recorded = gates.clone().requires_grad_();
  expect_refusal("gradient", [&] { cell.call(recorded, old_cell); });
  const c10::AutoGradMode off(false);
  std::cout << "no_grad: " << at::allclose(std::get<1>(cell.call(recorded, old_cell)), expected) << "\n";
}
