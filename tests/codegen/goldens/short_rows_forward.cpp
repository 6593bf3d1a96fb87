// short_rows_forward, from short_rows in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:short_rows --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   values = mask ? -∞ : x
//   row_amax_values = max(values)
//   power = exp(values - row_amax_values)
//   row_sum_power = Σ power
//   reciprocal_1 = 1/row_sum_power
//   output = power·reciprocal_1
static void short_rows_forward_row(Size count, void* const* row) {
  const uint8_t* mask_row = static_cast<const uint8_t*>(row[0]);
  const float* x_row = static_cast<const float*>(row[1]);
  float* output_row = static_cast<float*>(row[2]);
  float* power_kept_row = static_cast<float*>(row[3]);
  int32_t* mask_kept_row = static_cast<int32_t*>(row[4]);
  float* output_past = static_cast<float*>(row[5]);
  widen(mask_row, count, mask_kept_row);
  int32_t row_amax_values_largest = INT32_MIN;
#pragma omp simd reduction(max : row_amax_values_largest)
  for (Size j = 0; j < count; ++j) {
    const bool mask = mask_kept_row[j] != 0;
    const float x = x_row[j];
    const float values = mask ? -__builtin_inff() : x;
    const int32_t row_amax_values_next = order_of(values);
    row_amax_values_largest = row_amax_values_next > row_amax_values_largest ? row_amax_values_next :
        row_amax_values_largest;
  }
  const float row_amax_values = from_order<float>(row_amax_values_largest);
  double row_sum_power_total = 0;
  for (Size begin = 0; begin < count; begin += sum_run) {
    const Size end = least(begin + sum_run, count);
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const bool mask = mask_kept_row[j] != 0;
      const float x = x_row[j];
      const float values = mask ? -__builtin_inff() : x;
      const float power = exp_to_one(values - row_amax_values);
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

// The same for sixteen rows, one in each lane of a vector.
static void short_rows_forward_row_lanes(Size count, void* const* row, const Size* steps) {
  const uint8_t* mask_row = static_cast<const uint8_t*>(row[0]);
  const Size mask_step = steps[0];
  int32_t mask_lanes[most_in_lanes * lanes];
  for (Size j = 0; j < count; ++j) {
#pragma omp simd
    for (Size l = 0; l < lanes; ++l) {
      mask_lanes[j * lanes + l] = mask_row[j * mask_step + l];
    }
  }
  const float* x_row = static_cast<const float*>(row[1]);
  const Size x_step = steps[1];
  float* output_row = static_cast<float*>(row[2]);
  const Size output_step = steps[2];
  float* power_kept_row = static_cast<float*>(row[3]);
  const Size power_step = steps[3];
  int32_t row_amax_values_largest[lanes];
#pragma omp simd
  for (Size l = 0; l < lanes; ++l) {
    row_amax_values_largest[l] = INT32_MIN;
  }
  for (Size j = 0; j < count; ++j) {
#pragma omp simd
    for (Size l = 0; l < lanes; ++l) {
      const bool mask = mask_lanes[j * lanes + l] != 0;
      const float x = x_row[j * x_step + l];
      const float values = mask ? -__builtin_inff() : x;
      const int32_t row_amax_values_next = order_of(values);
      row_amax_values_largest[l] = row_amax_values_next > row_amax_values_largest[l] ? row_amax_values_next :
          row_amax_values_largest[l];
    }
  }
  float row_amax_values_lanes[lanes];
#pragma omp simd
  for (Size l = 0; l < lanes; ++l) {
    const float row_amax_values = from_order<float>(row_amax_values_largest[l]);
    row_amax_values_lanes[l] = row_amax_values;
  }
  double row_sum_power_total[lanes];
#pragma omp simd
  for (Size l = 0; l < lanes; ++l) {
    row_sum_power_total[l] = 0;
  }
  for (Size j = 0; j < count; ++j) {
#pragma omp simd
    for (Size l = 0; l < lanes; ++l) {
      const float row_amax_values = row_amax_values_lanes[l];
      const bool mask = mask_lanes[j * lanes + l] != 0;
      const float x = x_row[j * x_step + l];
      const float values = mask ? -__builtin_inff() : x;
      const float power = exp_to_one(values - row_amax_values);
      power_kept_row[j * lanes + l] = power;
      row_sum_power_total[l] += power;
    }
  }
  float reciprocal_1_lanes[lanes];
#pragma omp simd
  for (Size l = 0; l < lanes; ++l) {
    const float row_sum_power = static_cast<float>(row_sum_power_total[l]);
    const float reciprocal_1 = 1 / row_sum_power;
    reciprocal_1_lanes[l] = reciprocal_1;
  }
  for (Size j = 0; j < count; ++j) {
#pragma omp simd
    for (Size l = 0; l < lanes; ++l) {
      const float reciprocal_1 = reciprocal_1_lanes[l];
      const float power = power_kept_row[j * lanes + l];
      output_row[j * output_step + l] = power * reciprocal_1;
    }
  }
}

static bool short_rows_forward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const Tensor& mask = given[1];
  const bool known = x.is(float32, 2) && mask.is(boolean, 2);
  if (!known) return false;
  const Size x_size_0 = x.size(0);
  const Size x_size_1 = x.size(1);
  const Size mask_size_0 = mask.size(0);
  const Size mask_size_1 = mask.size(1);
  const bool valid = x_size_0 >= 2 && x_size_1 >= 2 && mask_size_1 == x_size_1 && mask_size_0 == x_size_0;
  if (!valid) return false;
  const Size output_sizes[] = {x_size_0, x_size_1};
  Tensor output = allocate(float32, sizeof(float), output_sizes, 2);
  if (!output) return false;
  {
    const Size extents[] = {x_size_0, x_size_1};
    const Operand<2> operands[] = {
        load<2>(mask.at<const bool>(0), {mask.stride(0), mask.stride(1)}),
        load<2>(x.at<const float>(0), {x.stride(0), x.stride(1)}),
        store<2>(output.at<float>(0), {output.stride(0), output.stride(1)}),
        scratch<2, float>(),
        scratch<2, int32_t>(),
        past<2, float>(2),
    };
    if (!in_lanes(extents, operands, 1, 8192, short_rows_forward_row_lanes))
      for_each_whole_row(extents, operands, 1, 8192, short_rows_forward_row);
  }
  made[0] = static_cast<Tensor&&>(output);
  return true;
}

static void short_rows_forward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0]), take(stack[1])};
  const Size sizes[] = {0};
  Tensor made[1];
  finish(stack, short_rows_forward(given, sizes, made), made);
}

static const Registration registration(
    "short_rows_forward_0af7977ae503(Tensor x, Tensor mask) -> Tensor",
    "short_rows_forward_0af7977ae503", short_rows_forward_on_stack);

}  // namespace opwright::emitted
