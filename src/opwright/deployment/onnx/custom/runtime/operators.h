// Operators of ONNX Runtime: each runs the first of its kernels that takes the call, or ends in a sentence.
#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "tensors.h"

namespace opwright_onnx {

struct Sizes {
  int64_t rank;  // -1 if they are not known before the kernel runs
  int64_t sizes[most_dimensions];
};

// A kernel of an operator.
struct Variant {
  const char* kernel;                                       // the name that it registers itself under
  std::vector<int> operands;                                // inputs, and numbers as -1, -2, …
  void (*sizes)(const AtenTensorHandle* given, Sizes* made);  // of its results
  bool (*takes)(const double* numbers);                     // whether it is for these numbers
};

enum class Kind { integer, real, exact };

// A number: an attribute of the node.
struct Attribute {
  const char* name;
  Kind kind;
  int32_t dtype;  // of the tensor that kernels take
};

struct Operator : ort::CustomOp {
  const char* name;
  const char* full_name;
  std::vector<int> inputs, outputs;  // dtypes
  std::vector<Attribute> attributes;
  std::vector<Variant> variants;

  Operator(const char* name, const char* full_name, std::vector<int> inputs, std::vector<int> outputs,
           std::vector<Attribute> attributes, std::vector<Variant> variants);
};

inline const Operator& of(const ort::CustomOp* op) { return *static_cast<const Operator*>(op); }

// A node of a model: an operator with its numbers.
struct Node {
  const Operator& op;
  const ort::Api& api;
  ort::MemoryInfo* memory = nullptr;
  std::vector<double> numbers;
  std::vector<int64_t> integers;
  std::vector<Becomes> becomes{op.variants.size()};

  ort::Status* read(const ort::KernelInfo* info);
  ort::Status* compute(ort::KernelContext* context);

 private:
  ort::Status* run(Run& run, std::vector<AtenTensorHandle>& inputs);
  ort::Status* try_variant(const Variant& variant, Run& run, const std::vector<AtenTensorHandle>& inputs, bool& done);
  ort::Status* finish(Run& run, std::vector<AtenTensorHandle>& made);
  ort::Status* failed(const std::vector<AtenTensorHandle>& inputs, const char* why);
};

inline ort::Status* Node::read(const ort::KernelInfo* info) {
  if (ort::Status* error = api.CreateCpuMemoryInfo(1, 0, &memory)) return error;
  for (const Attribute& attribute : op.attributes) {
    double real = 0;
    int64_t integer = 0;
    if (attribute.kind == Kind::integer) {
      if (ort::Status* error = api.KernelInfoGetAttribute_int64(info, attribute.name, &integer)) return error;
      real = double(integer);
    } else if (attribute.kind == Kind::real) {
      float value = 0;
      if (ort::Status* error = api.KernelInfoGetAttribute_float(info, attribute.name, &value)) return error;
      real = value;
    } else {
      ort::Allocator* allocator = nullptr;
      ort::Value* value = nullptr;
      void* data = nullptr;
      if (ort::Status* error = api.GetAllocatorWithDefaultOptions(&allocator)) return error;
      if (ort::Status* error = api.KernelInfoGetAttribute_tensor(info, attribute.name, allocator, &value)) return error;
      ort::Status* const error = api.GetTensorMutableData(value, &data);
      if (!error) std::memcpy(&real, data, sizeof real);
      api.ReleaseValue(value);
      if (error) return error;
    }
    numbers.push_back(real), integers.push_back(integer);
  }
  return nullptr;
}

inline ort::Status* Node::failed(const std::vector<AtenTensorHandle>& inputs, const char* why) {
  std::string text = std::string(op.full_name) + " " + why + " of sizes";
  for (const AtenTensorHandle each : inputs) {
    text += each == inputs.front() ? " (" : ", (";
    for (int64_t k = 0; k < each->rank; ++k) text += (k ? ", " : "") + std::to_string(each->sizes[k]);
    text += ")";
  }
  return api.CreateStatus(2, text.c_str());
}

inline ort::Status* Node::compute(ort::KernelContext* context) {
  std::vector<Result> results(op.outputs.size());
  for (std::size_t k = 0; k < results.size(); ++k) results[k].dtype = op.outputs[k];
  Run run{&api, context, memory, &results};
  std::vector<AtenTensorHandle> inputs;
  ort::Status* error = nullptr;
  for (std::size_t k = 0; k < op.inputs.size() && !error; ++k) {
    const ort::Value* value = nullptr;
    ort::Shape* shape = nullptr;
    void* data = nullptr;
    std::size_t rank = 0;
    int64_t sizes[most_dimensions];
    if ((error = api.KernelContext_GetInput(context, k, &value))) break;
    if ((error = api.GetTensorTypeAndShape(value, &shape))) break;
    error = api.GetDimensionsCount(shape, &rank);
    if (!error && rank <= most_dimensions) error = api.GetDimensions(shape, sizes, rank);
    api.ReleaseShape(shape);
    if (!error) error = api.GetTensorMutableData(const_cast<ort::Value*>(value), &data);
    if (!error) inputs.push_back(over(data, op.inputs[k], int64_t(rank), sizes));
  }
  Run* const before = running;
  running = &run;
  if (!error) error = this->run(run, inputs);
  for (const AtenTensorHandle each : inputs) aoti_torch_delete_tensor_object(each);
  running = before;
  return error;
}

inline ort::Status* Node::run(Run& run, std::vector<AtenTensorHandle>& inputs) {
  bool is_empty = false;
  for (const AtenTensorHandle each : inputs) is_empty = is_empty || !count_of(each->rank, each->sizes);
  std::vector<Sizes> sizes(op.outputs.size());
  for (const Variant& variant : op.variants) {
    if (!variant.takes(numbers.data())) continue;
    variant.sizes(inputs.data(), sizes.data());
    bool are_empty = true;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
      are_empty = are_empty && sizes[k].rank > 0 && !count_of(sizes[k].rank, sizes[k].sizes);
      Result& result = (*run.results)[k];
      if (result.data) continue;
      result.rank = sizes[k].rank;
      for (int64_t d = 0; d < result.rank; ++d) result.sizes[d] = sizes[k].sizes[d];
    }
    if (is_empty && !are_empty) return failed(inputs, "has no kernel for empty tensors");
    if (is_empty) {
      for (std::size_t k = 0; k < sizes.size(); ++k) run.memory_of(k);
      return nullptr;
    }
    bool done = false;
    if (ort::Status* error = try_variant(variant, run, inputs, done)) return error;
    if (done) return nullptr;
  }
  return failed(inputs, "has no kernel for these numbers, or for tensors");
}

inline ort::Status* Node::try_variant(const Variant& variant, Run& run, const std::vector<AtenTensorHandle>& inputs,
                                      bool& done) {
  const auto found = kernels().find(variant.kernel);
  if (found == kernels().end()) return api.CreateStatus(1, "a kernel is missing in the library");
  std::vector<StableIValue> stack(std::max(variant.operands.size(), op.outputs.size()));
  for (std::size_t k = 0; k < variant.operands.size(); ++k) {
    AtenTensorHandle handle = nullptr;
    const int operand = variant.operands[k];
    if (operand >= 0) {
      aoti_torch_new_tensor_handle(inputs[operand], &handle);
    } else {
      const std::size_t number = std::size_t(-1 - operand);
      const bool is_integer = op.attributes[number].kind == Kind::integer;
      void* const data = is_integer ? static_cast<void*>(&integers[number]) : static_cast<void*>(&numbers[number]);
      handle = over(data, op.attributes[number].dtype, 0, nullptr);
    }
    stack[k] = reinterpret_cast<StableIValue>(handle);
  }
  Becomes& becomes = this->becomes[&variant - op.variants.data()];
  run.becomes = &becomes, run.turn = 0;
  found->second(stack.data(), 0, 0);
  std::vector<AtenTensorHandle> made;
  done = true;
  for (std::size_t k = 0; k < op.outputs.size(); ++k) {
    made.push_back(reinterpret_cast<AtenTensorHandle>(stack[k]));
    done = done && made.back()->storage;
  }
  if (done) {
    for (int turn = 0; turn < run.turn; ++turn) {
      const auto of = [turn](AtenTensorHandle each) { return each->storage->turn == turn; };
      const auto place = std::find_if(made.begin(), made.end(), of);
      becomes.learn(turn, place == made.end() ? Becomes::temporary : int(place - made.begin()));
    }
  }
  ort::Status* const error = done ? finish(run, made) : nullptr;
  for (const AtenTensorHandle each : made) aoti_torch_delete_tensor_object(each);
  return error;
}

// Results that are not in the memory that ONNX Runtime gave for them are copied there, first out of each other's way.
inline ort::Status* Node::finish(Run& run, std::vector<AtenTensorHandle>& made) {
  std::vector<std::vector<char>> copies(made.size());
  for (std::size_t k = 0; k < made.size(); ++k) {
    if (made[k]->dtype != op.outputs[k]) return api.CreateStatus(1, "a kernel returned another dtype");
    if (made[k]->data == (*run.results)[k].data && (*run.results)[k].is_of(made[k]->dtype, made[k]->rank, made[k]->sizes)) continue;
    copies[k].resize(std::size_t(count_of(made[k]->rank, made[k]->sizes)) * item_bytes(made[k]->dtype) + 1);
    copy_row_major(made[k], copies[k].data());
  }
  for (std::size_t k = 0; k < made.size(); ++k) {
    if (copies[k].empty()) continue;
    Result& result = (*run.results)[k];
    if (result.data && !result.is_of(made[k]->dtype, made[k]->rank, made[k]->sizes))
      return api.CreateStatus(1, "a kernel returned other sizes than it said");
    result.rank = made[k]->rank;
    for (int64_t d = 0; d < result.rank; ++d) result.sizes[d] = made[k]->sizes[d];
    if (!result.data && !run.memory_of(k)) return api.CreateStatus(1, "there is no memory for a result");
    std::memcpy(result.data, copies[k].data(), copies[k].size() - 1);
  }
  return nullptr;
}

inline Operator::Operator(const char* name, const char* full_name, std::vector<int> inputs, std::vector<int> outputs,
                          std::vector<Attribute> attributes, std::vector<Variant> variants)
    : ort::CustomOp{}, name(name), full_name(full_name), inputs(inputs), outputs(outputs), attributes(attributes),
      variants(variants) {
  version = ort::version;
  GetName = [](const ort::CustomOp* op) { return of(op).name; };
  GetExecutionProviderType = [](const ort::CustomOp*) -> const char* { return nullptr; };  // the processor
  GetInputType = [](const ort::CustomOp* op, std::size_t k) { return of(op).inputs[k]; };
  GetInputTypeCount = [](const ort::CustomOp* op) { return of(op).inputs.size(); };
  GetOutputType = [](const ort::CustomOp* op, std::size_t k) { return of(op).outputs[k]; };
  GetOutputTypeCount = [](const ort::CustomOp* op) { return of(op).outputs.size(); };
  GetInputCharacteristic = [](const ort::CustomOp*, std::size_t) { return ort::required; };
  GetOutputCharacteristic = [](const ort::CustomOp*, std::size_t) { return ort::required; };
  GetInputMemoryType = [](const ort::CustomOp*, std::size_t) { return 0; };
  GetVariadicInputMinArity = GetVariadicOutputMinArity = [](const ort::CustomOp*) { return 1; };
  GetVariadicInputHomogeneity = GetVariadicOutputHomogeneity = [](const ort::CustomOp*) { return 0; };
  GetStartVersion = [](const ort::CustomOp*) { return 1; };
  GetEndVersion = [](const ort::CustomOp*) { return 0x7fffffff; };
  CreateKernelV2 = [](const ort::CustomOp* op, const ort::Api* api, const ort::KernelInfo* info, void** kernel) {
    Node* const node = new Node{of(op), *api};
    *kernel = node;
    return node->read(info);
  };
  KernelComputeV2 = [](void* kernel, ort::KernelContext* context) {
    return static_cast<Node*>(kernel)->compute(context);
  };
  KernelDestroy = [](void* kernel) {
    Node* const node = static_cast<Node*>(kernel);
    if (node->memory) node->api.ReleaseMemoryInfo(node->memory);
    delete node;
  };
}

// Adds operators to the domains of a session.
inline ort::Status* add(ort::SessionOptions* options, const ort::ApiBase* base,
                        const std::map<std::string, std::vector<const Operator*>>& domains, bool can_run) {
  const ort::Api* const api = base->GetApi(ort::version);
  if (!api) {
    const std::string text = std::string("these operators need ONNX Runtime 1.17 or newer, and this is ") + base->GetVersionString();
    return base->GetApi(1)->CreateStatus(9, text.c_str());
  }
  if (!can_run) return api->CreateStatus(9, "these operators are for processors with other instructions");
  for (const auto& [name, operators] : domains) {
    ort::CustomOpDomain* domain = nullptr;
    if (ort::Status* error = api->CreateCustomOpDomain(name.c_str(), &domain)) return error;
    for (const Operator* each : operators)
      if (ort::Status* error = api->CustomOpDomain_Add(domain, each)) return error;
    if (ort::Status* error = api->AddCustomOpDomain(options, domain)) return error;
  }
  return nullptr;
}

}  // namespace opwright_onnx
