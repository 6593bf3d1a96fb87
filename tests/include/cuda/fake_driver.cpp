// A driver of GPUs that do not exist: it writes down what it is asked, and fails where the environment says so.
#include <cstdio>
#include <cstdlib>
#include <cstring>

static int asked(const char* name) {
  const char* failing = std::getenv("FAKE_FAILURE");
  return failing && std::strcmp(failing, name) == 0 ? 1 : 0;
}

struct Arguments {
  long long count;
  float factor;
};

static int mode_of_thread = 0;
static long context_of_thread = 0, context_before = 0;

extern "C" {
int cuInit(unsigned) { return std::puts("cuInit"), asked("cuInit"); }
int cuGetErrorName(int, const char** name) { return *name = "CUDA_ERROR_INVALID_VALUE", 0; }
int cuGetErrorString(int, const char** text) { return *text = "invalid argument", 0; }
int cuDeviceGet(int* device, int index) { return *device = 100 + index, 0; }
int cuDeviceGetAttribute(int* value, int attribute, int) {
  const int capability = std::atoi(std::getenv("FAKE_CAPABILITY"));
  return *value = attribute == 75 ? capability / 10 : capability % 10, 0;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  return *context = reinterpret_cast<void*>(long(device)), std::printf("retain %d\n", device), 0;
}
int cuCtxGetCurrent(void** context) { return *context = reinterpret_cast<void*>(context_of_thread), 0; }
int cuCtxSetCurrent(void* context) {
  context_of_thread = reinterpret_cast<long>(context);
  return std::printf("set %ld\n", context_of_thread), 0;
}
int cuCtxPushCurrent_v2(void* context) {
  context_before = context_of_thread, context_of_thread = reinterpret_cast<long>(context);
  return std::printf("push %ld\n", context_of_thread), 0;
}
int cuCtxPopCurrent_v2(void**) { return context_of_thread = context_before, std::puts("pop"), 0; }
int cuThreadExchangeStreamCaptureMode(int* mode) {
  const int before = mode_of_thread;
  mode_of_thread = *mode, *mode = before;
  return std::printf("capture mode %d\n", mode_of_thread), 0;
}
int cuModuleLoadData(void** module, const void* image) {
  *module = const_cast<void*>(image);
  return std::printf("load %s\n", static_cast<const char*>(image)), asked("cuModuleLoadData");
}
int cuModuleGetFunction(void** function, void*, const char* name) {
  *function = const_cast<char*>(name);
  return std::printf("get %s\n", name), asked("cuModuleGetFunction");
}
int cuFuncSetAttribute(void*, int attribute, int value) {
  return std::printf("attribute %d is %d\n", attribute, value), asked("cuFuncSetAttribute");
}
int cuLaunchKernel(void* function, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty, unsigned tz,
                   unsigned shared_bytes, void* stream, void** given, void**) {
  const Arguments& arguments = *static_cast<const Arguments*>(given[0]);
  std::printf("launch %s %ux%ux%u %ux%ux%u %u on %ld with %lld %g\n", static_cast<const char*>(function), bx, by, bz,
              tx, ty, tz, shared_bytes, reinterpret_cast<long>(stream), arguments.count, arguments.factor);
  return asked("cuLaunchKernel");
}
}
