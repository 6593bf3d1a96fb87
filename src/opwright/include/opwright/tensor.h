// A tensor: owned handle, sizes, strides, data.
#pragma once

#include "opwright/device.h"
#include "opwright/once.h"
#ifndef OPWRIGHT_WALKS_APART
#include "opwright/pool.h"
#endif

namespace opwright {

using Size = int64_t;

#ifdef OPWRIGHT_WALKS_APART
extern const int32_t bfloat16, float16, float32, float64, complex64, complex128;
extern const int32_t uint8, int8, int16, int32, int64, boolean, strided;
#else
inline const int32_t bfloat16 = aoti_torch_dtype_bfloat16();
inline const int32_t float16 = aoti_torch_dtype_float16();
inline const int32_t float32 = aoti_torch_dtype_float32();
inline const int32_t float64 = aoti_torch_dtype_float64();
inline const int32_t complex64 = aoti_torch_dtype_complex64();
inline const int32_t complex128 = aoti_torch_dtype_complex128();
inline const int32_t uint8 = aoti_torch_dtype_uint8();
inline const int32_t int8 = aoti_torch_dtype_int8();
inline const int32_t int16 = aoti_torch_dtype_int16();
inline const int32_t int32 = aoti_torch_dtype_int32();
inline const int32_t int64 = aoti_torch_dtype_int64();
inline const int32_t boolean = aoti_torch_dtype_bool();
inline const int32_t strided = aoti_torch_layout_strided();
#endif

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(AtenTensorHandle handle) : handle_(handle) {
    if (!handle_) return;
    aoti_torch_get_dim(handle_, &rank_);
    Size *sizes = nullptr, *strides = nullptr;
    aoti_torch_get_sizes(handle_, &sizes);
    aoti_torch_get_strides(handle_, &strides);
    sizes_ = sizes, strides_ = strides;
    aoti_torch_get_data_ptr(handle_, &data_);
  }
  // Memory as a tensor without a handle: kernels and guards can read it, library operations cannot.
  Tensor(void* data, Size rank, const Size* sizes, const Size* strides)
      : data_(data), rank_(rank), sizes_(sizes), strides_(strides) {}
  Tensor(Tensor&& other) noexcept { *this = static_cast<Tensor&&>(other); }
  Tensor& operator=(Tensor&& other) noexcept {
    reset();
    handle_ = other.handle_, data_ = other.data_;
    rank_ = other.rank_, sizes_ = other.sizes_, strides_ = other.strides_;
    other.handle_ = nullptr;
    return *this;
  }
  ~Tensor() { reset(); }

  explicit operator bool() const { return handle_ != nullptr; }
  Size rank() const { return rank_; }
  Size size(int dimension) const { return sizes_[dimension]; }
  Size stride(int dimension) const { return strides_[dimension]; }

  // The element at `offset` elements from the first.
  template <class T>
  T* at(Size offset) const {
    return static_cast<T*>(data_) + offset;
  }

  Device device() const { return device_of(handle_); }

  // Whether this is a dense tensor of a kernel's dtype and rank, on the device of the call.
  bool is(int32_t dtype, Size rank) const {
    int32_t found = 0, layout = 0;
    aoti_torch_get_dtype(handle_, &found);
    aoti_torch_get_layout(handle_, &layout);
    return rank_ == rank && found == dtype && layout == strided && is_here(handle_);
  }

  // Whether the tensor is contiguous.
  bool is_row_major() const {
    Size expected = 1;
    for (int dimension = int(rank_) - 1; dimension >= 0; --dimension) {
      if (sizes_[dimension] != 1 && strides_[dimension] != expected) return false;
      expected *= sizes_[dimension];
    }
    return true;
  }

  // Whether the dimensions lie in memory as they are written; as eager does, this takes a tensor of one channel for one
  // in channels last if that is next to the others.
  bool lies_as_written() const {
    Size around = 0, size_around = 0;
    const bool is_one_channel = (rank_ == 4 || rank_ == 5) && sizes_[1] == 1 && strides_[1] == 1;
    for (int dimension = 0; dimension < int(rank_); ++dimension) {
      if (sizes_[dimension] == 1 || strides_[dimension] == 0) continue;
      if (around && strides_[dimension] > around) return false;
      if (around == strides_[dimension] && sizes_[dimension] > size_around) return false;
      if (is_one_channel && dimension > 1) return false;
      around = strides_[dimension], size_around = sizes_[dimension];
    }
    return true;
  }

  // A second handle to the same tensor, for a library operation to take.
  AtenTensorHandle share() const {
    AtenTensorHandle copy = nullptr;
    aoti_torch_new_tensor_handle(handle_, &copy);
    return copy;
  }
  AtenTensorHandle release() {
    AtenTensorHandle handle = handle_;
    handle_ = nullptr;
    return handle;
  }

  // Another view of the same memory; `offset` in elements from this tensor's first.
  Tensor view(const Size* sizes, const Size* strides, Size rank, Size offset) const {
    AtenTensorHandle result = nullptr;
    aoti_torch__reinterpret_tensor(handle_, rank, sizes, strides, offset, &result);
    return Tensor(result);
  }
  template <Size rank>
  Tensor view(const Size (&sizes)[rank], const Size (&strides)[rank], Size offset) const {
    return view(sizes, strides, rank, offset);
  }
  // The same tensor with its dimensions in another order: dimension k of the result is dimension order[k] of this one. A
  // tensor of another rank stays as it is.
  template <Size rank>
  Tensor permuted(const int (&order)[rank]) const {
    if (rank_ != rank) return Tensor(share());
    Size sizes[rank], strides[rank];
    for (int k = 0; k < rank; ++k) sizes[k] = sizes_[order[k]], strides[k] = strides_[order[k]];
    return view(sizes, strides, 0);
  }
  Tensor scalar_view(Size offset) const { return view(nullptr, nullptr, 0, offset); }

 private:
  void reset() {
    if (handle_) aoti_torch_delete_tensor_object(handle_);
    handle_ = nullptr;
  }

  AtenTensorHandle handle_ = nullptr;
  void* data_ = nullptr;
  Size rank_ = 0;
  const Size* sizes_ = nullptr;
  const Size* strides_ = nullptr;
};

#ifdef OPWRIGHT_WALKS_APART
// A new contiguous tensor; empty if there is no memory for it.
Tensor allocate(int32_t dtype, std::size_t item_bytes, const Size* sizes, int rank);
#else
#ifdef OPWRIGHT_POOL
// Visible, so that all libraries of a process share the first one's.
__attribute__((visibility("default"))) inline Pool& pool() {
  static Pool* const kept = [] {
    static Pool* const made = new Pool;  // never destroyed: tensors may outlive everything else
    __register_atfork([] { made->lock(); }, [] { made->unlock(); }, [] { made->unlock(); }, &__dso_handle);
    return made;
  }();
  return *kept;
}

// A large tensor in pooled memory.
inline AtenTensorHandle allocate_pooled(int32_t dtype, std::size_t bytes, const Size* sizes, const Size* strides,
                                        int rank) {
  const Pool::Block block = pool().take(bytes);
  if (!block.data) return nullptr;
  const auto free = [](void*, void* context) {
    Pool::Block* const owned = static_cast<Pool::Block*>(context);
    pool().give(*owned);
    delete owned;
  };
  AtenTensorHandle handle = nullptr;
  torch_from_blob(block.data, rank, sizes, strides, 0, dtype, cpu, -1, &handle, strided, nullptr, 0, free,
                  new Pool::Block(block));
  return handle;
}
#endif

// A new contiguous tensor; empty if there is no memory for it.
OPWRIGHT_ONCE Tensor allocate(int32_t dtype, [[maybe_unused]] std::size_t item_bytes, const Size* sizes, int rank) {
  Size strides[64];
  Size count = 1;
  for (int dimension = rank - 1; dimension >= 0; --dimension) {
    strides[dimension] = count;
    count *= sizes[dimension] > 1 ? sizes[dimension] : 1;
  }
#if defined(OPWRIGHT_POOL) && !defined(OPWRIGHT_CUDA)
  if (count * item_bytes >= Pool::least_bytes)
    return Tensor(allocate_pooled(dtype, count * item_bytes, sizes, strides, rank));
#endif
  AtenTensorHandle handle = nullptr;
  aoti_torch_empty_strided(rank, sizes, strides, dtype, here().type, here().index, &handle);
  return Tensor(handle);
}
#endif

// A contiguous tensor of the dtype and sizes of one that is needed no more, in its memory if that is contiguous.
inline Tensor in_memory_of(const Tensor& dying, int32_t dtype, std::size_t item_bytes, const Size* sizes, int rank) {
  return dying.is_row_major() ? Tensor(dying.share()) : allocate(dtype, item_bytes, sizes, rank);
}

}  // namespace opwright
