// Kernels as one writes them for a GPU, for the tests of host execution: right ones, and some with a fault each.
#define EXPORTED extern "C" __global__ void

struct scale_arguments {
  const float* x;
  float* y;
  long long count;
};

// Four at a time, then the rest; grid-stride.
EXPORTED __launch_bounds__(128) scale(const __grid_constant__ scale_arguments a) {
  const long long stride = (long long)gridDim.x * blockDim.x, first = blockIdx.x * (long long)blockDim.x + threadIdx.x;
#pragma unroll
  for (long long k = first; k < a.count / 4; k += stride) {
    const float4 x = __ldg(reinterpret_cast<const float4*>(a.x) + k);
    reinterpret_cast<float4*>(a.y)[k] = make_float4(2 * x.x, 2 * x.y, 2 * x.z, 2 * x.w);
  }
  for (long long k = a.count / 4 * 4 + first; k < a.count; k += stride) a.y[k] = 2 * a.x[k];
}

__device__ __forceinline__ float warp_sum(float value) {
  for (int distance = warpSize / 2; distance > 0; distance /= 2)
    value += __shfl_xor_sync(0xffffffffu, value, distance);
  return value;
}

// The sum of one row to a block, by shuffles and shared memory.
EXPORTED row_sums(const float* x, float* sums, int columns) {
  __shared__ float parts[32];
  float sum = 0;
  for (int column = threadIdx.x; column < columns; column += blockDim.x) sum += x[blockIdx.x * columns + column];
  sum = warp_sum(sum);
  if (threadIdx.x % warpSize == 0) parts[threadIdx.x / warpSize] = sum;
#ifndef WITHOUT_BARRIER
  __syncthreads();
#endif
  if (threadIdx.x < warpSize) {
    const float total = warp_sum(threadIdx.x < blockDim.x / warpSize ? parts[threadIdx.x] : 0.0f);
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
  }
}

// Sums of columns: a tile of 32 rows of 32 columns at a time, added up in order.
EXPORTED column_sums(const float* x, float* sums, int rows, int columns) {
  __shared__ float tile[32][33];
  const int column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  for (int row = threadIdx.y; row < rows; row += blockDim.y)
    if (column < columns) sum += x[row * columns + column];
  tile[threadIdx.y][threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.y == 0 && column < columns) {
    for (int row = 1; row < int(blockDim.y); ++row) sum += tile[row][threadIdx.x];
    sums[column] = sum;
  }
}

// Each block turned round, through the shared memory of the launch.
EXPORTED reversed(const double* x, double* y) {
  double* const kept = opwright::dynamic_shared<double>();
  const int place = blockIdx.x * blockDim.x + threadIdx.x;
  kept[threadIdx.x] = x[place];
  __syncthreads();
  y[place] = kept[blockDim.x - 1 - threadIdx.x];
}

// What the lanes of a warp can tell each other; eight values for each thread.
EXPORTED exchanges(int* y) {
  const int lane = threadIdx.x % 32, value = 100 + lane;
  int* found = y + threadIdx.x * 8;
  found[0] = __shfl_sync(0xffffffffu, value, 5);
  found[1] = __shfl_sync(0xffffffffu, value, 3, 8);
  found[2] = __shfl_up_sync(0xffffffffu, value, 3);
  found[3] = __shfl_down_sync(0xffffffffu, value, 3, 16);
  found[4] = __shfl_xor_sync(0xffffffffu, value, 1);
  found[5] = int(__ballot_sync(0xffffffffu, lane % 3 == 0));
  found[6] = __any_sync(0xffffffffu, lane == 9) + 2 * __all_sync(0xffffffffu, lane < 31);
  found[7] = lane < 8 ? __shfl_sync(0xffu, value, 7) : -1;
}

EXPORTED votes(int* y) {
  const int odd = threadIdx.x % 2;
  y[threadIdx.x] = __syncthreads_count(odd) + 1000 * __syncthreads_or(threadIdx.x == 3) + 2000 * __syncthreads_and(odd);
}

// Functions of the C library and of CUDA, in double and in float.
EXPORTED functions(const double* x, double* y) {
  const int k = threadIdx.x;
  const float f = float(x[k]);
  y[4 * k] = tanh(x[k]) + rsqrt(x[k]) + erf(x[k]) + max(x[k], 1.0);
  y[4 * k + 1] = __uint_as_float(__float_as_uint(f)) + double(__popc(255u << k)) + __clz(1 << k);
  y[4 * k + 2] = expf(f) - exp(f) + fmaxf(f, 0.0f) - __fmul_rn(f, 1.0f);
  y[4 * k + 3] = double(__umulhi(1u << 31, 1u << k)) + __fmaf_rn(f, 2.0f, 1.0f) - isnan(f);
}

EXPORTED counted(float* total, int* most, unsigned* bits) {
  atomicAdd(total, float(threadIdx.x));
  atomicMax(most, int(threadIdx.x + blockIdx.x));
  atomicOr(bits, 1u << threadIdx.x % 32);
}

// The indices of a thread in three dimensions.
EXPORTED places(unsigned* y) {
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  y[block * blockDim.x * blockDim.y * blockDim.z + thread] = thread + 100 * block;
}

// Shared memory that nobody has written to.
EXPORTED unwritten(float* y) {
  __shared__ float never[64];
  y[threadIdx.x] = never[threadIdx.x];
  never[threadIdx.x] = 1;
}

// Reads what its neighbour writes without waiting for him.
EXPORTED neighbour(const float* x, float* y) {
  __shared__ float kept[64];
  const int place = blockIdx.x * blockDim.x + threadIdx.x;
  kept[threadIdx.x] = x[place];
  y[place] = kept[(threadIdx.x + blockDim.x - 1) % blockDim.x];
}

EXPORTED too_few_at_the_barrier(float* y) {
  if (threadIdx.x < 40) __syncthreads();
  y[threadIdx.x] = 1;
}

EXPORTED at_different_barriers(float* y) {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
  y[threadIdx.x] = 1;
}

EXPORTED half_a_warp(float* y) {
  if (threadIdx.x % 32 < 16)
    y[threadIdx.x] = __shfl_sync(0xffffffffu, 1.0f, 0);
  else
    __syncthreads();
}

EXPORTED not_in_its_mask(float* y) { y[threadIdx.x] = __shfl_sync(0x1u, 1.0f, 0); }

EXPORTED past_shared_memory(float* y) {
  __shared__ float kept[32];
  kept[threadIdx.x + 1] = 1;
  __syncthreads();
  y[threadIdx.x] = kept[threadIdx.x];
}

EXPORTED past_global_memory(float* y) { y[threadIdx.x + 1] = 1; }
