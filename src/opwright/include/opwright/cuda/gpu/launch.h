// Launching kernels on a GPU, on torch's current stream.
//
// A launch neither allocates nor synchronises, so it works on any stream and in CUDA graph capture. The first launch
// loads the kernel, which relaxed capture mode allows.
#pragma once

#include "opwright/cuda/gpu/loading.h"

namespace opwright::cuda {
namespace detail {

inline void launch(Kernel& kernel, Shape blocks, Shape threads, std::size_t shared_bytes, void* given) {
  constexpr std::size_t usual_shared_bytes = 48u << 10;
  constexpr int most_shared_attribute = 8;
  const int index = here().index;
  if (index < 0 || index >= most_devices)
    refuse("cuda:%d is none of the %d GPUs that kernels run on", index, most_devices);
  const Current current(index);
  const Function function = function_of(kernel, index);
  if (shared_bytes > usual_shared_bytes)
    driver().demand(driver().cuFuncSetAttribute(function, most_shared_attribute, int(shared_bytes)),
                    "kernel %s cannot have %zu bytes of shared memory on cuda:%d", kernel.name, shared_bytes, index);
  void* stream = nullptr;
  if (driver().current_stream(index, &stream) != 0)
    refuse("cannot launch kernel %s: PyTorch does not tell the current stream of cuda:%d", kernel.name, index);
  void* parameters[] = {given};
  driver().demand(
      driver().cuLaunchKernel(function, unsigned(blocks.x), unsigned(blocks.y), unsigned(blocks.z), unsigned(threads.x),
                              unsigned(threads.y), unsigned(threads.z), unsigned(shared_bytes),
                              static_cast<Stream>(stream), parameters, nullptr),
      "cannot launch kernel %s on cuda:%d with %lld×%lld×%lld blocks of %lld×%lld×%lld threads and %zu bytes "
      "of shared memory",
      kernel.name, index, (long long)blocks.x, (long long)blocks.y, (long long)blocks.z, (long long)threads.x,
      (long long)threads.y, (long long)threads.z, shared_bytes);
}

}  // namespace detail

template <class Arguments>
inline bool launch(Kernel& kernel, Shape blocks, Shape threads, const Arguments& given, std::size_t shared_bytes = 0) {
  static_assert(sizeof(Arguments) <= 4096, "a kernel takes at most 4096 bytes of arguments");
  static_assert(__is_trivially_copyable(Arguments), "a kernel takes plain values");
  if (blocks.x * blocks.y * blocks.z == 0) return true;
  detail::launch(kernel, blocks, threads, shared_bytes, const_cast<Arguments*>(&given));
  return true;
}

}  // namespace opwright::cuda
