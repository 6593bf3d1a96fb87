// The cell in CUDA, forward and backward: a thread for each element of the state. The product is left to the library.
template <class T>
__device__ T sigmoid(T x) {
  return T(1) / (T(1) + exp(-x));
}

template <class T>
__device__ T elu(T x) {
  return x > 0 ? x : expm1(x);
}

// The elements of a thread: it goes on in steps of the whole grid, so that any number of blocks will do.
#define FOR_EACH_ELEMENT(k, count)                                                        \
  for (long long k = blockIdx.x * static_cast<long long>(blockDim.x) + threadIdx.x; k < (count); \
       k += static_cast<long long>(gridDim.x) * blockDim.x)

template <class T>
__global__ void lltm_cell_forward(const T* gates, const T* old_cell, T* hidden, T* cell, long long old_cell_size_1,
                                  long long n) {
  const long long state = old_cell_size_1;
  FOR_EACH_ELEMENT(k, n) {
    const T* i = gates + k / state * 3 * state + k % state;
    const T moved = old_cell[k] + elu(i[2 * state]) * sigmoid(i[0]);
    cell[k] = moved;
    hidden[k] = tanh(moved) * sigmoid(i[state]);
  }
}

template <class T>
__global__ void lltm_cell_backward(const T* gates, const T* cell, const T* grad_hidden, const T* grad_cell,
                                   T* grad_gates, T* grad_old_cell, long long old_cell_size_1, long long n) {
  const long long state = old_cell_size_1;
  FOR_EACH_ELEMENT(k, n) {
    const long long place = k / state * 3 * state + k % state;
    const T in = sigmoid(gates[place]), out = sigmoid(gates[place + state]), g = gates[place + 2 * state];
    const T candidate = elu(g), bent = tanh(cell[k]);
    const T moved = grad_cell[k] + grad_hidden[k] * out * (1 - bent * bent);
    grad_gates[place] = moved * candidate * in * (1 - in);
    grad_gates[place + state] = grad_hidden[k] * bent * out * (1 - out);
    grad_gates[place + 2 * state] = moved * in * (g > 0 ? T(1) : candidate + 1);
    grad_old_cell[k] = moved;
  }
}
