"""main.cpp."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from string import Template

from opwright.deployment.programs.exported import Exported
from opwright.deployment.runner.inputs import input_rows
from opwright.version import VERSION


@dataclass(frozen=True, slots=True)
class Model:
    """How C++ loads and runs a model.

    Attributes:
        file: The model's file.
        includes: The headers that it needs.
        definition: The C++ of a class `Model` with a constructor of the file's path, and with
            `std::vector<at::Tensor> run(const std::vector<at::Tensor>&)`.
        needs: What it needs of a processor, as compilers' `__builtin_cpu_supports` calls it.
    """

    file: str
    includes: Sequence[str]
    definition: str
    needs: Sequence[str] = ()


def main_source(exported: Exported, model: Model) -> str:
    """Write the program."""
    rows, symbols = input_rows(exported)
    return _TEXT.substitute(
        version=VERSION,
        name=exported.name,
        includes="\n".join(f"#include <{each}>" for each in model.includes),
        model=model.definition.strip(),
        file=model.file,
        needed=" && ".join(f'__builtin_cpu_supports("{feature}")' for feature in model.needs) or "true",
        inputs="".join(f"    {row},\n" for row in rows),
        symbols="".join(f"    {row},\n" for row in symbols),
        allowed=", ".join(repr(each) for each in exported.allowed),
    )


_TEXT = Template(r"""// Runs $name without Python. Written by opwright $version.
//
//   ./main                          the example: prints the largest difference to what eager returned, and a timing
//   ./main INPUTS.pt OUTPUTS.pt     a list of tensors that torch.save wrote; torch.load reads what it writes
#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <ATen/ops/view_as_real_ops.h>
$includes

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

// As in torch/csrc/jit/serialization/pickle.h, which takes three times as long to compile as all of this program.
namespace torch::jit {
TORCH_API std::vector<char> pickle_save(const c10::IValue& value);
TORCH_API c10::IValue pickle_load(const std::vector<char>& data);
}  // namespace torch::jit

$model

// What the model was compiled for: sizes, where ~k is the k-th of those that may change, and the order in which the
// dimensions lie in memory.
struct Input {
  at::ScalarType dtype;
  std::vector<int64_t> sizes, order;
};
struct Changing {
  const char* name;
  int64_t least, most;
};
static const std::vector<Input> expected_inputs = {
$inputs};
static const std::vector<Changing> changing = {
$symbols};
static const std::vector<double> allowed = {$allowed};

static std::string described(const at::Tensor& tensor) {
  std::string text = std::string(c10::toString(tensor.scalar_type())) + "[";
  for (int64_t size : tensor.sizes()) text += (text.back() == '[' ? "" : ", ") + std::to_string(size);
  return text + "]";
}

static std::string described(const Input& input) {
  std::string text = std::string(c10::toString(input.dtype)) + "[";
  for (int64_t size : input.sizes)
    text += (text.back() == '[' ? "" : ", ") + (size < 0 ? std::string(changing[~size].name) : std::to_string(size));
  return text + "]";
}

// The tensors as the model reads them: it looks at no dtype, size or stride itself. Others are copied or refused.
static std::vector<at::Tensor> checked(const std::vector<at::Tensor>& given) {
  if (given.size() != expected_inputs.size())
    throw std::runtime_error("the model takes " + std::to_string(expected_inputs.size()) + " tensors, not " +
                             std::to_string(given.size()));
  std::vector<int64_t> found(changing.size(), -1);
  std::vector<at::Tensor> ready;
  for (std::size_t k = 0; k < given.size(); ++k) {
    const at::Tensor& tensor = given[k];
    const Input& input = expected_inputs[k];
    bool fits = tensor.defined() && tensor.layout() == at::kStrided && tensor.device().is_cpu() &&
                tensor.scalar_type() == input.dtype && tensor.dim() == int64_t(input.sizes.size());
    for (int64_t d = 0; fits && d < tensor.dim(); ++d) {
      const int64_t wanted = input.sizes[d], size = tensor.size(d);
      if (wanted >= 0) {
        fits = size == wanted;
        continue;
      }
      int64_t& same = found[~wanted];
      if (same < 0) same = size;
      fits = size == same && size >= changing[~wanted].least && size <= changing[~wanted].most;
    }
    if (!fits)
      throw std::runtime_error("input " + std::to_string(k) + " is " + (tensor.defined() ? described(tensor) : "none") +
                               ", and the model takes " + described(input));
    std::vector<int64_t> back(input.order.size());
    for (std::size_t d = 0; d < back.size(); ++d) back[input.order[d]] = d;
    ready.push_back(tensor.resolve_conj().resolve_neg().permute(input.order).contiguous().permute(back));
  }
  return ready;
}

static std::vector<at::Tensor> read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("there is no file " + path);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  c10::IValue value;
  try {
    value = torch::jit::pickle_load(bytes);
  } catch (const std::exception&) {
    throw std::runtime_error(path + " is nothing that torch.save wrote");
  }
  std::vector<c10::IValue> items;
  if (value.isTensorList()) return value.toTensorVector();
  if (value.isTensor()) items = {value};
  if (value.isTuple()) items = value.toTupleRef().elements().vec();
  if (value.isList()) items = value.toListRef().vec();
  std::vector<at::Tensor> tensors;
  for (const c10::IValue& item : items) {
    if (!item.isTensor()) throw std::runtime_error(path + " holds something else than a list of tensors");
    tensors.push_back(item.toTensor());
  }
  if (tensors.empty() && !value.isTuple() && !value.isList())
    throw std::runtime_error(path + " holds something else than a list of tensors");
  return tensors;
}

// As a tuple: torch.load refuses lists of C++ unless weights_only=False.
static void write(const std::string& path, const std::vector<at::Tensor>& tensors) {
  std::vector<c10::IValue> items(tensors.begin(), tensors.end());
  const std::vector<char> bytes = torch::jit::pickle_save(c10::ivalue::Tuple::create(std::move(items)));
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), std::streamsize(bytes.size()));
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path);
}

static double difference(const at::Tensor& found, const at::Tensor& expected) {
  if (found.sizes() != expected.sizes() || found.scalar_type() != expected.scalar_type())
    throw std::runtime_error("a result is " + described(found) + ", and eager's is " + described(expected));
  if (!found.numel()) return 0;
  if (found.is_complex()) {
    using Parts = at::_ops::view_as_real;  // the header of at::view_as_real takes a fifth of the time
    return difference(Parts::call(found), Parts::call(expected));
  }
  const at::Tensor a = found.to(at::kDouble), b = expected.to(at::kDouble);
  const at::Tensor same = a.eq(b).logical_or(a.isnan().logical_and(b.isnan()));
  const double largest = a.sub(b).abs().masked_fill(same, 0).max().item().toDouble();
  return std::isnan(largest) ? std::numeric_limits<double>::infinity() : largest;
}

static double median_us(Model& model, const std::vector<at::Tensor>& inputs) {
  using Clock = std::chrono::steady_clock;
  std::vector<double> times;
  const auto start = Clock::now();
  while (times.size() < 20 || (times.size() < 5000 && Clock::now() - start < std::chrono::milliseconds(500))) {
    const auto before = Clock::now();
    model.run(inputs);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - before).count());
  }
  std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
  return times[times.size() / 2];
}

static int run_example(Model& model, const std::filesystem::path& folder) {
  const std::vector<at::Tensor> inputs = checked(read(folder / "inputs.pt")), expected = read(folder / "expected.pt");
  const std::vector<at::Tensor> made = model.run(inputs);
  if (made.size() != expected.size()) throw std::runtime_error("the model returned another number of tensors");
  bool right = true;
  for (std::size_t k = 0; k < made.size(); ++k) {
    const double largest = difference(made[k], expected[k]);
    right = right && largest <= allowed[k];
    std::printf("result %zu: largest difference %.3g, allowed %.3g\n", k, largest, allowed[k]);
  }
  std::printf("median of a run: %.3f us\n", median_us(model, inputs));
  return right ? 0 : 1;
}

int main(int count, char** words) {
  if (count != 1 && count != 3) {
    std::fprintf(stderr, "usage: %s [INPUTS.pt OUTPUTS.pt]\n", words[0]);
    return 2;
  }
  try {
    if (!($needed))
      throw std::runtime_error("$file was compiled for processors with more instructions than this one has");
    const at::NoGradGuard no_gradients;
    const std::filesystem::path folder = std::filesystem::read_symlink("/proc/self/exe").parent_path();
    Model model(folder / "$file");
    if (count == 1) return run_example(model, folder);
    write(words[2], model.run(checked(read(words[1]))));
    return 0;
  } catch (const std::exception& error) {
    const std::string text = error.what();
    std::fprintf(stderr, "error: %s\n", text.substr(0, text.find('\n')).c_str());
    return 2;
  }
}
""")
