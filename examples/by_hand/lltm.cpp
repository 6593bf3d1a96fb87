// One step of LLTM over torch::Tensor: products by the library, the cell in a loop of ours.
#include <torch/extension.h>

#include <vector>

#include "lltm_cell.h"

namespace {

constexpr int64_t kRowsForAThread = 64;

template <class T>
void forward_rows(torch::Tensor& gates, const torch::Tensor& bias, const torch::Tensor& old_cell,
                  torch::Tensor& hidden, torch::Tensor& cell) {
  const int64_t state = old_cell.size(1);
  T* gate = gates.data_ptr<T>();
  const T *old = old_cell.data_ptr<T>(), *added = bias.data_ptr<T>();
  T *h = hidden.data_ptr<T>(), *c = cell.data_ptr<T>();
  at::parallel_for(0, old_cell.size(0), kRowsForAThread, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      T* row = gate + 3 * b * state;
      const int64_t first = b * state;
#pragma omp simd
      for (int64_t j = 0; j < 3 * state; ++j) row[j] += added[j];
#pragma omp simd
      for (int64_t j = 0; j < state; ++j)
        cell_forward(row[j], row[state + j], row[2 * state + j], old[first + j], h[first + j], c[first + j]);
    }
  });
}

template <class T>
void backward_rows(const torch::Tensor& gates, const torch::Tensor& cell, const torch::Tensor& grad_hidden,
                   const torch::Tensor& grad_cell, torch::Tensor& grad_gates, torch::Tensor& grad_old_cell) {
  const int64_t state = cell.size(1);
  const T *gate = gates.data_ptr<T>(), *c = cell.data_ptr<T>();
  const T *dh = grad_hidden.data_ptr<T>(), *dc = grad_cell.data_ptr<T>();
  T *dgate = grad_gates.data_ptr<T>(), *dold = grad_old_cell.data_ptr<T>();
  at::parallel_for(0, cell.size(0), kRowsForAThread, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const T* row = gate + 3 * b * state;
      T* drow = dgate + 3 * b * state;
      const int64_t first = b * state;
#pragma omp simd
      for (int64_t j = 0; j < state; ++j)
        cell_backward(row[j], row[state + j], row[2 * state + j], c[first + j], dh[first + j], dc[first + j], drow[j],
                      drow[state + j], drow[2 * state + j], dold[first + j]);
    }
  });
}

}  // namespace

// Returns the hidden state and the cell, and for backward the joined input and the gates.
std::vector<torch::Tensor> lltm_forward(torch::Tensor x, torch::Tensor old_hidden, torch::Tensor old_cell,
                                        torch::Tensor weight, torch::Tensor bias) {
  const auto joined = torch::cat({old_hidden, x}, 1);
  auto gates = joined.mm(weight.t());
  const auto old = old_cell.contiguous(), added = bias.contiguous();
  auto hidden = torch::empty_like(old), cell = torch::empty_like(old);
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "lltm_forward",
                             [&] { forward_rows<scalar_t>(gates, added, old, hidden, cell); });
  return {hidden, cell, joined, gates};
}

// Returns the gradients of x, old_hidden, old_cell, weight and bias, as far as they are needed.
std::vector<torch::Tensor> lltm_backward(torch::Tensor grad_hidden, torch::Tensor grad_cell, torch::Tensor cell,
                                         torch::Tensor joined, torch::Tensor gates, torch::Tensor weight,
                                         std::vector<bool> needed) {
  const auto dh = grad_hidden.contiguous(), dc = grad_cell.contiguous();  // they may be slices, or have stride 0
  auto grad_gates = torch::empty_like(gates), grad_old_cell = torch::empty_like(cell);
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "lltm_backward",
                             [&] { backward_rows<scalar_t>(gates, cell, dh, dc, grad_gates, grad_old_cell); });
  const int64_t state = cell.size(1), features = joined.size(1) - state;
  torch::Tensor grad_x, grad_old_hidden, grad_weight, grad_bias;
  if (needed[0]) grad_x = grad_gates.mm(weight.narrow(1, state, features));
  if (needed[1]) grad_old_hidden = grad_gates.mm(weight.narrow(1, 0, state));
  if (needed[3]) grad_weight = grad_gates.t().mm(joined);
  if (needed[4]) grad_bias = grad_gates.sum(0);
  return {grad_x, grad_old_hidden, grad_old_cell, grad_weight, grad_bias};
}
