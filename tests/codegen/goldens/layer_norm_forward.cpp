// layer_norm_forward, from layer_norm in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:layer_norm --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   saved_sum_sum = Σ x
//   mean = saved_sum_sum/float32(size)
//   centred = x - mean
//   saved_squares_sum = Σ centred²
//   variance = saved_squares_sum/float32(size)
//   overflown = variance = ∞
//   add_variance = variance + 1e-05
//   root = 1/√add_variance
//   scale = overflown ? nan : root
//   saved_sum = saved_sum_sum
//   saved_squares = saved_squares_sum
//   output = centred·scale·weight + bias
static void layer_norm_forward_row(Size count, void* const* row) {
  const float* x_row = static_cast<const float*>(row[0]);
  const int64_t size = *static_cast<const int64_t*>(row[1]);
  const float* weight_row = static_cast<const float*>(row[2]);
  const float* bias_row = static_cast<const float*>(row[3]);
  float* saved_sum = static_cast<float*>(row[4]);
  float* saved_squares = static_cast<float*>(row[5]);
  float* output_row = static_cast<float*>(row[6]);
  float* output_past = static_cast<float*>(row[7]);
  double saved_sum_sum_total = 0;
  for (Size begin = 0; begin < count; begin += sum_run) {
    const Size end = least(begin + sum_run, count);
    saved_sum_sum_total += sum_of(x_row + begin, end - begin);
  }
  const float saved_sum_sum = static_cast<float>(saved_sum_sum_total);
  const float mean = saved_sum_sum / static_cast<float>(size);
  double saved_squares_sum_total = 0;
  for (Size begin = 0; begin < count; begin += sum_run) {
    const Size end = least(begin + sum_run, count);
    float saved_squares_sum_part[sum_run];
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const float x = x_row[j];
      const float centred = x - mean;
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
      const float x = x_row[j];
      const float centred = x - mean;
      const float weight = weight_row[j];
      const float bias = bias_row[j];
      output_run[j - begin] = centred * scale * weight + bias;
    }
    go_past(output_past, output_row + begin, end - begin);
  }
  *saved_sum = saved_sum_sum;
  *saved_squares = saved_squares_sum;
}

static bool layer_norm_forward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const Tensor& weight = given[1];
  const Tensor& bias = given[2];
  const bool known = x.is(float32, 2) && weight.is(float32, 1) && bias.is(float32, 1);
  if (!known) return false;
  const Size x_size_0 = x.size(0);
  const Size x_size_1 = x.size(1);
  const Size weight_size_0 = weight.size(0);
  const Size bias_size_0 = bias.size(0);
  const bool valid = x_size_0 >= 2 && x_size_1 >= 2 && weight_size_0 == x_size_1 && bias_size_0 == x_size_1;
  if (!valid) return false;
  const Size size = weight_size_0;
  const Size saved_sum_sizes[] = {x_size_0, 1};
  Tensor saved_sum = allocate(float32, sizeof(float), saved_sum_sizes, 2);
  if (!saved_sum) return false;
  const Size saved_squares_sizes[] = {x_size_0, 1};
  Tensor saved_squares = allocate(float32, sizeof(float), saved_squares_sizes, 2);
  if (!saved_squares) return false;
  const Size output_sizes[] = {x_size_0, x_size_1};
  Tensor output = allocate(float32, sizeof(float), output_sizes, 2);
  if (!output) return false;
  {
    const Size extents[] = {x_size_0, x_size_1};
    const Operand<2> operands[] = {
        load<2>(x.at<const float>(0), {x.stride(0), x.stride(1)}),
        load<2>(&size, {0, 0}, false),
        load<2>(weight.at<const float>(0), {0, weight.stride(0)}),
        load<2>(bias.at<const float>(0), {0, bias.stride(0)}),
        store<2>(saved_sum.at<float>(0), {saved_sum.stride(0), 0}, false),
        store<2>(saved_squares.at<float>(0), {saved_squares.stride(0), 0}, false),
        store<2>(output.at<float>(0), {output.stride(0), output.stride(1)}),
        past<2, float>(6),
    };
    for_each_whole_row(extents, operands, 1, 8192, layer_norm_forward_row);
  }
  made[0] = static_cast<Tensor&&>(output);
  made[1] = static_cast<Tensor&&>(saved_squares);
  made[2] = static_cast<Tensor&&>(saved_sum);
  return true;
}

static void layer_norm_forward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0]), take(stack[1]), take(stack[2])};
  const Size sizes[] = {0};
  Tensor made[3];
  finish(stack, layer_norm_forward(given, sizes, made), made);
}

static const Registration registration(
    "layer_norm_forward_62b66675cbf3(Tensor x, Tensor weight, Tensor bias) -> (Tensor, Tensor, Tensor)",
    "layer_norm_forward_62b66675cbf3", layer_norm_forward_on_stack);

}  // namespace opwright::emitted
