// projected_forward, from projected in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:projected --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   output = max(mm, 0)
static void projected_forward_row(Size count, void* const* row) {
  const float* mm_row = static_cast<const float*>(row[0]);
  float* output_row = static_cast<float*>(row[1]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    const float mm = mm_row[j];
    output_row[j] = max(mm, 0.0f);
  }
}

static bool projected_forward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const Tensor& weight = given[1];
  const bool known = x.is(float32, 2) && weight.is(float32, 2);
  if (!known) return false;
  const Size x_size_0 = x.size(0);
  const Size x_size_1 = x.size(1);
  const Size weight_size_0 = weight.size(0);
  const Size weight_size_1 = weight.size(1);
  const bool valid = x_size_0 >= 2 && weight_size_1 >= 2 && weight_size_0 >= 2 && x_size_1 == weight_size_1 + 1;
  if (!valid) return false;
  const Size slice_x_size_1 = x_size_1 - 1;
  const Size slice_x_sizes[] = {x_size_0, slice_x_size_1};
  const Size slice_x_strides[] = {x.stride(0), x.stride(1)};
  const Tensor slice_x = x.view(slice_x_sizes, slice_x_strides, x.stride(1));
  const Size permute_weight_sizes[] = {slice_x_size_1, weight_size_0};
  const Size permute_weight_strides[] = {weight.stride(1), weight.stride(0)};
  const Tensor permute_weight = weight.view(permute_weight_sizes, permute_weight_strides, 0);
  StableIValue mm_stack[2] = {pass(slice_x), pass(permute_weight)};
  if (!call("aten::mm", "", mm_stack)) return false;
  Tensor mm = take_result(mm_stack[0]);
  const Size output_sizes[] = {x_size_0, weight_size_0};
  Tensor output = in_memory_of(mm, float32, sizeof(float), output_sizes, 2);
  if (!output) return false;
  {
    const Size extents[] = {x_size_0, weight_size_0};
    const Operand<2> operands[] = {
        load<2>(mm.at<const float>(0), {mm.stride(0), mm.stride(1)}),
        quick(store<2>(output.at<float>(0), {output.stride(0), output.stride(1)})),
    };
    for_each_row(extents, operands, 70000, projected_forward_row);
  }
  made[0] = static_cast<Tensor&&>(output);
  return true;
}

static void projected_forward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0]), take(stack[1])};
  const Size sizes[] = {0};
  Tensor made[1];
  finish(stack, projected_forward(given, sizes, made), made);
}

static const Registration registration(
    "projected_forward_0c67c9d6ab47(Tensor x, Tensor weight) -> Tensor",
    "projected_forward_0c67c9d6ab47", projected_forward_on_stack);

}  // namespace opwright::emitted
