// What launchers of ejected projects use of CUDA's runtime library: its wheel does not have all headers of its own.
#pragma once

#include <cstddef>

enum cudaError_t { cudaSuccess };
struct CUstream_st;
using cudaStream_t = CUstream_st*;
struct dim3 {
  unsigned x, y, z;
  dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};

extern "C" {
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);
cudaError_t cudaLaunchKernel(const void* function, dim3 blocks, dim3 threads, void** given, std::size_t shared_bytes,
                             cudaStream_t stream);
}
