// Between torch's dispatcher and an operator: values on its stack, library operations, registration.
#pragma once

#include "opwright/tensor.h"

// A long launcher is compiled as it is written: its lines are run once a call, and optimizing them takes the compiler
// several times as long as all kernels that they start.
#if defined(__clang__)
#define OPWRIGHT_AS_WRITTEN __attribute__((optnone, noinline))
#else
#define OPWRIGHT_AS_WRITTEN __attribute__((optimize("O0")))
#endif

namespace opwright {

// Integer division and remainder that round towards minus infinity, as in Python.
inline Size floor_divide(Size a, Size b) {
  if (b == 0) return 0;
  const Size quotient = a / b;
  return quotient - ((a % b != 0) & ((a < 0) != (b < 0)));
}
inline Size floor_remainder(Size a, Size b) { return a - floor_divide(a, b) * b; }
inline Size greatest(Size a, Size b) { return a > b ? a : b; }

// Constants for operands of library operations, under their names in torch.
#ifdef OPWRIGHT_WALKS_APART
extern const int32_t contiguous_format, preserve_format, channels_last, channels_last_3d;
#else
inline const int32_t contiguous_format = aoti_torch_memory_format_contiguous_format();
inline const int32_t preserve_format = aoti_torch_memory_format_preserve_format();
inline const int32_t channels_last = aoti_torch_memory_format_channels_last();
inline const int32_t channels_last_3d = aoti_torch_memory_format_channels_last_3d();
#endif

// Operands of a library operation; the call owns them.
inline StableIValue pass(const Tensor& tensor) { return reinterpret_cast<StableIValue>(tensor.share()); }
inline StableIValue pass(Size value) { return static_cast<StableIValue>(value); }
inline StableIValue pass(bool value) { return value; }
inline StableIValue pass(double value) {
  StableIValue bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits;
}
inline StableIValue pass_dtype(int32_t dtype) { return static_cast<uint32_t>(dtype); }
inline StableIValue pass_device(int32_t type) {
#ifdef OPWRIGHT_CUDA
  return static_cast<uint64_t>(here().type) << 32 | static_cast<uint32_t>(here().index);  // it was traced elsewhere
#endif
  return static_cast<uint64_t>(type) << 32 | 0xffffffffu;  // no index
}
inline StableIValue pass_choice(int32_t choice) { return static_cast<uint32_t>(choice); }
inline StableIValue pass_string(const char* text) {
  StringHandle string = nullptr;
  torch_new_string_handle(text, __builtin_strlen(text), &string);
  return reinterpret_cast<StableIValue>(string);
}
inline StableIValue pass_nothing() { return 0; }
inline StableIValue pass_optional(StableIValue value) {
  return reinterpret_cast<StableIValue>(new StableIValue(value));
}
template <int count>
inline StableIValue pass_list(const StableIValue (&items)[count]) {
  StableListHandle list = nullptr;
  torch_new_list_reserve_size(count, &list);
  for (StableIValue item : items) torch_list_push_back(list, item);
  return reinterpret_cast<StableIValue>(list);
}
inline StableIValue pass_empty_list() {
  StableListHandle list = nullptr;
  torch_new_list_reserve_size(0, &list);
  return reinterpret_cast<StableIValue>(list);
}

// Call a library operation; the stack holds its operands, then its results. False if it raised.
inline bool call(const char* name, const char* overload, StableIValue* stack) {
  return torch_call_dispatcher(name, overload, stack, torch_target) == 0;
}

// The tensor with other sizes, of which one may be -1: a view if it is contiguous, which takes a tenth of what the
// dispatcher does; else what torch makes of it, or nothing if it raised.
inline Tensor reshaped(const Tensor& tensor, const Size* wanted, int rank) {
  Size sizes[64], strides[64], given = 1, asked = 1;
  int open = -1;
  for (int k = 0; k < tensor.rank(); ++k) given *= tensor.size(k);
  for (int k = 0; k < rank; ++k) {
    if (wanted[k] < 0) open = k;
    else asked *= wanted[k];
  }
  for (int k = 0; k < rank; ++k) sizes[k] = k == open && asked ? given / asked : wanted[k];
  if (given && asked * (open < 0 ? 1 : sizes[open]) == given && tensor.is_row_major()) {
    for (int k = rank - 1; k >= 0; --k) strides[k] = k == rank - 1 ? 1 : strides[k + 1] * sizes[k + 1];
    return tensor.view(sizes, strides, rank, 0);
  }
  StableListHandle list = nullptr;
  torch_new_list_reserve_size(rank, &list);
  for (int k = 0; k < rank; ++k) torch_list_push_back(list, pass(wanted[k]));
  StableIValue stack[] = {pass(tensor), reinterpret_cast<StableIValue>(list)};
  if (!call("aten::reshape", "", stack)) return Tensor();
  return Tensor(reinterpret_cast<AtenTensorHandle>(stack[0]));
}
template <int rank>
inline Tensor reshaped(const Tensor& tensor, const Size (&wanted)[rank]) {
  return reshaped(tensor, wanted, rank);
}

// The contiguous tensor: a second handle, or a copy.
inline StableIValue pass_row_major(const Tensor& tensor) {
  if (tensor.is_row_major()) return pass(tensor);
  StableIValue stack[] = {pass(tensor), pass_choice(contiguous_format)};
  call("aten::contiguous", "", stack);  // if it fails, so does the operation, which gets the operand unchanged
  return stack[0];
}

// The tensor itself if it is contiguous, else a copy.
inline Tensor row_major(Tensor&& tensor) {
  if (tensor.is_row_major()) return static_cast<Tensor&&>(tensor);
  StableIValue stack[] = {pass(tensor), pass_choice(contiguous_format)};
  if (!call("aten::contiguous", "", stack)) return Tensor();
  return Tensor(reinterpret_cast<AtenTensorHandle>(stack[0]));
}
inline Tensor take(StableIValue value) { return Tensor(reinterpret_cast<AtenTensorHandle>(value)); }

// The tensors of a list, which ends here.
template <int count>
inline void take_tensors(StableIValue value, Tensor (&given)[count]) {
  const StableListHandle list = reinterpret_cast<StableListHandle>(value);
  for (int k = 0; k < count; ++k) {
    StableIValue item = 0;
    if (torch_list_get_item(list, k, &item) == 0) given[k] = take(item);
  }
  torch_delete_list(list);
}

// The numbers of a list, which ends here.
inline void take_sizes(StableIValue value, int count, Size* sizes) {
  const StableListHandle list = reinterpret_cast<StableListHandle>(value);
  for (int k = 0; k < count; ++k) {
    StableIValue item = 0;
    torch_list_get_item(list, k, &item);
    sizes[k] = Size(item);
  }
  torch_delete_list(list);
}

// A result of a library operation; an undefined one has no sizes to ask for: torch would raise.
inline Tensor take_result(StableIValue value) {
  const AtenTensorHandle handle = reinterpret_cast<AtenTensorHandle>(value);
  bool defined = true;
  if (handle) aoti_torch_is_defined(handle, &defined);
  if (defined) return Tensor(handle);
  aoti_torch_delete_tensor_object(handle);
  return Tensor();
}

// Return the results, or undefined tensors if a guard failed: the caller then runs the reference.
template <int made_count>
inline void finish(StableIValue* stack, bool done, Tensor (&made)[made_count]) {
  for (int k = 0; k < made_count; ++k) {
    AtenTensorHandle result = done ? made[k].release() : nullptr;
    if (!result) aoti_torch_new_uninitialized_tensor(&result);
    stack[k] = reinterpret_cast<StableIValue>(result);
  }
}

// The namespace of kernels; a package has its own.
#ifndef OPWRIGHT_NAMESPACE
#define OPWRIGHT_NAMESPACE "opwright_kernels"
#endif

using Boxed = void (*)(StableIValue* stack, uint64_t, uint64_t);

#ifdef OPWRIGHT_WALKS_APART
void register_operator(const char* space, const char* schema, const char* name, Boxed function);
#else
OPWRIGHT_ONCE void register_operator(const char* space, const char* schema, const char* name, Boxed function) {
  TorchLibraryHandle declared = nullptr, implemented = nullptr;
  aoti_torch_library_init_fragment(space, __FILE__, __LINE__, &declared);
  aoti_torch_library_def(declared, schema);
  aoti_torch_library_init_impl(space, "CompositeExplicitAutograd", __FILE__, __LINE__, &implemented);
  torch_library_impl(implemented, name, function, torch_target);
}
#endif

// Registers an operator when the library is loaded, for tensors of every kind. It falls through for those that it does
// not support, so that only the reference serves them.
struct Registration {
  Registration(const char* schema, const char* name, Boxed function) {
    register_operator(OPWRIGHT_NAMESPACE, schema, name, function);
  }
};

}  // namespace opwright
