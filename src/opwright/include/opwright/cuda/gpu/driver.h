// The CUDA driver, loaded at the first launch instead of linked.
#pragma once

#include <dlfcn.h>

#include <cstdio>

#include "opwright/cuda/kernels.h"
#include "opwright/device.h"

namespace opwright::cuda {
namespace detail {

using Context = struct CUctx_st*;
using Module = struct CUmod_st*;
using Function = struct CUfunc_st*;
using Stream = struct CUstream_st*;

// Raise an error with a message.
template <class... Values>
[[noreturn]] inline void refuse(const char* format, Values... values) {
  char text[1024];
  std::snprintf(text, sizeof text, format, values...);
  aoti_torch_check(false, "launch", "opwright/cuda/gpu/driver.h", 0, text);
  __builtin_unreachable();
}

// The functions of the driver, and one of torch, under their own names.
struct Driver {
  int (*cuInit)(unsigned flags);
  int (*cuGetErrorName)(int status, const char** name);
  int (*cuGetErrorString)(int status, const char** text);
  int (*cuDeviceGet)(int* device, int index);
  int (*cuDeviceGetAttribute)(int* value, int attribute, int device);
  int (*cuDevicePrimaryCtxRetain)(Context* context, int device);
  int (*cuCtxGetCurrent)(Context* context);
  int (*cuCtxSetCurrent)(Context context);
  int (*cuCtxPushCurrent)(Context context);
  int (*cuCtxPopCurrent)(Context* context);
  int (*cuThreadExchangeStreamCaptureMode)(int* mode);
  int (*cuModuleLoadData)(Module* module, const void* image);
  int (*cuModuleGetFunction)(Function* function, Module module, const char* name);
  int (*cuFuncSetAttribute)(Function function, int attribute, int value);
  int (*cuLaunchKernel)(Function function, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x,
                        unsigned threads_y, unsigned threads_z, unsigned shared_bytes, Stream stream, void** given,
                        void** extra);
  int (*current_stream)(int32_t device_index, void** stream);

  Driver() {
    void* const driver = open("libcuda.so.1", RTLD_NOW, "the driver of NVIDIA GPUs cannot be loaded");
    find(cuInit, driver, "cuInit");
    find(cuGetErrorName, driver, "cuGetErrorName");
    find(cuGetErrorString, driver, "cuGetErrorString");
    find(cuDeviceGet, driver, "cuDeviceGet");
    find(cuDeviceGetAttribute, driver, "cuDeviceGetAttribute");
    find(cuDevicePrimaryCtxRetain, driver, "cuDevicePrimaryCtxRetain");
    find(cuCtxGetCurrent, driver, "cuCtxGetCurrent");
    find(cuCtxSetCurrent, driver, "cuCtxSetCurrent");
    find(cuCtxPushCurrent, driver, "cuCtxPushCurrent_v2");
    find(cuCtxPopCurrent, driver, "cuCtxPopCurrent_v2");
    find(cuThreadExchangeStreamCaptureMode, driver, "cuThreadExchangeStreamCaptureMode");
    find(cuModuleLoadData, driver, "cuModuleLoadData");
    find(cuModuleGetFunction, driver, "cuModuleGetFunction");
    find(cuFuncSetAttribute, driver, "cuFuncSetAttribute");
    find(cuLaunchKernel, driver, "cuLaunchKernel");
    // The library that torch has loaded, if there is one; dlsym alone does not find it.
    void* const torch = open("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD, "this PyTorch is built without CUDA");
    find(current_stream, torch, "aoti_torch_get_current_cuda_stream");
    demand(cuInit(0), "cannot start the CUDA driver");
  }

  // Raise unless a function of the driver has succeeded.
  template <class... Values>
  void demand(int status, const char* format, Values... values) const {
    if (status == 0) return;
    const char *name = "an unknown error", *text = "";
    cuGetErrorName(status, &name);
    cuGetErrorString(status, &text);
    char what[768];
    std::snprintf(what, sizeof what, format, values...);
    refuse("%s: %s (%s)", what, text, name);
  }

 private:
  static void* open(const char* name, int flags, const char* otherwise) {
    void* const library = dlopen(name, flags);
    if (!library) refuse("%s (%s)", otherwise, name);
    return library;
  }
  template <class Pointer>
  static void find(Pointer& pointer, void* library, const char* name) {
    pointer = reinterpret_cast<Pointer>(dlsym(library, name));
    if (!pointer) refuse("the driver of NVIDIA GPUs, or PyTorch, is too old: it has no %s", name);
  }
};

inline const Driver& driver() {
  static const Driver found;
  return found;
}

// Makes torch's context of a device current on this thread while it lives. A thread without any keeps that of the first
// device, which is its device as torch sees it: cuBLAS warns where there is none, as in the threads of backward passes.
class Current {
 public:
  explicit Current(int index) {
    Context present = nullptr;
    driver().cuCtxGetCurrent(&present);
    const Context wanted = primary(index);
    if (present == wanted) return;
    pushed_ = present || index > 0;
    driver().demand(pushed_ ? driver().cuCtxPushCurrent(wanted) : driver().cuCtxSetCurrent(wanted),
                    "cannot turn to cuda:%d", index);
  }
  Current(const Current&) = delete;
  ~Current() {
    Context left = nullptr;
    if (pushed_) driver().cuCtxPopCurrent(&left);
  }

 private:
  // Kept for the life of the process, as torch does.
  static Context primary(int index) {
    static Context kept[most_devices] = {};
    if (const Context found = __atomic_load_n(&kept[index], __ATOMIC_ACQUIRE)) return found;
    int device = 0;
    Context context = nullptr;
    driver().demand(driver().cuDeviceGet(&device, index), "there is no GPU cuda:%d", index);
    driver().demand(driver().cuDevicePrimaryCtxRetain(&context, device), "cannot use cuda:%d", index);
    __atomic_store_n(&kept[index], context, __ATOMIC_RELEASE);
    return context;
  }

  bool pushed_ = false;
};

}  // namespace detail
}  // namespace opwright::cuda
