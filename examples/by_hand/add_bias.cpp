// The forward kernel alone: the backward pass is derived, kernels and all. The product may lie in memory in any way.
#include <cstdint>

template <class T>
void add_bias(const T* product, const T* bias, T* y, int64_t product_size_0, int64_t product_size_1,
              int64_t product_stride_0, int64_t product_stride_1) {
  for (int64_t b = 0; b < product_size_0; ++b)
    for (int64_t n = 0; n < product_size_1; ++n)
      y[b * product_size_1 + n] = product[b * product_stride_0 + n * product_stride_1] + bias[n];
}
