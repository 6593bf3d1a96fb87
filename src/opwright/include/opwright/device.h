// The device of a call: the processor, or, in a launcher of CUDA kernels, the GPU of that call.
#pragma once

#include "opwright/once.h"
#include "opwright/shim.h"

namespace opwright {

#ifdef OPWRIGHT_WALKS_APART
extern const int32_t cpu;
#else
inline const int32_t cpu = aoti_torch_device_type_cpu();
#endif

struct Device {
  int32_t type, index;
};

#ifdef OPWRIGHT_CUDA
inline thread_local Device device_of_call = {-1, -1};  // set by opwright/cuda/call.h
inline Device here() { return device_of_call; }
#else
inline Device here() { return {cpu, 0}; }
#endif

// There is one CPU, whatever index torch gives.
inline Device device_of(AtenTensorHandle tensor) {
  Device device = {};
  aoti_torch_get_device_type(tensor, &device.type);
  if (device.type != cpu) aoti_torch_get_device_index(tensor, &device.index);
  return device;
}

inline bool is_here(AtenTensorHandle tensor) {
  const Device device = device_of(tensor);
  return device.type == here().type && device.index == here().index;
}

}  // namespace opwright
