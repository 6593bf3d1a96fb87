// CUDA kernels on the processor: include this before the text of a .cu file, and a C++ compiler takes it.
//
//   g++ -x c++ -include opwright/cuda/host_execution.h kernels.cu
//
// Blocks, threads, barriers, shuffles, votes, shared memory, vector types and CUDA's own functions do what they do on a
// GPU, in an order that is always the same, so that kernels can be compared with a reference and run under sanitizers:
// `-fsanitize=thread` finds a missing barrier, `-fsanitize=address -fsanitize-sections=opwright_shared` an access out
// of bounds. A barrier that some threads do not reach is an error. docs/decisions/0021 says why we have a header of our
// own.  Not supported: half types (see opwright/half.h), textures, cooperative groups, inline PTX, `extern __shared__`
// (see opwright/cuda/dynamic_shared.h), and shared variables in inline functions that are no templates.
#pragma once

#include "opwright/cuda/host/block.h"
#include "opwright/cuda/host/collectives.h"
#include "opwright/cuda/host/intrinsics.h"
#include "opwright/cuda/host/vectors.h"

#define __global__ __attribute__((visibility("default")))
#define __device__
#define __host__
#define __constant__ static
#define __shared__ static __attribute__((section("opwright_shared")))
#define __grid_constant__
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __align__(bytes) __attribute__((aligned(bytes)))
#ifndef __clang__
#define __builtin_assume(condition)
#endif

#include "opwright/cuda/dynamic_shared.h"

namespace opwright::cuda::host {

// Run a kernel: `run("scale", scale, grid, block, shared_bytes, arguments...)`.
template <class... Parameters, class... Arguments>
inline void run(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 threads, std::size_t shared_bytes,
                const Arguments&... arguments) {
  const auto body = [&] { kernel(arguments...); };
  using Body = decltype(body);
  block.run(name, grid, threads, shared_bytes, [](const void* context) { (*static_cast<Body*>(context))(); }, &body);
}

}  // namespace opwright::cuda::host
