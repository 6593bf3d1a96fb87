// mean_square_forward, from mean_square in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:mean_square --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

namespace {
struct mean_square_forward_row_reductions {
  double row_sum_values = 0;
  void add(const mean_square_forward_row_reductions& other) {
    row_sum_values += other.row_sum_values;
  }
};
}  // namespace

//   row_sum_values = Σ x²
//   mean = row_sum_values/float32(size)
//   output_bfloat16 = bfloat16(mean)
static void mean_square_forward_row(Size count, void* const* row, mean_square_forward_row_reductions& reductions) {
  const BFloat16* x_row = static_cast<const BFloat16*>(row[0]);
  double row_sum_values_total = 0;
#pragma omp simd reduction(+ : row_sum_values_total)
  for (Size j = 0; j < count; ++j) {
    const BFloat16 x = x_row[j];
    row_sum_values_total += to_float(x) * to_float(x);
  }
  reductions.row_sum_values += row_sum_values_total;
}

static void mean_square_forward_row_end(void* const* row, const mean_square_forward_row_reductions& reductions) {
  const int64_t size = *static_cast<const int64_t*>(row[1]);
  BFloat16* output_bfloat16_out = static_cast<BFloat16*>(row[2]);
  const float row_sum_values = static_cast<float>(reductions.row_sum_values);
  const float mean = row_sum_values / static_cast<float>(size);
  const BFloat16 output_bfloat16 = to_bfloat16(mean);
  *output_bfloat16_out = output_bfloat16;
}

static bool mean_square_forward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const bool known = x.is(bfloat16, 2);
  if (!known) return false;
  const Size x_size_0 = x.size(0);
  const Size x_size_1 = x.size(1);
  const bool valid = x_size_0 >= 2 && x_size_1 >= 2;
  if (!valid) return false;
  const Size size = x_size_0*x_size_1;
  Tensor output_bfloat16 = allocate(bfloat16, sizeof(BFloat16), nullptr, 0);
  if (!output_bfloat16) return false;
  {
    const Size extents[] = {1, x_size_0, x_size_1};
    const Operand<3> operands[] = {
        load<3>(x.at<const BFloat16>(0), {0, x.stride(0), x.stride(1)}),
        load<3>(&size, {0, 0, 0}, false),
        store<3>(output_bfloat16.at<BFloat16>(0), {0, 0, 0}, false),
    };
    reduce_rows<mean_square_forward_row_reductions, mean_square_forward_row, mean_square_forward_row_end>(extents,
        operands, 2, 8192);
  }
  made[0] = static_cast<Tensor&&>(output_bfloat16);
  return true;
}

static void mean_square_forward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0])};
  const Size sizes[] = {0};
  Tensor made[1];
  finish(stack, mean_square_forward(given, sizes, made), made);
}

static const Registration registration(
    "mean_square_forward_06a91373004e(Tensor x) -> Tensor",
    "mean_square_forward_06a91373004e", mean_square_forward_on_stack);

}  // namespace opwright::emitted
