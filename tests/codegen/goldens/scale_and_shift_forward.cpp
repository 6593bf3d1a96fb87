// scale_and_shift_forward, from scale_and_shift in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:scale_and_shift --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   output = x·scale + shift
static void scale_and_shift_forward_row(Size count, void* const* row) {
  const double* x_row = static_cast<const double*>(row[0]);
  const double* scale_row = static_cast<const double*>(row[1]);
  const double shift = *static_cast<const double*>(row[2]);
  double* output_row = static_cast<double*>(row[3]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    const double x = x_row[j];
    const double scale = scale_row[j];
    output_row[j] = x * scale + shift;
  }
}

static bool scale_and_shift_forward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const Tensor& scale = given[1];
  const Tensor& shift = given[2];
  const bool known = x.is(float64, 2) && scale.is(float64, 1) && shift.is(float64, 2);
  if (!known) return false;
  const Size x_size_0 = x.size(0);
  const Size x_size_1 = x.size(1);
  const Size scale_size_0 = scale.size(0);
  const Size shift_size_0 = shift.size(0);
  const Size shift_size_1 = shift.size(1);
  const bool valid = x_size_0 >= 2 && x_size_1 >= 2 && scale_size_0 == x_size_1 && shift_size_0 == x_size_0 &&
      shift_size_1 == 1;
  if (!valid) return false;
  const Size output_sizes[] = {x_size_0, x_size_1};
  Tensor output = allocate(float64, sizeof(double), output_sizes, 2);
  if (!output) return false;
  {
    const Size extents[] = {x_size_0, x_size_1};
    const Operand<2> operands[] = {
        load<2>(x.at<const double>(0), {x.stride(0), x.stride(1)}),
        load<2>(scale.at<const double>(0), {0, scale.stride(0)}),
        load<2>(shift.at<const double>(0), {shift.stride(0), 0}, false),
        quick(store<2>(output.at<double>(0), {output.stride(0), output.stride(1)})),
    };
    for_each_row(extents, operands, 35000, scale_and_shift_forward_row);
  }
  made[0] = static_cast<Tensor&&>(output);
  return true;
}

static void scale_and_shift_forward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0]), take(stack[1]), take(stack[2])};
  const Size sizes[] = {0};
  Tensor made[1];
  finish(stack, scale_and_shift_forward(given, sizes, made), made);
}

static const Registration registration(
    "scale_and_shift_forward_9fa774b4dfb5(Tensor x, Tensor scale, Tensor shift) -> Tensor",
    "scale_and_shift_forward_9fa774b4dfb5", scale_and_shift_forward_on_stack);

}  // namespace opwright::emitted
