// The one function that is looked for in torch's library for GPUs: streams are numbered from 200.
#include <cstdlib>
#include <cstring>

extern "C" int aoti_torch_get_current_cuda_stream(int index, void** stream) {
  const char* failing = std::getenv("FAKE_FAILURE");
  if (failing && std::strcmp(failing, "stream") == 0) return 1;
  return *stream = reinterpret_cast<void*>(200l + index), 0;
}
