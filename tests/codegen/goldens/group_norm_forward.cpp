// group_norm_forward, from group_norm in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:group_norm --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   reshape_x = x[i0, i1*(weight_size_0 // 4) + i2, i3, i4]
//   saved_sum_sum = Σ reshape_x
//   mean = saved_sum_sum/float32(size)
//   centred = reshape_x - mean
//   saved_squares_sum = Σ centred²
//   variance = saved_squares_sum/float32(size)
//   overflown = variance = ∞
//   add_variance = variance + 1e-05
//   root = 1/√add_variance
//   scale = overflown ? nan : root
//   reshape_weight = weight[i1*(weight_size_0 // 4) + i2]
//   reshape_bias = bias[i1*(weight_size_0 // 4) + i2]
//   reshape_result = centred·scale·reshape_weight + reshape_bias
//   saved_sum = saved_sum_sum
//   saved_squares = saved_squares_sum
//   output[i0, i1*(weight_size_0 // 4) + i2, i3, i4] = reshape_result·σ(reshape_result)
static void group_norm_forward_row(Size count, void* const* row) {
  const float* reshape_x_row = static_cast<const float*>(row[0]);
  const int64_t size = *static_cast<const int64_t*>(row[1]);
  const float* reshape_weight_row = static_cast<const float*>(row[2]);
  const float* reshape_bias_row = static_cast<const float*>(row[3]);
  float* saved_sum = static_cast<float*>(row[4]);
  float* saved_squares = static_cast<float*>(row[5]);
  float* output_row = static_cast<float*>(row[6]);
  float* output_past = static_cast<float*>(row[7]);
  double saved_sum_sum_total = 0;
  for (Size begin = 0; begin < count; begin += sum_run) {
    const Size end = least(begin + sum_run, count);
    saved_sum_sum_total += sum_of(reshape_x_row + begin, end - begin);
  }
  const float saved_sum_sum = static_cast<float>(saved_sum_sum_total);
  const float mean = saved_sum_sum / static_cast<float>(size);
  double saved_squares_sum_total = 0;
  for (Size begin = 0; begin < count; begin += sum_run) {
    const Size end = least(begin + sum_run, count);
    float saved_squares_sum_part[sum_run];
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const float reshape_x = reshape_x_row[j];
      const float centred = reshape_x - mean;
      saved_squares_sum_part[j - begin] = centred * centred;
    }
    saved_squares_sum_total += sum_of(saved_squares_sum_part, end - begin);
  }
  const float saved_squares_sum = static_cast<float>(saved_squares_sum_total);
  const float variance = saved_squares_sum / static_cast<float>(size);
  const bool overflown = variance == __builtin_inff();
  const float add_variance = variance + 1e-05f;
  const float root = rsqrt(add_variance);
  const float scale = overflown ? __builtin_nanf("") : root;
  for (Size begin = 0, run = output_past ? sum_run : count; begin < count; begin += run) {
    const Size end = least(begin + run, count);
    float* output_run = output_past ? output_past : output_row + begin;
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const float reshape_x = reshape_x_row[j];
      const float centred = reshape_x - mean;
      const float reshape_weight = reshape_weight_row[j];
      const float reshape_bias = reshape_bias_row[j];
      const float reshape_result = centred * scale * reshape_weight + reshape_bias;
      output_run[j - begin] = reshape_result * sigmoid(reshape_result);
    }
    go_past(output_past, output_row + begin, end - begin);
  }
  *saved_sum = saved_sum_sum;
  *saved_squares = saved_squares_sum;
}

static bool group_norm_forward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const Tensor& weight = given[1];
  const Tensor& bias = given[2];
  const bool known = x.is(float32, 4) && weight.is(float32, 1) && bias.is(float32, 1);
  if (!known) return false;
  const Size x_size_0 = x.size(0);
  const Size x_size_1 = x.size(1);
  const Size x_size_2 = x.size(2);
  const Size x_size_3 = x.size(3);
  const Size weight_size_0 = weight.size(0);
  const Size bias_size_0 = bias.size(0);
  const bool valid = x_size_0 >= 2 && x_size_1 >= 8 && x_size_2 >= 2 && x_size_3 >= 2 && weight_size_0 == x_size_1 &&
      bias_size_0 == x_size_1 && floor_remainder(x_size_1, 4) == 0;
  if (!valid) return false;
  const Size size = x_size_2*x_size_3*floor_divide(weight_size_0, 4);
  const Size saved_sum_sizes[] = {x_size_0, 4, 1, 1};
  Tensor saved_sum = allocate(float32, sizeof(float), saved_sum_sizes, 4);
  if (!saved_sum) return false;
  const Size saved_squares_sizes[] = {x_size_0, 4, 1, 1};
  Tensor saved_squares = allocate(float32, sizeof(float), saved_squares_sizes, 4);
  if (!saved_squares) return false;
  const Size output_sizes[] = {x_size_0, x_size_1, x_size_2, x_size_3};
  Tensor output = allocate(float32, sizeof(float), output_sizes, 4);
  if (!output) return false;
  {
    const Size extents[] = {x_size_0, 4, floor_divide(weight_size_0, 4), x_size_2, x_size_3};
    const Operand<5> operands[] = {
        load<5>(x.at<const float>(0),
            {x.stride(0), floor_divide(weight_size_0, 4) * x.stride(1), x.stride(1), x.stride(2), x.stride(3)}),
        load<5>(&size, {0, 0, 0, 0, 0}, false),
        load<5>(weight.at<const float>(0),
            {0, floor_divide(weight_size_0, 4) * weight.stride(0), weight.stride(0), 0, 0}),
        load<5>(bias.at<const float>(0), {0, floor_divide(weight_size_0, 4) * bias.stride(0), bias.stride(0), 0, 0}),
        store<5>(saved_sum.at<float>(0), {saved_sum.stride(0), saved_sum.stride(1), 0, 0, 0}, false),
        store<5>(saved_squares.at<float>(0), {saved_squares.stride(0), saved_squares.stride(1), 0, 0, 0}, false),
        store<5>(output.at<float>(0),
            {output.stride(0), floor_divide(weight_size_0, 4) * output.stride(1), output.stride(1), output.stride(2),
            output.stride(3)}),
        past<5, float>(6),
    };
    for_each_whole_row(extents, operands, 3, 8192, group_norm_forward_row);
  }
  made[0] = static_cast<Tensor&&>(output);
  made[1] = static_cast<Tensor&&>(saved_squares);
  made[2] = static_cast<Tensor&&>(saved_sum);
  return true;
}

static void group_norm_forward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0]), take(stack[1]), take(stack[2])};
  const Size sizes[] = {0};
  Tensor made[3];
  finish(stack, group_norm_forward(given, sizes, made), made);
}

static const Registration registration(
    "group_norm_forward_fdc8d289a203(Tensor x, Tensor weight, Tensor bias) -> (Tensor, Tensor, Tensor)",
    "group_norm_forward_fdc8d289a203", group_norm_forward_on_stack);

}  // namespace opwright::emitted
