// The library of a package: it chooses and loads the kernels for this processor, and serves operators in C++ programs.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <stdexcept>
#include <string>

#include "opwright/launch.h"

extern "C" {
bool aoti_torch_grad_mode_is_enabled();
uint64_t aoti_torch_abi_version();
}

#define OPWRIGHT_VISIBLE __attribute__((visibility("default")))

namespace opwright {

// The folder of this library, with a slash at the end.
inline std::string folder() {
  Dl_info found{};
  dladdr(reinterpret_cast<const void*>(&folder), &found);
  const std::string path = found.dli_fname ? found.dli_fname : "";
  return path.substr(0, path.rfind('/') + 1);
}

// A level of processors: the library of its kernels, the least ATEN_CPU_CAPABILITY that allows it, and whether this
// processor supports it.
struct Level {
  const char* name;
  const char* capability;
  bool fits;
};

// The kernels of the best supported level, loaded from the folder of this library.
class Kernels {
 public:
  Kernels(std::initializer_list<Level> levels) {
    if (aoti_torch_abi_version() < torch_target) {
      failure_ = "this torch is older than they are made for";
      return;
    }
    for (const Level& level : levels) {
      if (!level.fits || !is_allowed(level.capability)) continue;
      const std::string path = folder() + level.name + ".so";
      if (dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
        level_ = level.name;
      } else {
        failure_ = dlerror();
      }
      return;
    }
    failure_ = "this processor lacks instructions that every one of its kernels uses";
  }
  const char* level() const { return level_; }
  const char* failure() const { return failure_.empty() ? nullptr : failure_.c_str(); }

 private:
  // torch reads the same variable to disable instructions that the processor has.
  static bool is_allowed(const char* capability) {
    const char* const asked = std::getenv("ATEN_CPU_CAPABILITY");
    return !asked || rank(capability) <= rank(asked);
  }
  static int rank(const char* capability) {
    return !std::strcmp(capability, "") || !std::strcmp(capability, "default") ? 0
           : !std::strcmp(capability, "avx2")                                  ? 1
                                                                               : 2;
  }

  const char* level_ = nullptr;
  std::string failure_;
};

// Kernels for GPUs: libraries in the same folder, loaded only if torch is built with CUDA.
class CudaKernels {
 public:
  CudaKernels(std::initializer_list<const char*> libraries) {
    if (libraries.size() == 0 || !has_cuda() || aoti_torch_abi_version() < torch_target) return;
    for (const char* const library : libraries) {
      if (dlopen((folder() + library).c_str(), RTLD_NOW | RTLD_LOCAL)) continue;
      failure_ = dlerror();
      return;
    }
    loaded_ = true;
  }
  bool loaded() const { return loaded_; }
  const char* failure() const { return failure_.empty() ? nullptr : failure_.c_str(); }

 private:
  static bool has_cuda() {
#ifdef OPWRIGHT_CUDA_ON_HOST
    return true;
#else
    return dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
#endif
  }

  bool loaded_ = false;
  std::string failure_;
};

[[noreturn]] inline void refuse(const char* name, const std::string& reason) {
  throw std::runtime_error(std::string(name) + " cannot run here: " + reason);
}

inline std::string described(const Tensor& tensor) {
  std::string text = "[";
  for (int dimension = 0; dimension < tensor.rank(); ++dimension)
    text += (dimension ? ", " : "") + std::to_string(tensor.size(dimension));
  return text + "]";
}

template <std::size_t count>
[[noreturn]] inline void refuse(const char* name, const Kernels& kernels, const Tensor (&tensors)[count]) {
  if (kernels.failure()) refuse(name, std::string("its kernels are not loaded: ") + kernels.failure());
  std::string reason = "it was built without a kernel for these dtypes, devices, layouts or constants, with sizes";
  for (const Tensor& tensor : tensors) reason += " " + described(tensor);
  refuse(name, reason + ", and its reference is in Python");
}

// Whether autograd records a tensor's operations, or it has a tangent. The stable interface does not tell, so this
// makes an alias and tests whether it is a leaf.
inline bool is_differentiated(const Tensor& tensor) {
  StableIValue dual[] = {pass(tensor), pass(Size(0))};
  if (!call("aten::_unpack_dual", "", dual)) return true;
  const Tensor primal = take_result(dual[0]), tangent = take_result(dual[1]);
  if (tangent) return true;
  if (!aoti_torch_grad_mode_is_enabled()) return false;
  StableIValue alias[] = {pass(tensor)};
  if (!call("aten::alias", "", alias)) return true;
  return !call("aten::is_leaf", "", alias) || !alias[0];
}

template <std::size_t count>
inline void refuse_derivatives(const char* name, const Tensor (&tensors)[count]) {
  for (const Tensor& tensor : tensors)
    if (is_differentiated(tensor))
      refuse(name, "it has derivatives in Python only; from C++ call it under torch::NoGradGuard");
}

template <std::size_t count>
inline bool are_nonempty(const Tensor (&tensors)[count]) {
  for (const Tensor& tensor : tensors)
    for (int dimension = 0; dimension < tensor.rank(); ++dimension)
      if (tensor.size(dimension) == 0) return false;
  return true;
}

template <std::size_t count>
inline bool are_row_major(const Tensor (&tensors)[count]) {
  for (const Tensor& tensor : tensors)
    if (!tensor.is_row_major()) return false;
  return true;
}

// Whether the dimensions of each lie in memory as they are written, as in a contiguous tensor or a slice of one: for
// others, results would lie otherwise than PyTorch is told.
template <std::size_t count>
inline bool lie_as_written(const Tensor (&tensors)[count]) {
  for (const Tensor& tensor : tensors)
    if (!tensor.lies_as_written()) return false;
  return true;
}

// Whether a constant is the one that a kernel is specialised to, bit for bit: 0.0 is not -0.0.
template <class T>
inline bool is_same(T argument, T written) {
  return __builtin_memcmp(&argument, &written, sizeof argument) == 0;
}

// A number on the dispatcher's stack, and as a kernel takes it.
inline double number(StableIValue value) {
  double result;
  __builtin_memcpy(&result, &value, sizeof result);
  return result;
}
template <class T>
inline StableIValue number_tensor(T value) {
  static_assert(sizeof value == 8, "a number is a double or an integer of 64 bits");
  Tensor result = allocate(T(0.5) == 0 ? int64 : float64, sizeof value, nullptr, 0);
  if (result) *result.at<T>(0) = value;
  return reinterpret_cast<StableIValue>(result.release());
}

// Run a kernel and put its first results on the operator's stack. False if a guard fails.
inline bool run(const char* kernel, std::initializer_list<StableIValue> operands, int made, StableIValue* stack,
                int outputs) {
  StableIValue slots[64];
  int count = 0;
  for (const StableIValue operand : operands) slots[count++] = operand;
  if (!call(kernel, "", slots)) return false;
  bool taken = true;
  for (int k = 0; k < made; ++k) {
    Tensor result = take_result(slots[k]);
    taken = taken && result;
    if (k < outputs) stack[k] = reinterpret_cast<StableIValue>(result.release());
  }
  return taken;
}

// Registers an operator at the dispatcher, for tensors of every kind, with and without autograd.
struct Operator {
  Operator(const char* name_space, const char* schema, const char* name,
           void (*function)(StableIValue*, uint64_t, uint64_t)) {
    TorchLibraryHandle declared = nullptr;
    aoti_torch_library_init_fragment(name_space, __FILE__, __LINE__, &declared);
    aoti_torch_library_def(declared, schema);
    for (const char* const key : {"CompositeExplicitAutograd", "Autograd"}) {
      TorchLibraryHandle implemented = nullptr;
      aoti_torch_library_init_impl(name_space, key, __FILE__, __LINE__, &implemented);
      torch_library_impl(implemented, name, function, torch_target);
    }
  }
};

}  // namespace opwright
