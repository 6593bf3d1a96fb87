// Kernels as a launcher refers to them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace opwright {
namespace cuda {

#ifdef OPWRIGHT_CUDA_RUNTIME
// A function that nvcc has compiled and the linker finds.
struct Kernel {
  const void* function;
  const char* name;
};
#else
// Compiled kernels: "sm_90" is machine code for a compute capability, "compute_90" is PTX, which the driver compiles.
struct Image {
  const char* target;  // null after the last one
  const unsigned char* bytes;
};

constexpr int most_devices = 64;

struct Kernel {
  const Image* images;
  const char* name;
  void* functions[most_devices];  // by device, after the first launch there
};
#endif

// The size of a grid or of a block.
struct Shape {
  std::int64_t x, y, z;
  constexpr Shape(std::int64_t x, std::int64_t y = 1, std::int64_t z = 1) : x(x), y(y), z(z) {}
};

}  // namespace cuda

#ifndef OPWRIGHT_CUDA_RUNTIME
// The images of a library, in a file that opwright/toolchain writes.
extern const cuda::Image kernel_images[];
#endif

}  // namespace opwright
