// Random numbers that a backward pass draws again: binding/autograd/redraw.py in C++.
#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/EmptyTensor.h>

#include <cstring>
#include <mutex>
#include <new>
#include <optional>
#include <type_traits>

#include "levels.h"

namespace opwright {

// The state of random numbers: the generator's state, and the number of active transforms.
struct GeneratorState {
  at::mt19937 engine;
  std::optional<float> next_float;  // normal numbers come in pairs: the second one of a pair
  std::optional<double> next_double;
  size_t levels;

  static GeneratorState now() {
    auto& generator = the_generator();
    const std::lock_guard<std::mutex> lock(generator.mutex_);
    return {generator.engine(), generator.next_float_normal_sample(), generator.next_double_normal_sample(),
            functorch::getDynamicLayerStack().size()};
  }

  void go_there() const {
    auto& generator = the_generator();
    const std::lock_guard<std::mutex> lock(generator.mutex_);
    generator.set_engine(engine);
    generator.set_next_float_normal_sample(next_float);
    generator.set_next_double_normal_sample(next_double);
  }

  // The state of this moment as bytes, which a node can give to a graph; and back.
  static at::Tensor bytes_now() {
    static_assert(std::is_trivially_copyable_v<GeneratorState>);
    at::Tensor bytes = at::detail::empty_cpu({sizeof(GeneratorState)}, at::TensorOptions(at::kByte));
    new (bytes.data_ptr()) GeneratorState(now());
    return bytes;
  }
  static GeneratorState from(const at::Tensor& bytes) {
    GeneratorState state;
    std::memcpy(&state, bytes.data_ptr(), sizeof(GeneratorState));
    return state;
  }

  // Whether the generator is in the same state.
  bool operator==(const GeneratorState& other) const {
    const auto here = engine.data(), there = other.engine.data();
    return here.seed_ == there.seed_ && here.left_ == there.left_ && here.next_ == there.next_ &&
           here.state_ == there.state_ && next_float == other.next_float && next_double == other.next_double;
  }

 private:
  static at::CPUGeneratorImpl& the_generator() {
    return *at::check_generator<at::CPUGeneratorImpl>(at::detail::getDefaultCPUGenerator());
  }
};

// Draws the same numbers while it lives; then restores the generator. None changes nothing. Transforms that began later
// map gradients of the drawn numbers, and draw none of their own.
class DrawnAgain {
 public:
  explicit DrawnAgain(const GeneratorState* from) {
    if (!from) return;
    after_ = GeneratorState::now();
    alike_.emplace(from->levels);
    from->go_there();
  }
  ~DrawnAgain() {
    if (after_) after_->go_there();
  }
  DrawnAgain(const DrawnAgain&) = delete;
  DrawnAgain& operator=(const DrawnAgain&) = delete;

 private:
  std::optional<GeneratorState> after_;
  std::optional<DrawingAlikeAbove> alike_;
};

}  // namespace opwright
