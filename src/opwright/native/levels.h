// The levels of torch's function transforms, as in tracing/torch_hooks/functorch.py: unwrapping a tensor, and running
// one level below.
#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/DynamicLayer.h>
#include <ATen/functorch/TensorWrapper.h>
#include <c10/core/AutogradState.h>

#include <cstdint>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

namespace opwright {

namespace functorch = at::functorch;

// An active transform.
class Level {
 public:
  static Level innermost() { return Level(functorch::getDynamicLayerStack().back().interpreter()); }

  functorch::TransformType transform() const { return interpreter_.key(); }

  const char* randomness() const {
    switch (std::get<functorch::VmapInterpreterMeta>(interpreter_.meta()).randomness_) {
      case functorch::RandomnessType::Different:
        return "different";
      case functorch::RandomnessType::Same:
        return "same";
      default:
        return "error";
    }
  }

  // Whether a tensor is wrapped at this level, to be differentiated.
  bool has(const at::Tensor& tensor) const {
    const auto* wrapper = functorch::maybeGetTensorWrapper(tensor);
    return wrapper && wrapper->level() == interpreter_.level();
  }

  // The tensor below; a tensor that is not of this level stays as it is.
  at::Tensor unwrap(const at::Tensor& tensor) const {
    return has(tensor) ? functorch::maybeGetTensorWrapper(tensor)->value() : tensor;
  }

  at::Tensor wrap(const at::Tensor& tensor) const { return functorch::makeTensorWrapper(tensor, interpreter_); }

  // Wrap a tensor that is not of this level, as a constant.
  at::Tensor lift(const at::Tensor& tensor) const {
    return has(tensor) ? tensor : functorch::makeTensorWrapper(tensor, interpreter_, /*is_immutable=*/true);
  }

  // The tensor below, and which of its dimensions is the batch; nothing if none is.
  std::optional<std::pair<at::Tensor, int64_t>> unbatched(const at::Tensor& tensor) const {
    const auto* batched = functorch::maybeGetBatchedImpl(tensor);
    if (!batched || batched->level() != interpreter_.level()) return std::nullopt;
    return std::make_pair(batched->value(), batched->bdim());
  }

  // Wrap a tensor from below, with its first dimension as the batch.
  at::Tensor add_batch(const at::Tensor& tensor) const {
    return functorch::addBatchDim(tensor, 0, interpreter_.level());
  }

 private:
  explicit Level(const functorch::Interpreter& interpreter) : interpreter_(interpreter) {}

  functorch::Interpreter interpreter_;
};

// Runs below the innermost level while it lives. Gradients are off there if they were off when the level began.
class Below {
 public:
  Below() : layer_(functorch::popDynamicLayer()) {
    const auto& began = layer_.interpreter().meta();
    if (const auto* grad = std::get_if<functorch::GradInterpreterMeta>(&began); grad && !grad->prevGradMode_)
      gradients_.emplace(false);
    if (const auto* jvp = std::get_if<functorch::JvpInterpreterMeta>(&began); jvp && !jvp->prevFwdGradMode_)
      tangents_.emplace(false);
  }
  ~Below() { functorch::pushDynamicLayer(std::move(layer_)); }
  Below(const Below&) = delete;
  Below& operator=(const Below&) = delete;

 private:
  functorch::DynamicLayer layer_;
  std::optional<at::AutoGradMode> gradients_;
  std::optional<c10::AutoFwGradMode> tangents_;
};

// While it lives, levels beyond the first ones draw random numbers once for a whole batch.
class DrawingAlikeAbove {
 public:
  explicit DrawingAlikeAbove(size_t first) : first_(first), before_(functorch::getDynamicLayerStack()) {
    replace([](const functorch::DynamicLayer& layer) {
      if (layer.key() != functorch::TransformType::Vmap) return layer;
      return functorch::DynamicLayer(functorch::TransformType::Vmap, layer.layerId(), layer.batchSize(),
                                     functorch::RandomnessType::Same);
    });
  }
  ~DrawingAlikeAbove() {
    replace([](const functorch::DynamicLayer& layer) { return layer; });
  }
  DrawingAlikeAbove(const DrawingAlikeAbove&) = delete;
  DrawingAlikeAbove& operator=(const DrawingAlikeAbove&) = delete;

 private:
  template <typename Choose>
  void replace(Choose choose) const {
    while (functorch::getDynamicLayerStack().size() > first_) functorch::popDynamicLayer();
    for (size_t k = first_; k < before_.size(); ++k) functorch::pushDynamicLayer(choose(before_[k]));
  }

  size_t first_;
  std::vector<functorch::DynamicLayer> before_;
};

}  // namespace opwright
