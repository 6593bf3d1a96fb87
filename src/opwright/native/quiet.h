// Whether a call is plain, as in binding/environment.py: ordinary dense tensors, and no mode is active.
#pragma once

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/Tensor.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <c10/core/impl/TorchDispatchModeTLS.h>
#include <torch/csrc/jit/frontend/tracer.h>

namespace opwright {

inline bool is_transformed() {
  return c10::impl::tls_local_dispatch_key_set().included_.has(c10::DispatchKey::FuncTorchDynamicLayerFrontMode);
}

// Kernels are derived under these; guards compare which of them it was.
inline bool is_default_dtype_served() {
  const at::ScalarType dtype = c10::get_default_dtype_as_scalartype();
  return dtype == at::kFloat || dtype == at::kDouble;
}

// Whether a mode must see the operations of the reference one by one.
inline bool is_overheard() {
  // Autocast is on for a kind of device if its dispatch key is not excluded.
  const bool is_autocast = !(c10::autocast_dispatch_keyset - c10::impl::tls_local_dispatch_key_set().excluded_).empty();
  return is_autocast || c10::impl::TorchDispatchModeTLS::any_modes_set() ||
         at::impl::PythonTorchFunctionTLS::stack_len() > 0 || !is_default_dtype_served() ||
         torch::jit::tracer::isTracing();
}

inline bool is_quiet() { return !(is_overheard() || is_transformed()); }

// In forward mode there is only one level of tangents. In a batch of the legacy vmap, which gradcheck still uses, there
// may be hidden tangents.
inline bool has_tangent(const at::Tensor& tensor) {
  return tensor._fw_grad(/*level=*/0).defined() || tensor.key_set().has(c10::DispatchKey::Batched);
}

}  // namespace opwright
