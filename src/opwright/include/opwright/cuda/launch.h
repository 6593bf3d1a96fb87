// Launching kernels: what every launcher of CUDA kernels includes, before anything else.
//
// `launch(kernel, blocks, threads, arguments)` runs a kernel on torch's current stream of the call's GPU, or, built with
// OPWRIGHT_CUDA_ON_HOST, on the processor before it returns. With OPWRIGHT_CUDA_RUNTIME kernels are functions that nvcc has
// compiled, as in ejected projects. Failures are raised with a message.
#pragma once

#define OPWRIGHT_CUDA
#include "opwright/cuda/call.h"
#include "opwright/cuda/kernels.h"
#include "opwright/launch.h"

#ifdef OPWRIGHT_CUDA_ON_HOST
#include "opwright/cuda/host/launch.h"
#elif defined(OPWRIGHT_CUDA_RUNTIME)
#include "opwright/cuda/runtime/launch.h"
#else
#include "opwright/cuda/gpu/launch.h"
#endif
