// directions_backward, from directions in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:directions --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   norm = √saved_sum
//   div = x/norm
//   grad_output_1 = grad_output[i0, 1]
//   x_1 = x[i0, 1]
//   div_3 = x_1/norm
//   grad_output_2 = grad_output[i0, 2]
//   x_2 = x[i0, 2]
//   div_4 = x_2/norm
//   sum = 0 + -grad_output·(div/norm) + -grad_output_1·(div_3/norm) + -grad_output_2·(div_4/norm)
//   eq_norm = norm = 0
//   grad_x = grad_output/norm + sum·(eq_norm ? 0 : div)
//   grad_x = grad_output_1/norm + sum·(eq_norm ? 0 : div_3)
//   grad_x = grad_output_2/norm + sum·(eq_norm ? 0 : div_4)
static void directions_backward_case_0_row(Size count, void* const* row) {
  const float* grad_output_row = static_cast<const float*>(row[0]);
  const float* saved_sum_row = static_cast<const float*>(row[1]);
  const float* x_row = static_cast<const float*>(row[2]);
  float* grad_x_0_row = static_cast<float*>(row[3]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    const float grad_output = grad_output_row[3 * j];
    const float saved_sum = saved_sum_row[j];
    const float norm = sqrt(saved_sum);
    const float x = x_row[3 * j];
    const float div = x / norm;
    const float grad_output_1 = grad_output_row[3 * j + 1];
    const float x_1 = x_row[3 * j + 1];
    const float div_3 = x_1 / norm;
    const float grad_output_2 = grad_output_row[3 * j + 2];
    const float x_2 = x_row[3 * j + 2];
    const float div_4 = x_2 / norm;
    const float sum = 0.0f + -grad_output * (div / norm) + -grad_output_1 * (div_3 / norm) +
        -grad_output_2 * (div_4 / norm);
    const bool eq_norm = norm == 0.0f;
    grad_x_0_row[3 * j] = grad_output / norm + sum * choose<float>(eq_norm, 0.0f, div);
    grad_x_0_row[3 * j + 1] = grad_output_1 / norm + sum * choose<float>(eq_norm, 0.0f, div_3);
    grad_x_0_row[3 * j + 2] = grad_output_2 / norm + sum * choose<float>(eq_norm, 0.0f, div_4);
  }
}

static bool directions_backward_case_0(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const Tensor& saved_sum = given[1];
  const Tensor& grad_output = given[2];
  const Size x_size_0 = x.size(0);
  const Size grad_x_sizes[] = {x_size_0, 3};
  Tensor grad_x = allocate(float32, sizeof(float), grad_x_sizes, 2);
  if (!grad_x) return false;
  {
    const Size extents[] = {x_size_0};
    const Operand<1> operands[] = {
        in_parts(load<1>(grad_output.at<const float>(0), {grad_output.stride(0)}), 3, grad_output.stride(1)),
        load<1>(saved_sum.at<const float>(0), {saved_sum.stride(0)}),
        in_parts(load<1>(x.at<const float>(0), {x.stride(0)}), 3, x.stride(1)),
        in_parts(store<1>(grad_x.at<float>(0), {grad_x.stride(0)}), 3, grad_x.stride(1)),
    };
    for_each_row(extents, operands, 3835, directions_backward_case_0_row);
  }
  made[0] = static_cast<Tensor&&>(grad_x);
  return true;
}

//   norm = √saved_sum
//   div = x/norm
//   row_sum = Σ -grad_output·(div/norm)
//   eq_norm = norm = 0
//   grad_x = grad_output/norm + row_sum·(eq_norm ? 0 : div)
static void directions_backward_row(Size count, void* const* row) {
  const float* grad_output_row = static_cast<const float*>(row[0]);
  const float* x_row = static_cast<const float*>(row[1]);
  const float saved_sum = *static_cast<const float*>(row[2]);
  float* grad_x_row = static_cast<float*>(row[3]);
  float* div_kept_row = static_cast<float*>(row[4]);
  float* grad_x_past = static_cast<float*>(row[5]);
  const float norm = sqrt(saved_sum);
  const Divisor norm_divisor = divisor_of(norm);
  const bool eq_norm = norm == 0.0f;
  const int32_t eq_norm_mask = mask_of(eq_norm);
  double row_sum_total = 0;
  for (Size begin = 0; begin < count; begin += sum_run) {
    const Size end = least(begin + sum_run, count);
    float row_sum_part[sum_run];
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const float grad_output = grad_output_row[j];
      const float x = x_row[j];
      const float div = x / norm_divisor;
      div_kept_row[j] = div;
      row_sum_part[j - begin] = -grad_output * (div / norm_divisor);
    }
    row_sum_total += sum_of(row_sum_part, end - begin);
  }
  const float row_sum = static_cast<float>(row_sum_total);
  for (Size begin = 0, run = grad_x_past ? sum_run : count; begin < count; begin += run) {
    const Size end = least(begin + run, count);
    float* grad_x_run = grad_x_past ? grad_x_past : grad_x_row + begin;
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const float div = div_kept_row[j];
      const float grad_output = grad_output_row[j];
      grad_x_run[j - begin] = grad_output / norm_divisor + row_sum * blend(eq_norm_mask, 0.0f, div);
    }
    go_past(grad_x_past, grad_x_row + begin, end - begin);
  }
}

static bool directions_backward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const Tensor& saved_sum = given[1];
  const Tensor& grad_output = given[2];
  const bool known = x.is(float32, 2) && saved_sum.is(float32, 2) && grad_output.is(float32, 2);
  if (!known) return false;
  const Size x_size_0 = x.size(0);
  const Size x_size_1 = x.size(1);
  const Size saved_sum_size_0 = saved_sum.size(0);
  const Size saved_sum_size_1 = saved_sum.size(1);
  const Size grad_output_size_0 = grad_output.size(0);
  const Size grad_output_size_1 = grad_output.size(1);
  const bool valid = saved_sum_size_0 == x_size_0 && saved_sum_size_1 == 1 && grad_output_size_0 == x_size_0 &&
      grad_output_size_1 == x_size_1;
  if (!valid) return false;
  if (x_size_1 == 3) return directions_backward_case_0(given, sizes, made);
  const Size grad_x_sizes[] = {x_size_0, x_size_1};
  Tensor grad_x = allocate(float32, sizeof(float), grad_x_sizes, 2);
  if (!grad_x) return false;
  {
    const Size extents[] = {x_size_0, x_size_1};
    const Operand<2> operands[] = {
        load<2>(grad_output.at<const float>(0), {grad_output.stride(0), grad_output.stride(1)}),
        load<2>(x.at<const float>(0), {x.stride(0), x.stride(1)}),
        load<2>(saved_sum.at<const float>(0), {saved_sum.stride(0), 0}, false),
        store<2>(grad_x.at<float>(0), {grad_x.stride(0), grad_x.stride(1)}),
        scratch<2, float>(),
        past<2, float>(3),
    };
    for_each_whole_row(extents, operands, 1, 8192, directions_backward_row);
  }
  made[0] = static_cast<Tensor&&>(grad_x);
  return true;
}

static void directions_backward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0]), take(stack[1]), take(stack[2])};
  const Size sizes[] = {0};
  Tensor made[1];
  finish(stack, directions_backward(given, sizes, made), made);
}

static const Registration registration(
    "directions_backward_a04a03ff1b29(Tensor x, Tensor saved_sum, Tensor grad_output) -> Tensor",
    "directions_backward_a04a03ff1b29", directions_backward_on_stack);

}  // namespace opwright::emitted
