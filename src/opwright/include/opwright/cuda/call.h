// The current GPU, for the duration of an operator's call.
#pragma once

#include "opwright/tensor.h"

namespace opwright::cuda {

#ifdef OPWRIGHT_CUDA_ON_HOST
inline const int32_t kind = cpu;
#else
inline const int32_t kind = aoti_torch_device_type_cuda();
#endif

class Call {
 public:
  // The device of the first tensor; for tensors elsewhere, the launcher falls through.
  template <int count>
  explicit Call(const Tensor (&given)[count]) : outer_(device_of_call) {
    device_of_call = given[0].device();
    if (device_of_call.type != kind) device_of_call = {-1, -1};
  }
  Call(const Call&) = delete;
  ~Call() { device_of_call = outer_; }

 private:
  const Device outer_;
};

}  // namespace opwright::cuda
