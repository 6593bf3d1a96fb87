// The part of PyTorch's stable C interface that operators use, declared here instead of included: torch's own headers
// cost 0.3 s of a build that takes 0.2 s. tests/include/test_shim.py compiles these next to torch's declarations.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

typedef struct AtenTensorOpaque* AtenTensorHandle;
typedef struct TorchLibraryOpaque* TorchLibraryHandle;
struct StableListOpaque;
using StableListHandle = StableListOpaque*;
struct StringOpaque;
using StringHandle = StringOpaque*;
using StableIValue = uint64_t;
typedef void (*ParallelFunc)(int64_t begin, int64_t end, void* context);

int32_t aoti_torch_device_type_cpu();
int32_t aoti_torch_device_type_cuda();
int32_t aoti_torch_layout_strided();
int32_t aoti_torch_memory_format_contiguous_format();
int32_t aoti_torch_memory_format_preserve_format();
int32_t aoti_torch_memory_format_channels_last();
int32_t aoti_torch_memory_format_channels_last_3d();
int32_t aoti_torch_dtype_bfloat16();
int32_t aoti_torch_dtype_float16();
int32_t aoti_torch_dtype_float32();
int32_t aoti_torch_dtype_float64();
int32_t aoti_torch_dtype_complex64();
int32_t aoti_torch_dtype_complex128();
int32_t aoti_torch_dtype_uint8();
int32_t aoti_torch_dtype_int8();
int32_t aoti_torch_dtype_int16();
int32_t aoti_torch_dtype_int32();
int32_t aoti_torch_dtype_int64();
int32_t aoti_torch_dtype_bool();

int32_t aoti_torch_delete_tensor_object(AtenTensorHandle tensor);
int32_t aoti_torch_new_tensor_handle(AtenTensorHandle tensor, AtenTensorHandle* result);
int32_t aoti_torch_new_uninitialized_tensor(AtenTensorHandle* result);
int32_t aoti_torch_get_data_ptr(AtenTensorHandle tensor, void** result);
int32_t aoti_torch_is_defined(AtenTensorHandle tensor, bool* defined);
int32_t aoti_torch_get_dim(AtenTensorHandle tensor, int64_t* result);
int32_t aoti_torch_get_sizes(AtenTensorHandle tensor, int64_t** result);
int32_t aoti_torch_get_strides(AtenTensorHandle tensor, int64_t** result);
int32_t aoti_torch_get_dtype(AtenTensorHandle tensor, int32_t* result);
int32_t aoti_torch_get_device_type(AtenTensorHandle tensor, int32_t* result);
int32_t aoti_torch_get_device_index(AtenTensorHandle tensor, int32_t* result);
int32_t aoti_torch_get_layout(AtenTensorHandle tensor, int32_t* result);
int32_t aoti_torch_empty_strided(int64_t rank, const int64_t* sizes, const int64_t* strides, int32_t dtype,
                                 int32_t device_type, int32_t device_index, AtenTensorHandle* result);
int32_t torch_from_blob(void* data, int64_t rank, const int64_t* sizes, const int64_t* strides, int64_t storage_offset,
                        int32_t dtype, int32_t device_type, int32_t device_index, AtenTensorHandle* result,
                        int32_t layout, const uint8_t* metadata, int64_t metadata_size,
                        void (*deleter)(void* data, void* context), void* context);
int32_t aoti_torch__reinterpret_tensor(AtenTensorHandle tensor, int64_t rank, const int64_t* sizes,
                                       const int64_t* strides, int64_t storage_offset, AtenTensorHandle* result);
void aoti_torch_check(bool condition, const char* function, const char* file, uint32_t line, const char* message);

int32_t aoti_torch_library_init_fragment(const char* name, const char* file, uint32_t line, TorchLibraryHandle* result);
int32_t aoti_torch_library_init_impl(const char* name, const char* key, const char* file, uint32_t line,
                                     TorchLibraryHandle* result);
int32_t aoti_torch_library_def(TorchLibraryHandle library, const char* schema);
int32_t torch_library_impl(TorchLibraryHandle library, const char* name,
                           void (*function)(StableIValue*, uint64_t, uint64_t), uint64_t version);
int32_t torch_call_dispatcher(const char* name, const char* overload, StableIValue* stack, uint64_t version);
int32_t torch_new_list_reserve_size(std::size_t size, StableListHandle* result);
int32_t torch_list_push_back(StableListHandle list, StableIValue element);
int32_t torch_list_get_item(StableListHandle list, std::size_t index, StableIValue* element);
int32_t torch_delete_list(StableListHandle list);
int32_t torch_new_string_handle(const char* text, std::size_t size, StringHandle* result);
int32_t torch_get_num_threads(uint32_t* count);
int32_t torch_parallel_for(int64_t begin, int64_t end, int64_t grain, ParallelFunc function, void* context);
}

namespace opwright {

// The oldest PyTorch the operators run on: 2.11.
constexpr uint64_t torch_target = 0x020b000000000000ull;

}  // namespace opwright
