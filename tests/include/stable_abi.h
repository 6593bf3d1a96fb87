// What the headers ask of PyTorch, without PyTorch.
#pragma once

#include <cstdint>
#include <stdexcept>

extern "C" {
int32_t aoti_torch_device_type_cpu() { return 0; }
int32_t aoti_torch_device_type_cuda() { return 1; }
int32_t aoti_torch_layout_strided() { return 0; }
int32_t aoti_torch_memory_format_contiguous_format() { return 0; }
int32_t aoti_torch_memory_format_preserve_format() { return 1; }
int32_t aoti_torch_memory_format_channels_last() { return 2; }
int32_t aoti_torch_memory_format_channels_last_3d() { return 3; }
int32_t aoti_torch_dtype_bfloat16() { return 15; }
int32_t aoti_torch_dtype_float16() { return 5; }
int32_t aoti_torch_dtype_float32() { return 6; }
int32_t aoti_torch_dtype_float64() { return 7; }
int32_t aoti_torch_dtype_complex64() { return 9; }
int32_t aoti_torch_dtype_complex128() { return 10; }
int32_t aoti_torch_dtype_uint8() { return 0; }
int32_t aoti_torch_dtype_int8() { return 1; }
int32_t aoti_torch_dtype_int16() { return 2; }
int32_t aoti_torch_dtype_int32() { return 3; }
int32_t aoti_torch_dtype_int64() { return 4; }
int32_t aoti_torch_dtype_bool() { return 11; }
void aoti_torch_check(bool condition, const char*, const char*, uint32_t, const char* message) {
  if (!condition) throw std::runtime_error(message);
}
}
