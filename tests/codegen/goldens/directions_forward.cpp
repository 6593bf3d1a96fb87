// directions_forward, from directions in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:directions --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   magnitude = |x|
//   x_1 = x[i0, 1]
//   magnitude_1 = |x_1|
//   x_2 = x[i0, 2]
//   magnitude_2 = |x_2|
//   saved_sum = 0 + magnitude² + magnitude_1² + magnitude_2²
//   norm = √saved_sum
//   output = x/norm
//   output = x_1/norm
//   output = x_2/norm
static void directions_forward_case_0_row(Size count, void* const* row) {
  const float* x_row = static_cast<const float*>(row[0]);
  float* saved_sum_out_row = static_cast<float*>(row[1]);
  float* output_1_row = static_cast<float*>(row[2]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    const float x = x_row[3 * j];
    const float magnitude = abs(x);
    const float x_1 = x_row[3 * j + 1];
    const float magnitude_1 = abs(x_1);
    const float x_2 = x_row[3 * j + 2];
    const float magnitude_2 = abs(x_2);
    const float saved_sum = 0.0f + magnitude * magnitude + magnitude_1 * magnitude_1 + magnitude_2 * magnitude_2;
    const float norm = sqrt(saved_sum);
    saved_sum_out_row[j] = saved_sum;
    output_1_row[3 * j] = x / norm;
    output_1_row[3 * j + 1] = x_1 / norm;
    output_1_row[3 * j + 2] = x_2 / norm;
  }
}

static bool directions_forward_case_0(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const Size x_size_0 = x.size(0);
  const Size saved_sum_sizes[] = {x_size_0, 1};
  Tensor saved_sum = allocate(float32, sizeof(float), saved_sum_sizes, 2);
  if (!saved_sum) return false;
  const Size output_sizes[] = {x_size_0, 3};
  Tensor output = allocate(float32, sizeof(float), output_sizes, 2);
  if (!output) return false;
  {
    const Size extents[] = {x_size_0};
    const Operand<1> operands[] = {
        in_parts(load<1>(x.at<const float>(0), {x.stride(0)}), 3, x.stride(1)),
        quick(store<1>(saved_sum.at<float>(0), {saved_sum.stride(0)})),
        in_parts(quick(store<1>(output.at<float>(0), {output.stride(0)})), 3, output.stride(1)),
    };
    for_each_row(extents, operands, 8235, directions_forward_case_0_row);
  }
  made[0] = static_cast<Tensor&&>(output);
  made[1] = static_cast<Tensor&&>(saved_sum);
  return true;
}

//   magnitude = |x|
//   saved_sum_sum = Σ magnitude²
//   norm = √saved_sum_sum
//   saved_sum = saved_sum_sum
//   output = x/norm
static void directions_forward_row(Size count, void* const* row) {
  const float* x_row = static_cast<const float*>(row[0]);
  float* saved_sum = static_cast<float*>(row[1]);
  float* output_row = static_cast<float*>(row[2]);
  float* output_past = static_cast<float*>(row[3]);
  double saved_sum_sum_total = 0;
  for (Size begin = 0; begin < count; begin += sum_run) {
    const Size end = least(begin + sum_run, count);
    float saved_sum_sum_part[sum_run];
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const float x = x_row[j];
      const float magnitude = abs(x);
      saved_sum_sum_part[j - begin] = magnitude * magnitude;
    }
    saved_sum_sum_total += sum_of(saved_sum_sum_part, end - begin);
  }
  const float saved_sum_sum = static_cast<float>(saved_sum_sum_total);
  const float norm = sqrt(saved_sum_sum);
  const Divisor norm_divisor = divisor_of(norm);
  for (Size begin = 0, run = output_past ? sum_run : count; begin < count; begin += run) {
    const Size end = least(begin + run, count);
    float* output_run = output_past ? output_past : output_row + begin;
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const float x = x_row[j];
      output_run[j - begin] = x / norm_divisor;
    }
    go_past(output_past, output_row + begin, end - begin);
  }
  *saved_sum = saved_sum_sum;
}

static bool directions_forward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const bool known = x.is(float32, 2);
  if (!known) return false;
  const Size x_size_0 = x.size(0);
  const Size x_size_1 = x.size(1);
  const bool valid = x_size_0 >= 2 && x_size_1 >= 2;
  if (!valid) return false;
  if (x_size_1 == 3) return directions_forward_case_0(given, sizes, made);
  const Size saved_sum_sizes[] = {x_size_0, 1};
  Tensor saved_sum = allocate(float32, sizeof(float), saved_sum_sizes, 2);
  if (!saved_sum) return false;
  const Size output_sizes[] = {x_size_0, x_size_1};
  Tensor output = allocate(float32, sizeof(float), output_sizes, 2);
  if (!output) return false;
  {
    const Size extents[] = {x_size_0, x_size_1};
    const Operand<2> operands[] = {
        load<2>(x.at<const float>(0), {x.stride(0), x.stride(1)}),
        store<2>(saved_sum.at<float>(0), {saved_sum.stride(0), 0}, false),
        store<2>(output.at<float>(0), {output.stride(0), output.stride(1)}),
        past<2, float>(2),
    };
    for_each_whole_row(extents, operands, 1, 8192, directions_forward_row);
  }
  made[0] = static_cast<Tensor&&>(output);
  made[1] = static_cast<Tensor&&>(saved_sum);
  return true;
}

static void directions_forward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0])};
  const Size sizes[] = {0};
  Tensor made[2];
  finish(stack, directions_forward(given, sizes, made), made);
}

static const Registration registration(
    "directions_forward_1289525299e3(Tensor x) -> (Tensor, Tensor)",
    "directions_forward_1289525299e3", directions_forward_on_stack);

}  // namespace opwright::emitted
