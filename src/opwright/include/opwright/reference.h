// References in C++: PyTorch's operations called one by one through its dispatcher, as Python would call them, so that
// they take every dtype and record gradients. It is compiled against libtorch of one version.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/grad_mode.h>

#include <initializer_list>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

namespace opwright::reference {

using Value = c10::IValue;
using Values = std::vector<Value>;
using Given = std::optional<Value>;  // nothing: what the schema says

inline const Given omitted = std::nullopt;

inline Value ints(std::initializer_list<Value> items) {
  c10::List<int64_t> list;
  for (const Value& item : items) list.push_back(item.toInt());
  return list;
}
inline Value floats(std::initializer_list<double> items) { return c10::List<double>(items); }
inline Value bools(std::initializer_list<bool> items) { return c10::List<bool>(items); }
inline Value tensors(std::initializer_list<Value> items) {
  c10::List<at::Tensor> list;
  for (const Value& item : items) list.push_back(item.toTensor());
  return list;
}
inline Value optional_tensors(std::initializer_list<Value> items) {
  c10::List<std::optional<at::Tensor>> list;
  for (const Value& item : items)
    list.push_back(item.isNone() ? std::nullopt : std::optional<at::Tensor>(item.toTensor()));
  return list;
}

// Call an operation; arguments that are left out at the end are the schema's too.
inline Values call(const char* name, const char* overload, std::initializer_list<Given> given) {
  const auto operation = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  const auto& arguments = operation.schema().arguments();
  Values stack;
  std::size_t position = 0;
  for (const Given& each : given) {
    stack.push_back(each ? *each : arguments[position].default_value().value());
    ++position;
  }
  for (; position < arguments.size(); ++position) stack.push_back(arguments[position].default_value().value());
  operation.callBoxed(&stack);
  return stack;
}
// A number where an operation takes a tensor: one that does not promote the others, as Python passes it.
inline Value wrapped(const at::Scalar& number) {
  const at::Tensor tensor = call("aten::scalar_tensor", "", {Value(number), Value(int64_t(number.type()))})[0].toTensor();
  tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  return tensor;
}

// The only result; of an operation that returns a list, the list's tensors.
inline Value the(Values made) { return std::move(made.at(0)); }
inline Values listed(const Value& made) {
  Values items;
  for (const at::Tensor& each : made.toTensorVector()) items.emplace_back(each);
  return items;
}

inline int64_t floor_divided(int64_t a, int64_t b) { return a / b - ((a % b != 0) & ((a < 0) != (b < 0))); }
inline int64_t size_of(const Value& tensor, int64_t dimension) { return tensor.toTensor().size(dimension); }

// Whether a tensor is one that a graph of operations was recorded for.
inline bool is(const Value& value, std::initializer_list<at::ScalarType> dtypes, int64_t rank) {
  const at::Tensor& tensor = value.toTensor();
  if (!tensor.defined() || tensor.dim() != rank) return false;
  for (const at::ScalarType dtype : dtypes)
    if (tensor.scalar_type() == dtype) return true;
  return false;
}

// Tensors as the stable interface hands them over.
inline const at::Tensor& tensor_of(uint64_t handle) { return *reinterpret_cast<const at::Tensor*>(handle); }
inline double float_of(uint64_t bits) {
  double value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline uint64_t handed_over(const Value& value) {
  return reinterpret_cast<uint64_t>(new at::Tensor(value.toTensor()));
}

// Whether kernels may see a tensor: dense, of this processor, not empty, and nothing records what is done to it.
inline bool is_plain(const at::Tensor& tensor) {
  return tensor.defined() && tensor.layout() == at::kStrided && tensor.device().is_cpu() && tensor.numel() != 0 &&
         !tensor.is_conj() && !tensor.is_neg() && !(at::GradMode::is_enabled() && tensor.requires_grad()) &&
         !tensor._fw_grad(0).defined();
}

inline std::string described(const at::Tensor& tensor) {
  if (!tensor.defined()) return "nothing";
  std::string text = std::string(c10::toString(tensor.scalar_type())) + "[";
  for (int64_t dimension = 0; dimension < tensor.dim(); ++dimension)
    text += (dimension ? ", " : "") + std::to_string(tensor.size(dimension));
  return text + "]";
}

[[noreturn]] inline void refuse(const char* name, std::initializer_list<Value> arguments) {
  std::string text = std::string(name) + " was deployed for other arguments than";
  for (const Value& value : arguments)
    text += " " + (value.isTensor() ? described(value.toTensor()) : value.isInt() ? std::to_string(value.toInt())
                                                                                   : std::to_string(value.toDouble()));
  throw std::runtime_error(text + ": deploy the model with example arguments like these");
}

}  // namespace opwright::reference
