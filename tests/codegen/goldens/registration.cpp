// Operators at PyTorch's dispatcher. Written by opwright 0.1.0.

#include "opwright/package.h"

namespace opwright::emitted {

// The kernels for this processor, from the folder of this library.
static const Kernels kernels({
    {"fast", "avx2", __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")},
    {"plain", "", true},
});

// Those for GPUs, where torch has CUDA.
static const CudaKernels cuda_kernels({
    "cuda/scale_forward_3.so",
});

// scale(Tensor x, float factor=1.5, bool up=True, int axis=-2, *, Tensor y, str mode="a") -> Tensor
static void scale_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor tensors[] = {take(stack[0]), take(stack[4])};
  const double argument_1 = number(stack[1]);
  const bool argument_2 = bool(stack[2]);
  const Size argument_3 = Size(stack[3]);
  refuse_derivatives("my::scale", tensors);
  if (!kernels.level() || !are_nonempty(tensors)) refuse("my::scale", kernels, tensors);
  if (is_same(argument_2, true) && is_same(argument_3, Size(-2)) && -argument_1 >= 0.5 && are_row_major(tensors) &&
      run("my_kernels::scale_forward_1", {pass(tensors[0]), number_tensor(argument_1)}, 2, stack, 1))
    return;
  if (cuda_kernels.loaded() && is_same(argument_2, true) && is_same(argument_3, Size(-2)) && -argument_1 >= 0.5 &&
      are_row_major(tensors) &&
      run("my_kernels::scale_forward_3", {pass(tensors[0]), number_tensor(argument_1)}, 2, stack, 1))
    return;
  if (is_same(argument_1, 0.0) && are_row_major(tensors) &&
      run("my_kernels::scale_forward_2", {pass(tensors[0]), pass(tensors[1])}, 2, stack, 1))
    return;
  refuse("my::scale", kernels, tensors);
}

// named(Tensor x, float factor=1.5, bool up=True, int axis=-2, *, Tensor y, str mode="a") -> Tensor
static void named_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  refuse("my::named", "it has parameters of type str, which are read in Python only");
}

static const Operator scale_registration(
    "my",
    "scale(Tensor x, float factor=1.5, bool up=True, int axis=-2, *, Tensor y, str mode=\"a\") -> Tensor",
    "scale", scale_on_stack);
static const Operator named_registration(
    "my",
    "named(Tensor x, float factor=1.5, bool up=True, int axis=-2, *, Tensor y, str mode=\"a\") -> Tensor",
    "named", named_on_stack);

}  // namespace opwright::emitted

// Which kernels this process runs, why it runs none, and why none for GPUs; nullptr where there is nothing to say.
extern "C" {
OPWRIGHT_VISIBLE const char* opwright_cpu_level() { return opwright::emitted::kernels.level(); }
OPWRIGHT_VISIBLE const char* opwright_load_failure() { return opwright::emitted::kernels.failure(); }
OPWRIGHT_VISIBLE const char* opwright_cuda_failure() { return opwright::emitted::cuda_kernels.failure(); }
}
