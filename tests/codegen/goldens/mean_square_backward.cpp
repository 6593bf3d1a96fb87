// mean_square_backward, from mean_square in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:mean_square --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   expand_grad_output = grad_output[]
//   mul_1 = expand_grad_output/float32(size)·x
//   grad_x_bfloat16 = bfloat16(mul_1 + mul_1)
static void mean_square_backward_row(Size count, void* const* row) {
  const BFloat16 expand_grad_output = *static_cast<const BFloat16*>(row[0]);
  const int64_t size = *static_cast<const int64_t*>(row[1]);
  const BFloat16* x_row = static_cast<const BFloat16*>(row[2]);
  BFloat16* grad_x_bfloat16_row = static_cast<BFloat16*>(row[3]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    const BFloat16 x = x_row[j];
    const float mul_1 = to_float(expand_grad_output) / static_cast<float>(size) * to_float(x);
    grad_x_bfloat16_row[j] = to_bfloat16(mul_1 + mul_1);
  }
}

static bool mean_square_backward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const Tensor& grad_output = given[1];
  const bool known = x.is(bfloat16, 2) && grad_output.is(bfloat16, 0);
  if (!known) return false;
  const Size x_size_0 = x.size(0);
  const Size x_size_1 = x.size(1);
  const Size size = x_size_0*x_size_1;
  const Size grad_x_bfloat16_sizes[] = {x_size_0, x_size_1};
  Tensor grad_x_bfloat16 = allocate(bfloat16, sizeof(BFloat16), grad_x_bfloat16_sizes, 2);
  if (!grad_x_bfloat16) return false;
  {
    const Size extents[] = {x_size_0, x_size_1};
    const Operand<2> operands[] = {
        load<2>(grad_output.at<const BFloat16>(0), {0, 0}, false),
        load<2>(&size, {0, 0}, false),
        load<2>(x.at<const BFloat16>(0), {x.stride(0), x.stride(1)}),
        quick(store<2>(grad_x_bfloat16.at<BFloat16>(0), {grad_x_bfloat16.stride(0), grad_x_bfloat16.stride(1)})),
    };
    for_each_row(extents, operands, 18666, mean_square_backward_row);
  }
  made[0] = static_cast<Tensor&&>(grad_x_bfloat16);
  return true;
}

static void mean_square_backward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0]), take(stack[1])};
  const Size sizes[] = {0};
  Tensor made[1];
  finish(stack, mean_square_backward(given, sizes, made), made);
}

static const Registration registration(
    "mean_square_backward_814a2f33ac11(Tensor x, Tensor grad_output) -> Tensor",
    "mean_square_backward_814a2f33ac11", mean_square_backward_on_stack);

}  // namespace opwright::emitted
