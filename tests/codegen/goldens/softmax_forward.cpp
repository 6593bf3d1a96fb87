// softmax_forward, from softmax in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:softmax --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   row_amax_x = max(x)
//   power = exp(x - row_amax_x)
//   row_sum_power = Σ power
//   reciprocal_1 = 1/row_sum_power
//   output = power·reciprocal_1
static void softmax_forward_row(Size count, void* const* row) {
  const float* x_row = static_cast<const float*>(row[0]);
  float* output_row = static_cast<float*>(row[1]);
  float* power_kept_row = static_cast<float*>(row[2]);
  float* output_past = static_cast<float*>(row[3]);
  int32_t row_amax_x_largest = INT32_MIN;
#pragma omp simd reduction(max : row_amax_x_largest)
  for (Size j = 0; j < count; ++j) {
    const float x = x_row[j];
    const int32_t row_amax_x_next = order_of(x);
    row_amax_x_largest = row_amax_x_next > row_amax_x_largest ? row_amax_x_next : row_amax_x_largest;
  }
  const float row_amax_x = from_order<float>(row_amax_x_largest);
  double row_sum_power_total = 0;
  for (Size begin = 0; begin < count; begin += sum_run) {
    const Size end = least(begin + sum_run, count);
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const float x = x_row[j];
      const float power = exp_to_one(x - row_amax_x);
      power_kept_row[j] = power;
    }
    row_sum_power_total += sum_of(power_kept_row + begin, end - begin);
  }
  const float row_sum_power = static_cast<float>(row_sum_power_total);
  const float reciprocal_1 = 1 / row_sum_power;
  for (Size begin = 0, run = output_past ? sum_run : count; begin < count; begin += run) {
    const Size end = least(begin + run, count);
    float* output_run = output_past ? output_past : output_row + begin;
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const float power = power_kept_row[j];
      output_run[j - begin] = power * reciprocal_1;
    }
    go_past(output_past, output_row + begin, end - begin);
  }
}

static bool softmax_forward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const bool known = x.is(float32, 2);
  if (!known) return false;
  const Size x_size_0 = x.size(0);
  const Size x_size_1 = x.size(1);
  const bool valid = x_size_0 >= 2 && x_size_1 >= 2;
  if (!valid) return false;
  const Size output_sizes[] = {x_size_0, x_size_1};
  Tensor output = allocate(float32, sizeof(float), output_sizes, 2);
  if (!output) return false;
  {
    const Size extents[] = {x_size_0, x_size_1};
    const Operand<2> operands[] = {
        load<2>(x.at<const float>(0), {x.stride(0), x.stride(1)}),
        store<2>(output.at<float>(0), {output.stride(0), output.stride(1)}),
        scratch<2, float>(),
        past<2, float>(1),
    };
    for_each_whole_row(extents, operands, 1, 8192, softmax_forward_row);
  }
  made[0] = static_cast<Tensor&&>(output);
  return true;
}

static void softmax_forward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0])};
  const Size sizes[] = {0};
  Tensor made[1];
  finish(stack, softmax_forward(given, sizes, made), made);
}

static const Registration registration(
    "softmax_forward_a28a1dc9a9bc(Tensor x) -> Tensor",
    "softmax_forward_a28a1dc9a9bc", softmax_forward_on_stack);

}  // namespace opwright::emitted
