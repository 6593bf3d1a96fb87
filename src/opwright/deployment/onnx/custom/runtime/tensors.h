// The functions of PyTorch's stable C interface that kernels call, over memory of ONNX Runtime. Codes of dtypes are
// those of ONNX.
#pragma once

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "opwright/shim.h"
#include "ort.h"

namespace opwright_onnx {

constexpr int64_t most_dimensions = 64;

// Integer division and remainder that round towards minus infinity, as in Python.
inline int64_t floor_divide(int64_t a, int64_t b) {
  if (b == 0) return 0;
  const int64_t quotient = a / b;
  return quotient - ((a % b != 0) & ((a < 0) != (b < 0)));
}
inline int64_t floor_remainder(int64_t a, int64_t b) { return a - floor_divide(a, b) * b; }
inline int64_t greatest(int64_t a, int64_t b) { return a > b ? a : b; }

inline std::size_t item_bytes(int32_t dtype) {
  switch (dtype) {
    case 2: case 3: case 9: return 1;            // uint8, int8, bool
    case 5: case 10: case 16: return 2;          // int16, float16, bfloat16
    case 1: case 6: return 4;                    // float, int32
    case 15: return 16;                          // complex128
    default: return 8;
  }
}

// A result whose sizes are known before the kernel runs.
struct Result {
  int32_t dtype = 0;
  int64_t rank = -1;  // unknown
  int64_t sizes[most_dimensions];
  void* data = nullptr;  // once ONNX Runtime has given its memory

  bool is_of(int32_t kind, int64_t dimensions, const int64_t* of) const {
    if (dtype != kind || rank != dimensions) return false;
    for (int64_t k = 0; k < rank; ++k)
      if (sizes[k] != of[k]) return false;
    return true;
  }
};

// Which result each allocation of a kernel becomes, as its last run showed: kernels allocate results of equal sizes in
// any order, and temporary memory between them. A wrong guess costs a copy.
struct Becomes {
  static constexpr int unknown = -2, temporary = -1, most = 32;
  std::atomic<int> of_turn[most];

  Becomes() {
    for (std::atomic<int>& each : of_turn) each.store(unknown, std::memory_order_relaxed);
  }
  int guess(int turn) const { return turn < most ? of_turn[turn].load(std::memory_order_relaxed) : unknown; }
  void learn(int turn, int result) {
    if (turn >= 0 && turn < most && guess(turn) != result) of_turn[turn].store(result, std::memory_order_relaxed);
  }
};

// A run of a kernel, on the thread that ONNX Runtime calls it on.
struct Run {
  const ort::Api* api;
  ort::KernelContext* context;
  const ort::MemoryInfo* memory;
  std::vector<Result>* results;
  ort::Allocator* allocator = nullptr;  // once it is needed
  Becomes* becomes = nullptr;           // of the kernel that runs
  int turn = 0;                         // how many tensors it has allocated

  void* allocate(std::size_t bytes) {
    if (!allocator && api->KernelContext_GetAllocator(context, memory, &allocator)) allocator = nullptr;
    return allocator ? allocator->Alloc(allocator, bytes ? bytes : 1) : nullptr;
  }
  void* memory_of(std::size_t index) {
    Result& result = (*results)[index];
    ort::Value* value = nullptr;
    ort::Status* failed =
        api->KernelContext_GetOutput(context, index, result.sizes, std::size_t(result.rank), &value);
    if (!failed) failed = api->GetTensorMutableData(value, &result.data);
    if (failed) api->ReleaseStatus(failed), result.data = nullptr;
    return result.data;
  }
  ~Run() {
    if (allocator) api->ReleaseAllocator(allocator);
  }
};

inline thread_local Run* running = nullptr;

// Memory that several tensors may share.
struct Storage {
  void* data;
  Run* owner;  // who frees it; nullptr for memory of ONNX Runtime
  int turn = -1;  // the how-manieth allocation of the kernel it is; -1 for inputs
  int count = 1;
  void release() {
    if (--count) return;
    if (owner) owner->allocator->Free(owner->allocator, data);
    delete this;
  }
};

using Kernel = void (*)(StableIValue*, uint64_t, uint64_t);

// The kernels of this library, by name.
inline std::map<std::string, Kernel>& kernels() {
  static std::map<std::string, Kernel> known;
  return known;
}

}  // namespace opwright_onnx

struct AtenTensorOpaque {
  opwright_onnx::Storage* storage;  // nullptr for an undefined tensor
  char* data;
  int32_t dtype;
  int64_t rank;
  int64_t sizes[opwright_onnx::most_dimensions];
  int64_t strides[opwright_onnx::most_dimensions];
};

namespace opwright_onnx {

inline AtenTensorHandle new_tensor(Storage* storage, void* data, int32_t dtype, int64_t rank, const int64_t* sizes,
                                   const int64_t* strides) {
  const AtenTensorHandle made = new AtenTensorOpaque;
  made->storage = storage, made->data = static_cast<char*>(data), made->dtype = dtype, made->rank = rank;
  int64_t step = 1;
  for (int64_t k = rank - 1; k >= 0; --k) {
    made->sizes[k] = sizes[k], made->strides[k] = strides ? strides[k] : step;
    step *= sizes[k] > 1 ? sizes[k] : 1;
  }
  return made;
}

// A tensor over memory that lives longer.
inline AtenTensorHandle over(void* data, int32_t dtype, int64_t rank, const int64_t* sizes, int turn = -1) {
  return new_tensor(new Storage{data, nullptr, turn}, data, dtype, rank, sizes, nullptr);
}

inline int64_t count_of(int64_t rank, const int64_t* sizes) {
  int64_t count = 1;
  for (int64_t k = 0; k < rank; ++k) count *= sizes[k];
  return count;
}

// Copies the elements of a tensor in the order of its dimensions.
inline void copy_row_major(AtenTensorHandle tensor, char* into) {
  const std::size_t bytes = item_bytes(tensor->dtype);
  int64_t expected = 1;
  bool is_row_major = true;
  for (int64_t k = tensor->rank - 1; k >= 0; --k) {
    is_row_major = is_row_major && (tensor->sizes[k] == 1 || tensor->strides[k] == expected);
    expected *= tensor->sizes[k];
  }
  const int64_t count = count_of(tensor->rank, tensor->sizes);
  if (is_row_major) return void(std::memcpy(into, tensor->data, count * bytes));
  int64_t place[most_dimensions] = {}, offset = 0;
  for (int64_t n = 0; n < count; ++n) {
    std::memcpy(into + n * bytes, tensor->data + offset * int64_t(bytes), bytes);
    for (int64_t k = tensor->rank - 1; k >= 0; --k) {
      offset += tensor->strides[k];
      if (++place[k] < tensor->sizes[k]) break;
      offset -= tensor->strides[k] * tensor->sizes[k], place[k] = 0;
    }
  }
}

}  // namespace opwright_onnx

extern "C" {

int32_t aoti_torch_device_type_cpu() { return 0; }
int32_t aoti_torch_layout_strided() { return 0; }
int32_t aoti_torch_memory_format_contiguous_format() { return 0; }
int32_t aoti_torch_memory_format_preserve_format() { return 1; }
int32_t aoti_torch_memory_format_channels_last() { return 2; }
int32_t aoti_torch_memory_format_channels_last_3d() { return 3; }
int32_t aoti_torch_dtype_bfloat16() { return 16; }
int32_t aoti_torch_dtype_float16() { return 10; }
int32_t aoti_torch_dtype_float32() { return 1; }
int32_t aoti_torch_dtype_float64() { return 11; }
int32_t aoti_torch_dtype_complex64() { return 14; }
int32_t aoti_torch_dtype_complex128() { return 15; }
int32_t aoti_torch_dtype_uint8() { return 2; }
int32_t aoti_torch_dtype_int8() { return 3; }
int32_t aoti_torch_dtype_int16() { return 5; }
int32_t aoti_torch_dtype_int32() { return 6; }
int32_t aoti_torch_dtype_int64() { return 7; }
int32_t aoti_torch_dtype_bool() { return 9; }

int32_t aoti_torch_delete_tensor_object(AtenTensorHandle tensor) {
  if (tensor->storage) tensor->storage->release();
  delete tensor;
  return 0;
}
int32_t aoti_torch_new_tensor_handle(AtenTensorHandle tensor, AtenTensorHandle* result) {
  if (tensor->storage) ++tensor->storage->count;
  *result = new AtenTensorOpaque(*tensor);
  return 0;
}
int32_t aoti_torch_new_uninitialized_tensor(AtenTensorHandle* result) {
  *result = new AtenTensorOpaque{};
  return 0;
}
int32_t aoti_torch_get_data_ptr(AtenTensorHandle tensor, void** result) { return *result = tensor->data, 0; }
int32_t aoti_torch_is_defined(AtenTensorHandle tensor, bool* defined) { return *defined = tensor->storage, 0; }
int32_t aoti_torch_get_dim(AtenTensorHandle tensor, int64_t* result) { return *result = tensor->rank, 0; }
int32_t aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t** result) { return *result = tensor->sizes, 0; }
int32_t aoti_torch_get_strides(AtenTensorHandle tensor, int64_t** result) { return *result = tensor->strides, 0; }
int32_t aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t* result) { return *result = tensor->dtype, 0; }
int32_t aoti_torch_get_device_type(AtenTensorHandle, int32_t* result) { return *result = 0; }
int32_t aoti_torch_get_device_index(AtenTensorHandle, int32_t* result) { return *result = 0; }
int32_t aoti_torch_get_layout(AtenTensorHandle, int32_t* result) { return *result = 0; }

// The memory of the result that this allocation became in the last run; in the first run, of any result that has these
// sizes and is not given yet; else memory of ONNX Runtime's allocator.
int32_t aoti_torch_empty_strided(int64_t rank, const int64_t* sizes, const int64_t* strides, int32_t dtype, int32_t,
                                 int32_t, AtenTensorHandle* result) {
  using namespace opwright_onnx;
  *result = nullptr;
  std::vector<Result>& results = *running->results;
  const int turn = running->turn++, guess = running->becomes->guess(turn);
  for (std::size_t k = 0; k < results.size(); ++k) {
    if (guess != Becomes::unknown && guess != int(k)) continue;
    if (results[k].data || !results[k].is_of(dtype, rank, sizes)) continue;
    void* const data = running->memory_of(k);
    if (!data) return 1;
    *result = over(data, dtype, rank, sizes, turn);
    return 0;
  }
  void* const data = running->allocate(count_of(rank, sizes) * item_bytes(dtype));
  if (!data) return 1;
  *result = new_tensor(new Storage{data, running, turn}, data, dtype, rank, sizes, strides);
  return 0;
}

int32_t aoti_torch__reinterpret_tensor(AtenTensorHandle tensor, int64_t rank, const int64_t* sizes,
                                       const int64_t* strides, int64_t offset, AtenTensorHandle* result) {
  ++tensor->storage->count;
  char* const data = tensor->data + offset * int64_t(opwright_onnx::item_bytes(tensor->dtype));
  *result = opwright_onnx::new_tensor(tensor->storage, data, tensor->dtype, rank, sizes, strides);
  return 0;
}

// Of library operations there is one: the row-major copy of a result.
int32_t torch_call_dispatcher(const char* name, const char*, StableIValue* stack, uint64_t) {
  if (std::strcmp(name, "aten::contiguous")) return 1;
  const AtenTensorHandle tensor = reinterpret_cast<AtenTensorHandle>(stack[0]);
  AtenTensorHandle made = nullptr;
  int64_t strides[opwright_onnx::most_dimensions], step = 1;
  for (int64_t k = tensor->rank - 1; k >= 0; --k) strides[k] = step, step *= tensor->sizes[k];
  if (aoti_torch_empty_strided(tensor->rank, tensor->sizes, strides, tensor->dtype, 0, 0, &made)) return 1;
  opwright_onnx::copy_row_major(tensor, made->data);
  aoti_torch_delete_tensor_object(tensor);
  stack[0] = reinterpret_cast<StableIValue>(made);
  return 0;
}

int32_t aoti_torch_library_init_fragment(const char*, const char*, uint32_t, TorchLibraryHandle*) { return 0; }
int32_t aoti_torch_library_init_impl(const char*, const char*, const char*, uint32_t, TorchLibraryHandle*) { return 0; }
int32_t aoti_torch_library_def(TorchLibraryHandle, const char*) { return 0; }
int32_t torch_library_impl(TorchLibraryHandle, const char* name, opwright_onnx::Kernel function, uint64_t) {
  opwright_onnx::kernels()[name] = function;
  return 0;
}

int32_t torch_get_num_threads(uint32_t* count) {
  *count = std::thread::hardware_concurrency() ? std::thread::hardware_concurrency() : 1;
  return 0;
}

// On ONNX Runtime's threads, in as many parts as the processor runs at once.
int32_t torch_parallel_for(int64_t begin, int64_t end, int64_t grain, ParallelFunc function, void* context) {
  struct Parts {
    int64_t begin, end, step;
    ParallelFunc function;
    void* context;
  };
  uint32_t threads = 1;
  torch_get_num_threads(&threads);
  const int64_t total = end - begin, fair = (total + threads - 1) / threads;
  Parts parts{begin, end, fair > grain ? fair : grain, function, context};
  const int64_t count = total > 0 ? (total + parts.step - 1) / parts.step : 0;
  if (count < 2 || !opwright_onnx::running) return function(begin, end, context), 0;
  const auto work = [](void* given, std::size_t part) {
    const Parts& all = *static_cast<const Parts*>(given);
    const int64_t from = all.begin + int64_t(part) * all.step, to = from + all.step;
    all.function(from, to < all.end ? to : all.end, all.context);
  };
  const opwright_onnx::Run& run = *opwright_onnx::running;
  if (ort::Status* failed = run.api->KernelContext_ParallelFor(run.context, work, std::size_t(count), 0, &parts)) {
    run.api->ReleaseStatus(failed);
    function(begin, end, context);
  }
  return 0;
}
}
