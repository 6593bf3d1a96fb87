// Linear over torch::Tensor, as PyTorch's documents write an extension; opwright writes the binding.
#include <torch/extension.h>

#include <optional>
#include <vector>

torch::Tensor linear_forward(torch::Tensor x, torch::Tensor weight, std::optional<torch::Tensor> bias) {
  return bias ? torch::addmm(*bias, x, weight.t()) : x.mm(weight.t());
}

// Returns the gradients of x, weight and bias, as far as they are needed.
std::vector<torch::Tensor> linear_backward(torch::Tensor grad_y, torch::Tensor x, torch::Tensor weight,
                                           std::vector<bool> needed) {
  torch::Tensor grad_x, grad_weight, grad_bias;
  if (needed[0]) grad_x = grad_y.mm(weight);
  if (needed[1]) grad_weight = grad_y.t().mm(x);
  if (needed[2]) grad_bias = grad_y.sum(0);
  return {grad_x, grad_weight, grad_bias};
}
