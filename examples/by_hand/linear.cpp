// Linear over torch::Tensor, as PyTorch's documents write an extension; opwright writes the binding.
#include <torch/extension.h>

#include <optional>
#include <vector>

torch::Tensor linear_forward(torch::Tensor x, torch::Tensor weight, std::optional<torch::Tensor> bias) {
  return bias ? torch::addmm(*bias, x, weight.t()) : x.mm(weight.t());
}

// Returns the gradients of x, weight and bias.
std::vector<std::optional<torch::Tensor>> linear_backward(torch::Tensor grad_y, torch::Tensor x, torch::Tensor weight,
                                                          std::optional<torch::Tensor> bias) {
  std::optional<torch::Tensor> grad_bias;
  if (bias) grad_bias = grad_y.sum(0);
  return {grad_y.mm(weight), grad_y.t().mm(x), grad_bias};
}
