// Launching kernels: what every launcher of CUDA kernels includes, before anything else.
//
// `launch(kernel, blocks, threads, arguments)` runs a kernel on torch's current stream of the call's GPU, or, built with
// OPWRIGHT_CUDA_ON_HOST, on the processor before it returns. What goes wrong is raised in words.
#pragma once

#define OPWRIGHT_CUDA
#include "opwright/cuda/call.h"
#include "opwright/cuda/kernels.h"
#include "opwright/launch.h"

#ifdef OPWRIGHT_CUDA_ON_HOST
#include "opwright/cuda/host/launch.h"
#else
#include "opwright/cuda/gpu/launch.h"
#endif
