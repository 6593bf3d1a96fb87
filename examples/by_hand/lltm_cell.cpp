// The cell as kernels over pointers. Gates and gradients lie row by row, three gates of `state` elements in a row.
#include <cstdint>

#include "lltm_cell.h"

template <class T>
void lltm_cell_forward(const T* gates, const T* old_cell, T* hidden, T* cell, int64_t old_cell_size_0,
                       int64_t old_cell_size_1) {
  const int64_t rows = old_cell_size_0, state = old_cell_size_1;
  for (int64_t b = 0; b < rows; ++b) {
    const T* row = gates + 3 * b * state;
#pragma omp simd
    for (int64_t j = 0; j < state; ++j) {
      const int64_t k = b * state + j;
      cell_forward(row[j], row[state + j], row[2 * state + j], old_cell[k], hidden[k], cell[k]);
    }
  }
}

template <class T>
void lltm_cell_backward(const T* gates, const T* cell, const T* grad_hidden, const T* grad_cell, T* grad_gates,
                        T* grad_old_cell, int64_t old_cell_size_0, int64_t old_cell_size_1) {
  const int64_t rows = old_cell_size_0, state = old_cell_size_1;
  for (int64_t b = 0; b < rows; ++b) {
    const T* row = gates + 3 * b * state;
    T* grad_row = grad_gates + 3 * b * state;
#pragma omp simd
    for (int64_t j = 0; j < state; ++j) {
      const int64_t k = b * state + j;
      cell_backward(row[j], row[state + j], row[2 * state + j], cell[k], grad_hidden[k], grad_cell[k], grad_row[j],
                    grad_row[state + j], grad_row[2 * state + j], grad_old_cell[k]);
    }
  }
}
