// Loading kernels: once per GPU, from the image for it.
#pragma once

#include <pthread.h>

#include <cstdlib>

#include "opwright/cuda/gpu/driver.h"

namespace opwright::cuda {
namespace detail {

// The compute capability of a GPU: 90 for 9.0.
inline int capability(int index) {
  constexpr int major_attribute = 75, minor_attribute = 76;
  int device = 0, major = 0, minor = 0;
  driver().demand(driver().cuDeviceGet(&device, index), "there is no GPU cuda:%d", index);
  driver().cuDeviceGetAttribute(&major, major_attribute, device);
  driver().cuDeviceGetAttribute(&minor, minor_attribute, device);
  return 10 * major + minor;
}

// The image for a GPU: machine code of its major version, else PTX that is not newer than the GPU; the newest of these.
inline const Image& choose(const Image* images, int capability) {
  const Image* chosen = nullptr;
  int best = -1;
  char known[512] = "";
  int length = 0;
  for (const Image* image = images; image->target; ++image) {
    const bool machine_code = image->target[0] == 's';
    const int version = std::atoi(image->target + (machine_code ? sizeof "sm_" : sizeof "compute_") - 1);
    length += std::snprintf(known + length, sizeof known - length, " %s", image->target);
    if (version > capability || (machine_code && version / 10 != capability / 10)) continue;
    const int rank = version + (machine_code ? 10000 : 0);
    if (rank > best) best = rank, chosen = image;
  }
  if (!chosen)
    refuse("there are kernels for%s, and none for a GPU of compute capability %d.%d", known, capability / 10,
           capability % 10);
  return *chosen;
}

// A kernel on the device whose context is current.
inline Function load(const Kernel& kernel, int index) {
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  static Module modules[most_devices] = {};  // of this library, which has one set of images
  struct Turn {
    Turn() { pthread_mutex_lock(&mutex); }
    ~Turn() { pthread_mutex_unlock(&mutex); }
  } const turn;
  constexpr int relaxed = 2;
  struct Uncaptured {
    int mode = relaxed;
    Uncaptured() { driver().cuThreadExchangeStreamCaptureMode(&mode); }
    ~Uncaptured() { driver().cuThreadExchangeStreamCaptureMode(&mode); }
  } const uncaptured;
  if (!modules[index]) {
    const Image& image = choose(kernel.images, capability(index));
    Module module = nullptr;
    driver().demand(driver().cuModuleLoadData(&module, image.bytes), "cannot load the kernels for %s on cuda:%d",
                    image.target, index);
    modules[index] = module;
  }
  Function function = nullptr;
  driver().demand(driver().cuModuleGetFunction(&function, modules[index], kernel.name),
                  "cannot load kernel %s on cuda:%d", kernel.name, index);
  return function;
}

inline Function function_of(Kernel& kernel, int index) {
  if (void* const found = __atomic_load_n(&kernel.functions[index], __ATOMIC_ACQUIRE))
    return static_cast<Function>(found);
  const Function loaded = load(kernel, index);
  __atomic_store_n(&kernel.functions[index], static_cast<void*>(loaded), __ATOMIC_RELEASE);
  return loaded;
}

}  // namespace detail
}  // namespace opwright::cuda
