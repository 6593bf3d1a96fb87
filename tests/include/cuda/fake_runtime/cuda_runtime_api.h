// CUDA's runtime of GPUs that do not exist: it writes down what it is asked.
#pragma once
#include <cstddef>
#include <cstdio>

using cudaError_t = int;
using cudaStream_t = struct CUstream_st*;
constexpr cudaError_t cudaSuccess = 0;
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x, unsigned y, unsigned z) : x(x), y(y), z(z) {}
};
inline int current_device = 0;

inline cudaError_t cudaGetDevice(int* device) { return *device = current_device, 0; }
inline cudaError_t cudaSetDevice(int device) {
  current_device = device;
  return std::printf("set %d\n", device), device < 2 ? 0 : 101;
}
inline const char* cudaGetErrorString(cudaError_t) { return "invalid device ordinal"; }
inline const char* cudaGetErrorName(cudaError_t) { return "cudaErrorInvalidDevice"; }
inline cudaError_t cudaLaunchKernel(const void*, dim3 blocks, dim3 threads, void**, std::size_t shared_bytes,
                                    cudaStream_t stream) {
  return std::printf("launch %ux%ux%u %ux%ux%u %zu on %ld\n", blocks.x, blocks.y, blocks.z, threads.x, threads.y,
                     threads.z, shared_bytes, reinterpret_cast<long>(stream)),
         0;
}
