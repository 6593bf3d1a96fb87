#include "opwright/cuda/launches.h"

namespace opwright::emitted {

struct layer_norm_backward_sum_grad_x_hat_arguments {
  Walk<1> outer_axes;
  Walk<1> inner_axes;
  Elements<const float, 2> grad_output;
  Elements<const float, 2> weight;
  Elements<const float, 2> x;
  Elements<const float, 2> saved_sum;
  int64_t size;
  Elements<const float, 2> saved_squares;
  Elements<float, 2> grad_x_out;
};

static cuda::Kernel layer_norm_backward_sum_grad_x_hat_kernels[] = {
    {kernel_images, "layer_norm_backward_sum_grad_x_hat"},
    {kernel_images, "layer_norm_backward_sum_grad_x_hat_wide"},
    {kernel_images, "layer_norm_backward_sum_grad_x_hat_held"},
    {kernel_images, "layer_norm_backward_sum_grad_x_hat_packed"},
    {kernel_images, "layer_norm_backward_sum_grad_x_hat_held_packed"},
};

struct layer_norm_backward_sum_grad_x_hat_columns_arguments {
  Walk<1> outer_axes;
  Walk<1> inner_axes;
  Elements<const float, 2> grad_output;
  Elements<const float, 2> x;
  Elements<const float, 2> saved_sum;
  int64_t size;
  Elements<const float, 2> saved_squares;
  Elements<float, 2> grad_weight;
  Elements<float, 2> grad_bias;
  void* partials;
  int64_t pieces;
};

static cuda::Kernel layer_norm_backward_sum_grad_x_hat_columns_kernels[] = {
    {kernel_images, "layer_norm_backward_sum_grad_x_hat_columns"},
    {kernel_images, "layer_norm_backward_sum_grad_x_hat_columns_wide"},
    {kernel_images, "layer_norm_backward_sum_grad_x_hat_columns_packed"},
    {kernel_images, "layer_norm_backward_sum_grad_x_hat_columns_finish"},
    {kernel_images, "layer_norm_backward_sum_grad_x_hat_columns_finish_wide"},
    {kernel_images, "layer_norm_backward_sum_grad_x_hat_columns_finish_packed"},
};

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
  {
    layer_norm_backward_sum_grad_x_hat_arguments arguments = {
        {{x_size_0}},
        {{x_size_1}},
        {grad_output.at<const float>(0), {grad_output.stride(0), grad_output.stride(1)}},
        {weight.at<const float>(0), {0, weight.stride(0)}},
        {x.at<const float>(0), {x.stride(0), x.stride(1)}},
        {saved_sum.at<const float>(0), {saved_sum.stride(0), 0}},
        size,
        {saved_squares.at<const float>(0), {saved_squares.stride(0), 0}},
        {grad_x.at<float>(0), {grad_x.stride(0), grad_x.stride(1)}},
    };
    const cuda::LaunchOperand places[] = {
        cuda::place(arguments.grad_output),
        cuda::place(arguments.weight),
        cuda::place(arguments.x),
        cuda::place_repeated(arguments.saved_sum),
        cuda::place_repeated(arguments.saved_squares),
        cuda::place(arguments.grad_x_out),
    };
    if (!cuda::launch_rows<4, 8, 4>(layer_norm_backward_sum_grad_x_hat_kernels, arguments, places)) return false;
  }
  const Size grad_weight_sizes[] = {x_size_1};
  Tensor grad_weight = allocate(float32, sizeof(float), grad_weight_sizes, 1);
  if (!grad_weight) return false;
  const Size grad_bias_sizes[] = {x_size_1};
  Tensor grad_bias = allocate(float32, sizeof(float), grad_bias_sizes, 1);
  if (!grad_bias) return false;
  {
    layer_norm_backward_sum_grad_x_hat_columns_arguments arguments = {
        {{x_size_0}},
        {{x_size_1}},
        {grad_output.at<const float>(0), {grad_output.stride(0), grad_output.stride(1)}},
        {x.at<const float>(0), {x.stride(0), x.stride(1)}},
        {saved_sum.at<const float>(0), {saved_sum.stride(0), 0}},
        size,
        {saved_squares.at<const float>(0), {saved_squares.stride(0), 0}},
        {grad_weight.at<float>(0), {0, grad_weight.stride(0)}},
        {grad_bias.at<float>(0), {0, grad_bias.stride(0)}},
    };
    const cuda::LaunchOperand places[] = {
        cuda::place(arguments.grad_output),
        cuda::place(arguments.x),
        cuda::place_repeated(arguments.saved_sum),
        cuda::place_repeated(arguments.saved_squares),
        cuda::place(arguments.grad_weight),
        cuda::place(arguments.grad_bias),
    };
    if (!cuda::launch_columns<4, 4, 8, 16>(layer_norm_backward_sum_grad_x_hat_columns_kernels, arguments,
        places)) return false;
  }
  made[0] = static_cast<Tensor&&>(grad_x);
  made[1] = static_cast<Tensor&&>(grad_weight);
  made[2] = static_cast<Tensor&&>(grad_bias);
  return true;
}

static void layer_norm_backward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0]), take(stack[1]), take(stack[2]), take(stack[3]), take(stack[4])};
  const cuda::Call call_on_device(given);
  const Size sizes[] = {0};
  Tensor made[3];
  finish(stack, layer_norm_backward(given, sizes, made), made);
}

static const Registration registration(
    "layer_norm_backward_d6be7c4a750d(Tensor x, Tensor weight, Tensor saved_squares, Tensor saved_sum, Tensor "
    "grad_output) -> (Tensor, Tensor, Tensor)",
    "layer_norm_backward_d6be7c4a750d", layer_norm_backward_on_stack);

}  // namespace opwright::emitted
