// layer_norm_backward, from layer_norm in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:layer_norm --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   grad_x_hat = grad_output·weight
//   row_sum_grad_x_hat = Σ grad_x_hat
//   mean = saved_sum/float32(size)
//   variance = saved_squares/float32(size)
//   overflown = variance = ∞
//   add_variance = variance + 1e-05
//   root = 1/√add_variance
//   scale = overflown ? nan : root
//   x_hat = (x - mean)·scale
//   row_sum_grad_x_hat_x_hat = Σ grad_x_hat·x_hat
//   div_scale = scale/float32(size)
//   grad_x = div_scale·(grad_x_hat·float32(size) - row_sum_grad_x_hat - x_hat·row_sum_grad_x_hat_x_hat)
//   grad_weight = Σ grad_output·x_hat
//   grad_bias = Σ grad_output
static void layer_norm_backward_row(Size count, void* const* row) {
  const float* grad_output_row = static_cast<const float*>(row[0]);
  const float* weight_row = static_cast<const float*>(row[1]);
  const float* x_row = static_cast<const float*>(row[2]);
  const float saved_sum = *static_cast<const float*>(row[3]);
  const int64_t size = *static_cast<const int64_t*>(row[4]);
  const float saved_squares = *static_cast<const float*>(row[5]);
  float* grad_x_out_row = static_cast<float*>(row[6]);
  float* grad_x_out_past = static_cast<float*>(row[7]);
  float* grad_weight_row = static_cast<float*>(row[8]);
  float* grad_bias_row = static_cast<float*>(row[9]);
  const float mean = saved_sum / static_cast<float>(size);
  const float variance = saved_squares / static_cast<float>(size);
  const bool overflown = variance == __builtin_inff();
  const float add_variance = variance + 1e-05f;
  const float root = rsqrt(add_variance);
  const float scale = overflown ? __builtin_nanf("") : root;
  const float div_scale = scale / static_cast<float>(size);
  double row_sum_grad_x_hat_total = 0;
  double row_sum_grad_x_hat_x_hat_total = 0;
  for (Size begin = 0; begin < count; begin += sum_run) {
    const Size end = least(begin + sum_run, count);
    float row_sum_grad_x_hat_part[sum_run];
    float row_sum_grad_x_hat_x_hat_part[sum_run];
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const float grad_output = grad_output_row[j];
      const float weight = weight_row[j];
      const float grad_x_hat = grad_output * weight;
      const float x = x_row[j];
      const float x_hat = (x - mean) * scale;
      row_sum_grad_x_hat_part[j - begin] = grad_x_hat;
      row_sum_grad_x_hat_x_hat_part[j - begin] = grad_x_hat * x_hat;
      grad_weight_row[j] += grad_output * x_hat;
      grad_bias_row[j] += grad_output;
    }
    row_sum_grad_x_hat_total += sum_of(row_sum_grad_x_hat_part, end - begin);
    row_sum_grad_x_hat_x_hat_total += sum_of(row_sum_grad_x_hat_x_hat_part, end - begin);
  }
  const float row_sum_grad_x_hat = static_cast<float>(row_sum_grad_x_hat_total);
  const float row_sum_grad_x_hat_x_hat = static_cast<float>(row_sum_grad_x_hat_x_hat_total);
  for (Size begin = 0, run = grad_x_out_past ? sum_run : count; begin < count; begin += run) {
    const Size end = least(begin + run, count);
    float* grad_x_out_run = grad_x_out_past ? grad_x_out_past : grad_x_out_row + begin;
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const float grad_output = grad_output_row[j];
      const float weight = weight_row[j];
      const float grad_x_hat = grad_output * weight;
      const float x = x_row[j];
      const float x_hat = (x - mean) * scale;
      const float grad_x = div_scale *
          (grad_x_hat * static_cast<float>(size) - row_sum_grad_x_hat - x_hat * row_sum_grad_x_hat_x_hat);
      grad_x_out_run[j - begin] = grad_x;
    }
    go_past(grad_x_out_past, grad_x_out_row + begin, end - begin);
  }
}

static void layer_norm_backward_row_start(Size count, void* const* row) {
  double* grad_weight_total = static_cast<double*>(row[0]);
  double* grad_bias_total = static_cast<double*>(row[1]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    grad_weight_total[j] = 0;
    grad_bias_total[j] = 0;
  }
}

static void layer_norm_backward_row_combine(Size count, void* const* row) {
  double* grad_weight_total = static_cast<double*>(row[0]);
  double* grad_bias_total = static_cast<double*>(row[1]);
  const double* grad_weight_other = static_cast<const double*>(row[2]);
  const double* grad_bias_other = static_cast<const double*>(row[3]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    grad_weight_total[j] += grad_weight_other[j];
    grad_bias_total[j] += grad_bias_other[j];
  }
}

static void layer_norm_backward_row_end(Size count, void* const* row) {
  double* grad_weight_total = static_cast<double*>(row[0]);
  double* grad_bias_total = static_cast<double*>(row[1]);
  float* grad_weight = static_cast<float*>(row[2]);
  float* grad_bias = static_cast<float*>(row[3]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    grad_weight[j] = static_cast<float>(grad_weight_total[j]);
    grad_bias[j] = static_cast<float>(grad_bias_total[j]);
  }
}

static void layer_norm_backward_row_settle(Size count, void* const* row) {
  double* grad_weight_total = static_cast<double*>(row[0]);
  double* grad_bias_total = static_cast<double*>(row[1]);
  float* grad_weight_some = static_cast<float*>(row[2]);
  float* grad_bias_some = static_cast<float*>(row[3]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    grad_weight_total[j] += grad_weight_some[j], grad_weight_some[j] = 0;
    grad_bias_total[j] += grad_bias_some[j], grad_bias_some[j] = 0;
  }
}

static bool layer_norm_backward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const Tensor& weight = given[1];
  const Tensor& saved_squares = given[2];
  const Tensor& saved_sum = given[3];
  const Tensor& grad_output = given[4];
  const bool known = x.is(float32, 2) && weight.is(float32, 1) && saved_squares.is(float32, 2) &&
      saved_sum.is(float32, 2) && grad_output.is(float32, 2);
  if (!known) return false;
  const Size x_size_0 = x.size(0);
  const Size x_size_1 = x.size(1);
  const Size weight_size_0 = weight.size(0);
  const Size saved_squares_size_0 = saved_squares.size(0);
  const Size saved_squares_size_1 = saved_squares.size(1);
  const Size saved_sum_size_0 = saved_sum.size(0);
  const Size saved_sum_size_1 = saved_sum.size(1);
  const Size grad_output_size_0 = grad_output.size(0);
  const Size grad_output_size_1 = grad_output.size(1);
  const bool valid = weight_size_0 == x_size_1 && saved_squares_size_0 == x_size_0 && saved_squares_size_1 == 1 &&
      saved_sum_size_0 == x_size_0 && saved_sum_size_1 == 1 && grad_output_size_0 == x_size_0 &&
      grad_output_size_1 == x_size_1;
  if (!valid) return false;
  const Size size = weight_size_0;
  const Size grad_x_sizes[] = {x_size_0, x_size_1};
  Tensor grad_x = allocate(float32, sizeof(float), grad_x_sizes, 2);
  if (!grad_x) return false;
  const Size grad_weight_sizes[] = {x_size_1};
  Tensor grad_weight = allocate(float32, sizeof(float), grad_weight_sizes, 1);
  if (!grad_weight) return false;
  const Size grad_bias_sizes[] = {x_size_1};
  Tensor grad_bias = allocate(float32, sizeof(float), grad_bias_sizes, 1);
  if (!grad_bias) return false;
  {
    const Size extents[] = {x_size_0, x_size_1};
    const Operand<2> operands[] = {
        load<2>(grad_output.at<const float>(0), {grad_output.stride(0), grad_output.stride(1)}),
        load<2>(weight.at<const float>(0), {0, weight.stride(0)}),
        load<2>(x.at<const float>(0), {x.stride(0), x.stride(1)}),
        load<2>(saved_sum.at<const float>(0), {saved_sum.stride(0), 0}, false),
        load<2>(&size, {0, 0}, false),
        load<2>(saved_squares.at<const float>(0), {saved_squares.stride(0), 0}, false),
        store<2>(grad_x.at<float>(0), {grad_x.stride(0), grad_x.stride(1)}),
        past<2, float>(6),
    };
    const Size kept[] = {sizeof(double), sizeof(double)};
    const Operand<2> results[] = {
        store<2>(grad_weight.at<float>(0), {0, grad_weight.stride(0)}),
        store<2>(grad_bias.at<float>(0), {0, grad_bias.stride(0)}),
    };
    reduce_columns(extents, operands, kept, results, 0, 1, 8192, layer_norm_backward_row,
        {layer_norm_backward_row_start, layer_norm_backward_row_combine, layer_norm_backward_row_end, nullptr,
        layer_norm_backward_row_settle});
  }
  made[0] = static_cast<Tensor&&>(grad_x);
  made[1] = static_cast<Tensor&&>(grad_weight);
  made[2] = static_cast<Tensor&&>(grad_bias);
  return true;
}

static void layer_norm_backward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0]), take(stack[1]), take(stack[2]), take(stack[3]), take(stack[4])};
  const Size sizes[] = {0};
  Tensor made[3];
  finish(stack, layer_norm_backward(given, sizes, made), made);
}

static const Registration registration(
    "layer_norm_backward_811924352dec(Tensor x, Tensor weight, Tensor saved_squares, Tensor saved_sum, Tensor "
    "grad_output) -> (Tensor, Tensor, Tensor)",
    "layer_norm_backward_811924352dec", layer_norm_backward_on_stack);

}  // namespace opwright::emitted
