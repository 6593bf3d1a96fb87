// Launches kernels for the tests: each word of the command line is a step.
#include <dlfcn.h>

#include <map>
#include <string>

#include "opwright/cuda/launch.h"
#include "../stable_abi.h"

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
