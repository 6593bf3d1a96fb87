// One step of LLTM over torch::Tensor: products by the library, the cell in a loop of ours.
#include <torch/extension.h>

#include <vector>

#include "lltm_cell.h"

namespace {

constexpr int64_t kRowsForAThread = 64;

template <class T>
void forward_rows(const torch::Tensor& gates, const torch::Tensor& old_cell, torch::Tensor& hidden,
                  torch::Tensor& cell) {
  const int64_t state = old_cell.size(1);
  const T *gate = gates.data_ptr<T>(), *old = old_cell.data_ptr<T>();
  T *h = hidden.data_ptr<T>(), *c = cell.data_ptr<T>();
  at::parallel_for(0, old_cell.size(0), kRowsForAThread, [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      const T* row = gate + 3 * b * state;
      for (int64_t j = 0, k = b * state; j < state; ++j, ++k)
        cell_forward(row[j], row[state + j], row[2 * state + j], old[k], h[k], c[k]);
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
      for (int64_t j = 0, k = b * state; j < state; ++j, ++k)
        cell_backward(row[j], row[state + j], row[2 * state + j], c[k], dh[k], dc[k], drow[j], drow[state + j],
                      drow[2 * state + j], dold[k]);
    }
  });
}

}  // namespace

// Returns the hidden state and the cell, and for backward the joined input and the gates.
std::vector<torch::Tensor> lltm_forward(torch::Tensor x, torch::Tensor old_hidden, torch::Tensor old_cell,
                                        torch::Tensor weight, torch::Tensor bias) {
  const auto joined = torch::cat({old_hidden, x}, 1);
  const auto gates = torch::addmm(bias, joined, weight.t());
  const auto old = old_cell.contiguous();
  auto hidden = torch::empty_like(old), cell = torch::empty_like(old);
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "lltm_forward",
                             [&] { forward_rows<scalar_t>(gates, old, hidden, cell); });
  return {hidden, cell, joined, gates};
}

// Returns the gradients of x, old_hidden, old_cell, weight and bias.
std::vector<torch::Tensor> lltm_backward(torch::Tensor grad_hidden, torch::Tensor grad_cell, torch::Tensor cell,
                                         torch::Tensor joined, torch::Tensor gates, torch::Tensor weight) {
  const auto dh = grad_hidden.contiguous(), dc = grad_cell.contiguous();  // they may be slices, or have stride 0
  auto grad_gates = torch::empty_like(gates), grad_old_cell = torch::empty_like(cell);
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "lltm_backward",
                             [&] { backward_rows<scalar_t>(gates, cell, dh, dc, grad_gates, grad_old_cell); });
  const auto grad_joined = grad_gates.mm(weight);
  const int64_t state = cell.size(1);
  return {grad_joined.narrow(1, state, joined.size(1) - state), grad_joined.narrow(1, 0, state), grad_old_cell,
          grad_gates.t().mm(joined), grad_gates.sum(0)};
}
