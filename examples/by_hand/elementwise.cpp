// Kernels over pointers: `const` ones are read, the others are written, and `n` is how many elements there are.
#include <cstdint>

#include "opwright/vmath.h"  // exp and sigmoid that compilers vectorise

template <class T>
void exp_forward(const T* x, T* y, int64_t n) {
  for (int64_t k = 0; k < n; ++k) y[k] = opwright::exp(x[k]);
}

template <class T>
void exp_backward(const T* y, const T* grad_y, T* grad_x, int64_t n) {
  for (int64_t k = 0; k < n; ++k) grad_x[k] = grad_y[k] * y[k];
}

template <class T>
void sigmoid_forward(const T* x, T* y, int64_t n) {
  for (int64_t k = 0; k < n; ++k) y[k] = opwright::sigmoid(x[k]);
}

template <class T>
void sigmoid_backward(const T* y, const T* grad_y, T* grad_x, int64_t n) {
  for (int64_t k = 0; k < n; ++k) grad_x[k] = grad_y[k] * (1 - y[k]) * y[k];
}

template <class T>
void cube_forward(const T* x, T* y, T* slope, int64_t n) {
  for (int64_t k = 0; k < n; ++k) {
    y[k] = x[k] * x[k] * x[k];
    slope[k] = 3 * x[k] * x[k];
  }
}

template <class T>
void cube_backward(const T* slope, const T* grad_y, T* grad_x, int64_t n) {
  for (int64_t k = 0; k < n; ++k) grad_x[k] = grad_y[k] * slope[k];
}

template <class T>
void mul_constant_forward(const T* x, T* y, double c, int64_t n) {
  for (int64_t k = 0; k < n; ++k) y[k] = x[k] * T(c);
}

template <class T>
void mul_constant_backward(const T* grad_y, T* grad_x, double c, int64_t n) {
  for (int64_t k = 0; k < n; ++k) grad_x[k] = grad_y[k] * T(c);
}
