// Launching kernels on the processor: the operator takes CPU tensors, and its library holds the kernels as functions.
#pragma once

#include <dlfcn.h>

#include "opwright/cuda/host/block.h"
#include "opwright/cuda/kernels.h"

namespace opwright::cuda {
namespace host {

// A kernel of the library that this code is in.
inline void* find(const char* name) {
  Dl_info self = {};
  dladdr(reinterpret_cast<void*>(&find), &self);
  void* const library = dlopen(self.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  void* const function = library ? dlsym(library, name) : nullptr;
  if (library) dlclose(library);
  if (!function) throw std::runtime_error(std::string("there is no kernel ") + name + " in " + self.dli_fname);
  return function;
}

inline dim3 shape(Shape given) { return {unsigned(given.x), unsigned(given.y), unsigned(given.z)}; }

}  // namespace host

template <class Arguments>
inline bool launch(Kernel& kernel, Shape blocks, Shape threads, const Arguments& given, std::size_t shared_bytes = 0) {
  if (blocks.x * blocks.y * blocks.z == 0) return true;
  struct Body {
    void (*function)(Arguments);
    const Arguments& given;
  } const body = {reinterpret_cast<void (*)(Arguments)>(host::find(kernel.name)), given};
  const auto run = [](const void* context) {
    const Body& body = *static_cast<const Body*>(context);
    body.function(body.given);
  };
  host::block.run(kernel.name, host::shape(blocks), host::shape(threads), shared_bytes, run, &body);
  return true;
}

}  // namespace opwright::cuda
