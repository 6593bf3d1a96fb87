// The library of a deployed model: operators at the dispatcher, with kernels inside, and references beside them.
#pragma once

#include "opwright/package.h"

namespace opwright {

// In the references' part: whether kernels may see these tensors.
bool are_plain(const StableIValue* handles, int count);

// The arguments of a call, whose tensors end with it: `tensors` are their positions.
template <int count, int tensor_count>
class Arguments {
 public:
  Arguments(const StableIValue* stack, const int (&tensors)[tensor_count]) {
    for (int k = 0; k < count; ++k) values_[k] = stack[k];
    for (int k = 0; k < tensor_count; ++k) handles_[k] = stack[tensors[k]];
  }
  Arguments(const Arguments&) = delete;
  ~Arguments() {
    for (const StableIValue handle : handles_)
      aoti_torch_delete_tensor_object(reinterpret_cast<AtenTensorHandle>(handle));
  }
  const StableIValue* values() const { return values_; }
  bool are_plain() const { return opwright::are_plain(handles_, tensor_count); }

 private:
  StableIValue values_[count];
  StableIValue handles_[tensor_count];
};

// Tensors among the arguments, for kernels to look at: they stay their owners'.
template <int count>
class Borrowed {
 public:
  explicit Borrowed(const StableIValue (&handles)[count]) {
    for (int k = 0; k < count; ++k) tensors[k] = Tensor(reinterpret_cast<AtenTensorHandle>(handles[k]));
  }
  Borrowed(const Borrowed&) = delete;
  ~Borrowed() {
    for (Tensor& tensor : tensors) tensor.release();
  }

  Tensor tensors[count];
};

// A second handle to a tensor among the arguments, and a number of them as kernels take it.
inline Tensor again(StableIValue handle) {
  AtenTensorHandle copy = nullptr;
  aoti_torch_new_tensor_handle(reinterpret_cast<AtenTensorHandle>(handle), &copy);
  return Tensor(copy);
}
template <class T>
inline Tensor as_tensor(T value) {
  return Tensor(reinterpret_cast<AtenTensorHandle>(number_tensor(value)));
}

// The first results of a kernel, as the results of the operator.
template <int made_count>
inline void give(StableIValue* stack, Tensor (&made)[made_count], int outputs) {
  for (int k = 0; k < outputs; ++k) stack[k] = reinterpret_cast<StableIValue>(made[k].release());
}

// Registers an operator, unless another deployment of the same has: its name tells what it computes.
struct Deployed {
  Deployed(const char* name_space, const char* schema, const char* name, bool is_there,
           void (*function)(StableIValue*, uint64_t, uint64_t), void (*reference)(StableIValue*, uint64_t, uint64_t)) {
    if (is_there) return;
    TorchLibraryHandle declared = nullptr;
    aoti_torch_library_init_fragment(name_space, __FILE__, __LINE__, &declared);
    aoti_torch_library_def(declared, schema);
    for (const char* const key : {"CompositeExplicitAutograd", "Autograd", "AutocastCPU"}) {
      TorchLibraryHandle implemented = nullptr;
      aoti_torch_library_init_impl(name_space, key, __FILE__, __LINE__, &implemented);
      const bool sees_operations = key[4] == 'c';  // autocast casts the operations of the reference
      torch_library_impl(implemented, name, sees_operations ? reference : function, torch_target);
    }
  }
};

}  // namespace opwright
