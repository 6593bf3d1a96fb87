// joined_forward, from joined in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:joined --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   output = tanh(x)
static void joined_forward_output_row(Size count, void* const* row) {
  const float* x_row = static_cast<const float*>(row[0]);
  float* output_row = static_cast<float*>(row[1]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    const float x = x_row[j];
    output_row[j] = tanh(x);
  }
}

//   output[i0, i1 + x_size_1] = y·2
static void joined_forward_output_1_row(Size count, void* const* row) {
  const float* y_row = static_cast<const float*>(row[0]);
  float* output_row = static_cast<float*>(row[1]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    const float y = y_row[j];
    output_row[j] = y * 2.0f;
  }
}

static bool joined_forward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const Tensor& y = given[1];
  const bool known = x.is(float32, 2) && y.is(float32, 2);
  if (!known) return false;
  const Size x_size_0 = x.size(0);
  const Size x_size_1 = x.size(1);
  const Size y_size_0 = y.size(0);
  const Size y_size_1 = y.size(1);
  const bool valid = x_size_0 >= 2 && x_size_1 >= 2 && y_size_1 >= 2 && y_size_0 == x_size_0;
  if (!valid) return false;
  const Size output_size_1 = x_size_1 + y_size_1;
  const Size output_sizes[] = {x_size_0, output_size_1};
  Tensor output = allocate(float32, sizeof(float), output_sizes, 2);
  if (!output) return false;
  {
    const Size extents[] = {x_size_0, x_size_1};
    const Operand<2> operands[] = {
        load<2>(x.at<const float>(0), {x.stride(0), x.stride(1)}),
        quick(store<2>(output.at<float>(0), {output.stride(0), output.stride(1)})),
    };
    for_each_row(extents, operands, 28000, joined_forward_output_row);
  }
  {
    const Size extents[] = {x_size_0, y_size_1};
    const Operand<2> operands[] = {
        load<2>(y.at<const float>(0), {y.stride(0), y.stride(1)}),
        quick(store<2>(output.at<float>(x_size_1 * output.stride(1)), {output.stride(0), output.stride(1)})),
    };
    for_each_row(extents, operands, 70000, joined_forward_output_1_row);
  }
  made[0] = static_cast<Tensor&&>(output);
  return true;
}

static void joined_forward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0]), take(stack[1])};
  const Size sizes[] = {0};
  Tensor made[1];
  finish(stack, joined_forward(given, sizes, made), made);
}

static const Registration registration(
    "joined_forward_7a3320c7640d(Tensor x, Tensor y) -> Tensor",
    "joined_forward_7a3320c7640d", joined_forward_on_stack);

}  // namespace opwright::emitted
