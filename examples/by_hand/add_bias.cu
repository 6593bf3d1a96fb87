// One thread for each (batch, feature); blocks go along the features.
template <class T>
__global__ void add_bias(const T* product, const T* bias, T* y, long long product_size_0, long long product_size_1) {
  const long long b = blockIdx.y, n = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x;
  if (b < product_size_0 && n < product_size_1) y[b * product_size_1 + n] = product[b * product_size_1 + n] + bias[n];
}
