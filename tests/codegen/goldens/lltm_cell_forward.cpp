// lltm_cell_forward, from lltm_cell in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:lltm_cell --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   cell = old_cell + elu(g)·σ(i)
//   output_0 = tanh(cell)·σ(o)
static void lltm_cell_forward_row(Size count, void* const* row) {
  const float* old_cell_row = static_cast<const float*>(row[0]);
  const float* g_row = static_cast<const float*>(row[1]);
  const float* i_row = static_cast<const float*>(row[2]);
  const float* o_row = static_cast<const float*>(row[3]);
  float* cell_out_row = static_cast<float*>(row[4]);
  float* output_0_row = static_cast<float*>(row[5]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    const float old_cell = old_cell_row[j];
    const float g = g_row[j];
    const float i = i_row[j];
    const float cell = old_cell + (g > 0.0f ? g : expm1(g)) * sigmoid(i);
    const float o = o_row[j];
    cell_out_row[j] = cell;
    output_0_row[j] = tanh(cell) * sigmoid(o);
  }
}

static bool lltm_cell_forward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& gates = given[0];
  const Tensor& old_cell = given[1];
  const bool known = gates.is(float32, 2) && old_cell.is(float32, 2);
  if (!known) return false;
  const Size gates_size_0 = gates.size(0);
  const Size gates_size_1 = gates.size(1);
  const Size old_cell_size_0 = old_cell.size(0);
  const Size old_cell_size_1 = old_cell.size(1);
  const bool valid = gates_size_0 >= 2 && old_cell_size_1 >= 2 && gates_size_1 == 3*old_cell_size_1 &&
      old_cell_size_0 == gates_size_0;
  if (!valid) return false;
  const Size cell_sizes[] = {gates_size_0, old_cell_size_1};
  Tensor cell = allocate(float32, sizeof(float), cell_sizes, 2);
  if (!cell) return false;
  const Size output_0_sizes[] = {gates_size_0, old_cell_size_1};
  Tensor output_0 = allocate(float32, sizeof(float), output_0_sizes, 2);
  if (!output_0) return false;
  {
    const Size extents[] = {gates_size_0, old_cell_size_1};
    const Operand<2> operands[] = {
        load<2>(old_cell.at<const float>(0), {old_cell.stride(0), old_cell.stride(1)}),
        load<2>(gates.at<const float>(2*old_cell_size_1 * gates.stride(1)), {gates.stride(0), gates.stride(1)}),
        load<2>(gates.at<const float>(0), {gates.stride(0), gates.stride(1)}),
        load<2>(gates.at<const float>(old_cell_size_1 * gates.stride(1)), {gates.stride(0), gates.stride(1)}),
        store<2>(cell.at<float>(0), {cell.stride(0), cell.stride(1)}),
        store<2>(output_0.at<float>(0), {output_0.stride(0), output_0.stride(1)}),
    };
    for_each_row(extents, operands, 5600, lltm_cell_forward_row);
  }
  made[0] = static_cast<Tensor&&>(output_0);
  made[1] = static_cast<Tensor&&>(cell);
  return true;
}

static void lltm_cell_forward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0]), take(stack[1])};
  const Size sizes[] = {0};
  Tensor made[2];
  finish(stack, lltm_cell_forward(given, sizes, made), made);
}

static const Registration registration(
    "lltm_cell_forward_671bc310d7dc(Tensor gates, Tensor old_cell) -> (Tensor, Tensor)",
    "lltm_cell_forward_671bc310d7dc", lltm_cell_forward_on_stack);

}  // namespace opwright::emitted
