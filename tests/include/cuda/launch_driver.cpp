// Launches kernels for the tests: each word of the command line is a step.
#include <dlfcn.h>

#include <map>
#include <stdexcept>
#include <string>

#include "opwright/cuda/launch.h"

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

using opwright::cuda::launch;

#ifdef OPWRIGHT_CUDA_RUNTIME
static opwright::cuda::Kernel kernels[] = {{nullptr, "scale"}, {nullptr, "sum"}};
#else
const opwright::cuda::Image opwright::kernel_images[] = {
    {"sm_80", reinterpret_cast<const unsigned char*>("code for 8.0")},
    {"sm_90", reinterpret_cast<const unsigned char*>("code for 9.0")},
    {"compute_80", reinterpret_cast<const unsigned char*>("PTX for 8.0")},
    {"compute_90", reinterpret_cast<const unsigned char*>("PTX for 9.0")},
    {},
};
static opwright::cuda::Kernel kernels[] = {{opwright::kernel_images, "scale", {}},
                                           {opwright::kernel_images, "sum", {}}};
#endif

struct Arguments {
  long long count;
  float factor;
};

static const std::map<std::string, void (*)()> steps = {
    {"torch", [] { dlopen("libtorch_cuda.so", RTLD_NOW); }},
    {"cuda:0", [] { opwright::device_of_call = {1, 0}; }},
    {"cuda:1", [] { opwright::device_of_call = {1, 1}; }},
    {"cuda:64", [] { opwright::device_of_call = {1, 64}; }},
    {"scale", [] { launch(kernels[0], 3, 256, Arguments{7, 0.5f}); }},
    {"sum", [] { launch(kernels[1], {2, 3, 4}, {32, 8}, Arguments{8, 1.5f}); }},
    {"large", [] { launch(kernels[0], 1, 32, Arguments{7, 0.5f}, 100000); }},
    {"empty", [] { launch(kernels[0], 0, 256, Arguments{7, 0.5f}); }},
};

int main(int count, char** words) {
  for (int k = 1; k < count; ++k) try {
      steps.at(words[k])();
    } catch (const std::runtime_error& error) {
      std::printf("raised: %s\n", error.what());
    }
}
