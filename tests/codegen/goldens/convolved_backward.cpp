// convolved_backward, from convolved in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:convolved --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   where_1 = saved_output_0 ≤ 0 ? 0 : grad_output
static void convolved_backward_row(Size count, void* const* row) {
  const float* saved_output_0_row = static_cast<const float*>(row[0]);
  const float* grad_output_row = static_cast<const float*>(row[1]);
  float* where_1_row = static_cast<float*>(row[2]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    const float saved_output_0 = saved_output_0_row[j];
    const float grad_output = grad_output_row[j];
    where_1_row[j] = saved_output_0 <= 0.0f ? 0.0f : grad_output;
  }
}

static bool convolved_backward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const Tensor& weight = given[1];
  const Tensor& saved_output_0 = given[2];
  const Tensor& grad_output = given[3];
  const bool known = x.is(float32, 4) && weight.is(float32, 4) && saved_output_0.is(float32, 4) &&
      grad_output.is(float32, 4);
  if (!known) return false;
  const Size x_size_0 = x.size(0);
  const Size x_size_1 = x.size(1);
  const Size x_size_2 = x.size(2);
  const Size x_size_3 = x.size(3);
  const Size weight_size_0 = weight.size(0);
  const Size weight_size_1 = weight.size(1);
  const Size weight_size_2 = weight.size(2);
  const Size weight_size_3 = weight.size(3);
  const Size saved_output_0_size_0 = saved_output_0.size(0);
  const Size saved_output_0_size_1 = saved_output_0.size(1);
  const Size saved_output_0_size_2 = saved_output_0.size(2);
  const Size saved_output_0_size_3 = saved_output_0.size(3);
  const Size grad_output_size_0 = grad_output.size(0);
  const Size grad_output_size_1 = grad_output.size(1);
  const Size grad_output_size_2 = grad_output.size(2);
  const Size grad_output_size_3 = grad_output.size(3);
  const bool valid = weight_size_1 == x_size_1 && saved_output_0_size_0 == x_size_0 &&
      saved_output_0_size_1 == weight_size_0 && grad_output_size_0 == x_size_0 && grad_output_size_1 == weight_size_0 &&
      saved_output_0_size_2 == floor_divide((x_size_2 - weight_size_2), 2) + 2 &&
      saved_output_0_size_3 == floor_divide((x_size_3 - weight_size_3), 2) + 2 &&
      grad_output_size_2 == floor_divide((x_size_2 - weight_size_2), 2) + 2 &&
      grad_output_size_3 == floor_divide((x_size_3 - weight_size_3), 2) + 2;
  if (!valid) return false;
  const Size where_1_size_2 = floor_divide((x_size_2 - weight_size_2), 2) + 2;
  const Size where_1_size_3 = floor_divide((x_size_3 - weight_size_3), 2) + 2;
  const Size where_1_sizes[] = {x_size_0, weight_size_0, where_1_size_2, where_1_size_3};
  Tensor where_1 = allocate(float32, sizeof(float), where_1_sizes, 4);
  if (!where_1) return false;
  {
    const Size extents[] = {x_size_0, weight_size_0, where_1_size_2, where_1_size_3};
    const Operand<4> operands[] = {
        load<4>(saved_output_0.at<const float>(0),
            {saved_output_0.stride(0), saved_output_0.stride(1), saved_output_0.stride(2), saved_output_0.stride(3)}),
        load<4>(grad_output.at<const float>(0),
            {grad_output.stride(0), grad_output.stride(1), grad_output.stride(2), grad_output.stride(3)}),
        quick(store<4>(where_1.at<float>(0),
            {where_1.stride(0), where_1.stride(1), where_1.stride(2), where_1.stride(3)})),
    };
    for_each_row(extents, operands, 35000, convolved_backward_row);
  }
  StableIValue grad_x_stack[11] =
      {pass_row_major(where_1), pass_row_major(x), pass_row_major(weight), pass_optional(pass_list({pass(Size(0))})),
      pass_list({pass(Size(2)), pass(Size(2))}), pass_list({pass(Size(1)), pass(Size(1))}),
      pass_list({pass(Size(1)), pass(Size(1))}), pass(false), pass_list({pass(Size(0)), pass(Size(0))}), pass(Size(1)),
      pass_list({pass(true), pass(true), pass(false)})};
  if (!call("aten::convolution_backward", "", grad_x_stack)) return false;
  Tensor grad_x = take_result(grad_x_stack[0]);
  Tensor grad_weight = take_result(grad_x_stack[1]);
  Tensor no_convolution_backward_default = take_result(grad_x_stack[2]);
  made[0] = row_major(static_cast<Tensor&&>(grad_x));
  made[1] = row_major(static_cast<Tensor&&>(grad_weight));
  return true;
}

static void convolved_backward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0]), take(stack[1]), take(stack[2]), take(stack[3])};
  const Size sizes[] = {0};
  Tensor made[2];
  finish(stack, convolved_backward(given, sizes, made), made);
}

static const Registration registration(
    "convolved_backward_f6709b7d2e1f(Tensor x, Tensor weight, Tensor saved_output_0, Tensor grad_output) -> "
    "(Tensor, Tensor)",
    "convolved_backward_f6709b7d2e1f", convolved_backward_on_stack);

}  // namespace opwright::emitted
