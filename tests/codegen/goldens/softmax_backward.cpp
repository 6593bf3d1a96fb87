// softmax_backward, from softmax in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:softmax --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   row_sum_grad_output_result = Σ grad_output·saved_output_0
//   grad_x = saved_output_0·(grad_output - row_sum_grad_output_result)
static void softmax_backward_row(Size count, void* const* row) {
  const float* grad_output_row = static_cast<const float*>(row[0]);
  const float* saved_output_0_row = static_cast<const float*>(row[1]);
  float* grad_x_row = static_cast<float*>(row[2]);
  float* grad_x_past = static_cast<float*>(row[3]);
  double row_sum_grad_output_result_total = 0;
  for (Size begin = 0; begin < count; begin += sum_run) {
    const Size end = least(begin + sum_run, count);
    float row_sum_grad_output_result_part[sum_run];
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const float grad_output = grad_output_row[j];
      const float saved_output_0 = saved_output_0_row[j];
      row_sum_grad_output_result_part[j - begin] = grad_output * saved_output_0;
    }
    row_sum_grad_output_result_total += sum_of(row_sum_grad_output_result_part, end - begin);
  }
  const float row_sum_grad_output_result = static_cast<float>(row_sum_grad_output_result_total);
  for (Size begin = 0, run = grad_x_past ? sum_run : count; begin < count; begin += run) {
    const Size end = least(begin + run, count);
    float* grad_x_run = grad_x_past ? grad_x_past : grad_x_row + begin;
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const float grad_output = grad_output_row[j];
      const float saved_output_0 = saved_output_0_row[j];
      grad_x_run[j - begin] = saved_output_0 * (grad_output - row_sum_grad_output_result);
    }
    go_past(grad_x_past, grad_x_row + begin, end - begin);
  }
}

static bool softmax_backward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& saved_output_0 = given[0];
  const Tensor& grad_output = given[1];
  const bool known = saved_output_0.is(float32, 2) && grad_output.is(float32, 2);
  if (!known) return false;
  const Size saved_output_0_size_0 = saved_output_0.size(0);
  const Size saved_output_0_size_1 = saved_output_0.size(1);
  const Size grad_output_size_0 = grad_output.size(0);
  const Size grad_output_size_1 = grad_output.size(1);
  const bool valid = grad_output_size_0 == saved_output_0_size_0 && grad_output_size_1 == saved_output_0_size_1;
  if (!valid) return false;
  const Size grad_x_sizes[] = {saved_output_0_size_0, saved_output_0_size_1};
  Tensor grad_x = allocate(float32, sizeof(float), grad_x_sizes, 2);
  if (!grad_x) return false;
  {
    const Size extents[] = {saved_output_0_size_0, saved_output_0_size_1};
    const Operand<2> operands[] = {
        load<2>(grad_output.at<const float>(0), {grad_output.stride(0), grad_output.stride(1)}),
        load<2>(saved_output_0.at<const float>(0), {saved_output_0.stride(0), saved_output_0.stride(1)}),
        store<2>(grad_x.at<float>(0), {grad_x.stride(0), grad_x.stride(1)}),
        past<2, float>(2),
    };
    for_each_whole_row(extents, operands, 1, 8192, softmax_backward_row);
  }
  made[0] = static_cast<Tensor&&>(grad_x);
  return true;
}

static void softmax_backward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0]), take(stack[1])};
  const Size sizes[] = {0};
  Tensor made[1];
  finish(stack, softmax_backward(given, sizes, made), made);
}

static const Registration registration(
    "softmax_backward_1e5b02c3c166(Tensor saved_output_0, Tensor grad_output) -> Tensor",
    "softmax_backward_1e5b02c3c166", softmax_backward_on_stack);

}  // namespace opwright::emitted
