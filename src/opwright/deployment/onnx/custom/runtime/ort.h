// The part of ONNX Runtime's C interface that the operators use. Its functions never move; those left out are counted.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ort {

struct Status;
struct Value;
struct Shape;  // a tensor's dtype and sizes
struct KernelInfo;
struct KernelContext;
struct MemoryInfo;
struct SessionOptions;
struct CustomOpDomain;

struct Allocator {
  uint32_t version;
  void* (*Alloc)(Allocator* allocator, std::size_t size);
  void (*Free)(Allocator* allocator, void* memory);
};

struct CustomOp;

constexpr uint32_t version = 17;  // of the interface: ONNX Runtime 1.17 and newer

struct Api {
  Status* (*CreateStatus)(int code, const char* message);
  void* unused_1[25];
  Status* (*CreateCustomOpDomain)(const char* domain, CustomOpDomain** made);
  Status* (*CustomOpDomain_Add)(CustomOpDomain* domain, const CustomOp* operation);
  Status* (*AddCustomOpDomain)(SessionOptions* options, CustomOpDomain* domain);
  void* unused_29[22];
  Status* (*GetTensorMutableData)(Value* value, void** data);
  void* unused_52[8];
  Status* (*GetTensorElementType)(const Shape* shape, int* type);
  Status* (*GetDimensionsCount)(const Shape* shape, std::size_t* count);
  Status* (*GetDimensions)(const Shape* shape, int64_t* sizes, std::size_t count);
  void* unused_63[2];
  Status* (*GetTensorTypeAndShape)(const Value* value, Shape** shape);
  void* unused_66[3];
  Status* (*CreateCpuMemoryInfo)(int allocator, int memory, MemoryInfo** made);
  void* unused_70[8];
  Status* (*GetAllocatorWithDefaultOptions)(Allocator** allocator);
  void* unused_79[6];
  Status* (*KernelInfoGetAttribute_float)(const KernelInfo* info, const char* name, float* value);
  Status* (*KernelInfoGetAttribute_int64)(const KernelInfo* info, const char* name, int64_t* value);
  void* unused_87[3];
  Status* (*KernelContext_GetInput)(const KernelContext* context, std::size_t index, const Value** value);
  Status* (*KernelContext_GetOutput)(KernelContext* context, std::size_t index, const int64_t* sizes,
                                     std::size_t rank, Value** value);
  void* unused_92[1];
  void (*ReleaseStatus)(Status* status);
  void (*ReleaseMemoryInfo)(MemoryInfo* info);
  void* unused_95[1];
  void (*ReleaseValue)(Value* value);
  void* unused_97[2];
  void (*ReleaseShape)(Shape* shape);
  void* unused_100[32];
  void (*ReleaseAllocator)(Allocator* allocator);
  void* unused_133[103];
  Status* (*KernelInfoGetAttribute_tensor)(const KernelInfo* info, const char* name, Allocator* allocator,
                                           Value** value);
  void* unused_237[16];
  Status* (*KernelContext_GetAllocator)(const KernelContext* context, const MemoryInfo* info, Allocator** allocator);
  void* unused_254[20];
  Status* (*KernelContext_ParallelFor)(const KernelContext* context, void (*function)(void* given, std::size_t part),
                                       std::size_t parts, std::size_t batches, void* given);
};

static_assert(offsetof(Api, CreateCustomOpDomain) == 26 * sizeof(void*));
static_assert(offsetof(Api, GetTensorMutableData) == 51 * sizeof(void*));
static_assert(offsetof(Api, GetTensorElementType) == 60 * sizeof(void*));
static_assert(offsetof(Api, GetTensorTypeAndShape) == 65 * sizeof(void*));
static_assert(offsetof(Api, CreateCpuMemoryInfo) == 69 * sizeof(void*));
static_assert(offsetof(Api, GetAllocatorWithDefaultOptions) == 78 * sizeof(void*));
static_assert(offsetof(Api, KernelInfoGetAttribute_float) == 85 * sizeof(void*));
static_assert(offsetof(Api, KernelContext_GetInput) == 90 * sizeof(void*));
static_assert(offsetof(Api, ReleaseStatus) == 93 * sizeof(void*));
static_assert(offsetof(Api, ReleaseValue) == 96 * sizeof(void*));
static_assert(offsetof(Api, ReleaseShape) == 99 * sizeof(void*));
static_assert(offsetof(Api, ReleaseAllocator) == 132 * sizeof(void*));
static_assert(offsetof(Api, KernelInfoGetAttribute_tensor) == 236 * sizeof(void*));
static_assert(offsetof(Api, KernelContext_GetAllocator) == 253 * sizeof(void*));
static_assert(offsetof(Api, KernelContext_ParallelFor) == 274 * sizeof(void*));

struct ApiBase {
  const Api* (*GetApi)(uint32_t version);
  const char* (*GetVersionString)();
};

struct CustomOp {
  uint32_t version;
  void* (*CreateKernel)(const CustomOp* op, const Api* api, const KernelInfo* info);
  const char* (*GetName)(const CustomOp* op);
  const char* (*GetExecutionProviderType)(const CustomOp* op);
  int (*GetInputType)(const CustomOp* op, std::size_t index);
  std::size_t (*GetInputTypeCount)(const CustomOp* op);
  int (*GetOutputType)(const CustomOp* op, std::size_t index);
  std::size_t (*GetOutputTypeCount)(const CustomOp* op);
  void (*KernelCompute)(void* kernel, KernelContext* context);
  void (*KernelDestroy)(void* kernel);
  int (*GetInputCharacteristic)(const CustomOp* op, std::size_t index);
  int (*GetOutputCharacteristic)(const CustomOp* op, std::size_t index);
  int (*GetInputMemoryType)(const CustomOp* op, std::size_t index);
  int (*GetVariadicInputMinArity)(const CustomOp* op);
  int (*GetVariadicInputHomogeneity)(const CustomOp* op);
  int (*GetVariadicOutputMinArity)(const CustomOp* op);
  int (*GetVariadicOutputHomogeneity)(const CustomOp* op);
  Status* (*CreateKernelV2)(const CustomOp* op, const Api* api, const KernelInfo* info, void** kernel);
  Status* (*KernelComputeV2)(void* kernel, KernelContext* context);
  Status* (*InferOutputShape)(const CustomOp* op, void* context);
  int (*GetStartVersion)(const CustomOp* op);
  int (*GetEndVersion)(const CustomOp* op);
  void* of_newer_versions[4];
};

constexpr int required = 0;  // of an input or output

}  // namespace ort
