// Launching kernels that nvcc has compiled, on torch's current stream of the call's GPU.
#pragma once

#include <cuda_runtime_api.h>

#include <cstdio>

#include "opwright/cuda/kernels.h"
#include "opwright/device.h"

extern "C" int32_t aoti_torch_get_current_cuda_stream(int32_t device_index, void** stream);

namespace opwright::cuda {
namespace detail {

// Raise an error with a message.
template <class... Values>
inline void refuse(const char* format, Values... values) {
  char text[512];
  std::snprintf(text, sizeof text, format, values...);
  aoti_torch_check(false, "launch", "opwright/cuda/runtime/launch.h", 0, text);
}

// Raise unless a function of CUDA's runtime has succeeded.
inline void demand(cudaError_t status, const char* kernel, int device) {
  if (status == cudaSuccess) return;
  refuse("cannot launch kernel %s on cuda:%d: %s (%s)", kernel, device, cudaGetErrorString(status),
         cudaGetErrorName(status));
}

// Makes a GPU the current one while it lives. One that is current is left alone: setting it again makes a context there.
class Current {
 public:
  Current(const char* kernel, int device) {
    demand(cudaGetDevice(&outer_), kernel, device);
    if (outer_ == device) return;
    demand(cudaSetDevice(device), kernel, device);
    switched_ = true;
  }
  Current(const Current&) = delete;
  ~Current() {
    if (switched_) cudaSetDevice(outer_);
  }

 private:
  int outer_ = 0;
  bool switched_ = false;
};

// The stream that torch has made the current one.
inline cudaStream_t current_stream(const char* kernel, int device) {
  void* stream = nullptr;
  if (aoti_torch_get_current_cuda_stream(device, &stream) != 0)
    refuse("cannot launch kernel %s: PyTorch does not tell the current stream of cuda:%d", kernel, device);
  return static_cast<cudaStream_t>(stream);
}

inline dim3 shape(Shape given) { return dim3(unsigned(given.x), unsigned(given.y), unsigned(given.z)); }

}  // namespace detail

template <class Arguments>
inline bool launch(Kernel& kernel, Shape blocks, Shape threads, const Arguments& given, std::size_t shared_bytes = 0) {
  static_assert(sizeof(Arguments) <= 4096, "a kernel takes at most 4096 bytes of arguments");
  if (blocks.x * blocks.y * blocks.z == 0) return true;
  const int device = here().index;
  const detail::Current current(kernel.name, device);
  const cudaStream_t stream = detail::current_stream(kernel.name, device);
  void* parameters[] = {const_cast<Arguments*>(&given)};
  detail::demand(cudaLaunchKernel(kernel.function, detail::shape(blocks), detail::shape(threads), parameters,
                                  shared_bytes, stream),
                 kernel.name, device);
  return true;
}

}  // namespace opwright::cuda
