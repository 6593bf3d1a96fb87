// convolved_forward, from convolved in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:convolved --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   output = max(convolution, 0)
static void convolved_forward_row(Size count, void* const* row) {
  const float* convolution_row = static_cast<const float*>(row[0]);
  float* output_row = static_cast<float*>(row[1]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    const float convolution = convolution_row[j];
    output_row[j] = max(convolution, 0.0f);
  }
}

static bool convolved_forward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const Tensor& weight = given[1];
  const bool known = x.is(float32, 4) && weight.is(float32, 4);
  if (!known) return false;
  const Size x_size_0 = x.size(0);
  const Size x_size_1 = x.size(1);
  const Size x_size_2 = x.size(2);
  const Size x_size_3 = x.size(3);
  const Size weight_size_0 = weight.size(0);
  const Size weight_size_1 = weight.size(1);
  const Size weight_size_2 = weight.size(2);
  const Size weight_size_3 = weight.size(3);
  const bool valid = x_size_0 >= 2 && x_size_1 >= 2 && weight_size_0 >= 2 && weight_size_2 >= 2 && weight_size_3 >= 2 &&
      weight_size_1 == x_size_1 && weight_size_3 <= x_size_3 && weight_size_2 <= x_size_2;
  if (!valid) return false;
  const Size convolution_size_2 = floor_divide((x_size_2 - weight_size_2), 2) + 2;
  const Size convolution_size_3 = floor_divide((x_size_3 - weight_size_3), 2) + 2;
  StableIValue convolution_stack[9] =
      {pass(x), pass(weight), pass_nothing(), pass_list({pass(Size(2)), pass(Size(2))}),
      pass_list({pass(Size(1)), pass(Size(1))}), pass_list({pass(Size(1)), pass(Size(1))}), pass(false),
      pass_list({pass(Size(0)), pass(Size(0))}), pass(Size(1))};
  if (!call("aten::convolution", "", convolution_stack)) return false;
  Tensor convolution = take_result(convolution_stack[0]);
  const Size output_sizes[] = {x_size_0, weight_size_0, convolution_size_2, convolution_size_3};
  Tensor output = in_memory_of(convolution, float32, sizeof(float), output_sizes, 4);
  if (!output) return false;
  {
    const Size extents[] = {x_size_0, weight_size_0, convolution_size_2, convolution_size_3};
    const Operand<4> operands[] = {
        load<4>(convolution.at<const float>(0),
            {convolution.stride(0), convolution.stride(1), convolution.stride(2), convolution.stride(3)}),
        quick(store<4>(output.at<float>(0), {output.stride(0), output.stride(1), output.stride(2), output.stride(3)})),
    };
    for_each_row(extents, operands, 70000, convolved_forward_row);
  }
  made[0] = static_cast<Tensor&&>(output);
  return true;
}

static void convolved_forward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0]), take(stack[1])};
  const Size sizes[] = {0};
  Tensor made[1];
  finish(stack, convolved_forward(given, sizes, made), made);
}

static const Registration registration(
    "convolved_forward_d3c557962e4d(Tensor x, Tensor weight) -> Tensor",
    "convolved_forward_d3c557962e4d", convolved_forward_on_stack);

}  // namespace opwright::emitted
