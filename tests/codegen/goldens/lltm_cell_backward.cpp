// lltm_cell_backward, from lltm_cell in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:lltm_cell --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

//   sigmoid_o = σ(o)
//   elu_g = elu(g)
//   sigmoid_i = σ(i)
//   cell = old_cell + elu_g·sigmoid_i
//   tanh_cell = tanh(cell)
//   grad_old_cell = grad_output_1 + grad_output_0·sigmoid_o·(1 - tanh_cell²)
//   mul_7 = grad_old_cell·sigmoid_i
//   grad_gates = grad_old_cell·elu_g·(sigmoid_i·(1 - sigmoid_i))
//   grad_gates[i0, i1 + old_cell_size_1] = grad_output_0·tanh_cell·(sigmoid_o·(1 - sigmoid_o))
//   grad_gates[i0, i1 + 2*old_cell_size_1] = g ≤ 0 ? mul_7·exp(g) : mul_7
static void lltm_cell_backward_row(Size count, void* const* row) {
  const float* grad_output_1_row = static_cast<const float*>(row[0]);
  const float* grad_output_0_row = static_cast<const float*>(row[1]);
  const float* o_row = static_cast<const float*>(row[2]);
  const float* old_cell_row = static_cast<const float*>(row[3]);
  const float* g_row = static_cast<const float*>(row[4]);
  const float* i_row = static_cast<const float*>(row[5]);
  float* grad_old_cell_out_row = static_cast<float*>(row[6]);
  float* grad_gates_1_row = static_cast<float*>(row[7]);
  float* grad_gates_2_row = static_cast<float*>(row[8]);
  float* grad_gates_3_row = static_cast<float*>(row[9]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    const float grad_output_1 = grad_output_1_row[j];
    const float grad_output_0 = grad_output_0_row[j];
    const float o = o_row[j];
    const float sigmoid_o = sigmoid(o);
    const float old_cell = old_cell_row[j];
    const float g = g_row[j];
    const float elu_g = g > 0.0f ? g : expm1(g);
    const float i = i_row[j];
    const float sigmoid_i = sigmoid(i);
    const float cell = old_cell + elu_g * sigmoid_i;
    const float tanh_cell = tanh(cell);
    const float grad_old_cell = grad_output_1 + grad_output_0 * sigmoid_o * (1.0f - tanh_cell * tanh_cell);
    const float mul_7 = grad_old_cell * sigmoid_i;
    grad_old_cell_out_row[j] = grad_old_cell;
    grad_gates_1_row[j] = grad_old_cell * elu_g * (sigmoid_i * (1.0f - sigmoid_i));
    grad_gates_2_row[j] = grad_output_0 * tanh_cell * (sigmoid_o * (1.0f - sigmoid_o));
    grad_gates_3_row[j] = g <= 0.0f ? mul_7 * exp(g) : mul_7;
  }
}

static bool lltm_cell_backward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& gates = given[0];
  const Tensor& old_cell = given[1];
  const Tensor& grad_output_0 = given[2];
  const Tensor& grad_output_1 = given[3];
  const bool known = gates.is(float32, 2) && old_cell.is(float32, 2) && grad_output_0.is(float32, 2) &&
      grad_output_1.is(float32, 2);
  if (!known) return false;
  const Size gates_size_0 = gates.size(0);
  const Size gates_size_1 = gates.size(1);
  const Size old_cell_size_0 = old_cell.size(0);
  const Size old_cell_size_1 = old_cell.size(1);
  const Size grad_output_0_size_0 = grad_output_0.size(0);
  const Size grad_output_0_size_1 = grad_output_0.size(1);
  const Size grad_output_1_size_0 = grad_output_1.size(0);
  const Size grad_output_1_size_1 = grad_output_1.size(1);
  const bool valid = old_cell_size_0 == gates_size_0 && grad_output_0_size_0 == gates_size_0 &&
      grad_output_0_size_1 == old_cell_size_1 && grad_output_1_size_0 == gates_size_0 &&
      grad_output_1_size_1 == old_cell_size_1;
  if (!valid) return false;
  const Size grad_old_cell_sizes[] = {gates_size_0, old_cell_size_1};
  Tensor grad_old_cell = allocate(float32, sizeof(float), grad_old_cell_sizes, 2);
  if (!grad_old_cell) return false;
  const Size grad_gates_sizes[] = {gates_size_0, gates_size_1};
  Tensor grad_gates = allocate(float32, sizeof(float), grad_gates_sizes, 2);
  if (!grad_gates) return false;
  {
    const Size extents[] = {gates_size_0, old_cell_size_1};
    const Operand<2> operands[] = {
        load<2>(grad_output_1.at<const float>(0), {grad_output_1.stride(0), grad_output_1.stride(1)}),
        load<2>(grad_output_0.at<const float>(0), {grad_output_0.stride(0), grad_output_0.stride(1)}),
        load<2>(gates.at<const float>(old_cell_size_1 * gates.stride(1)), {gates.stride(0), gates.stride(1)}),
        load<2>(old_cell.at<const float>(0), {old_cell.stride(0), old_cell.stride(1)}),
        load<2>(gates.at<const float>(2*old_cell_size_1 * gates.stride(1)), {gates.stride(0), gates.stride(1)}),
        load<2>(gates.at<const float>(0), {gates.stride(0), gates.stride(1)}),
        store<2>(grad_old_cell.at<float>(0), {grad_old_cell.stride(0), grad_old_cell.stride(1)}),
        store<2>(grad_gates.at<float>(0), {grad_gates.stride(0), grad_gates.stride(1)}),
        store<2>(grad_gates.at<float>(old_cell_size_1 * grad_gates.stride(1)),
            {grad_gates.stride(0), grad_gates.stride(1)}),
        store<2>(grad_gates.at<float>(2*old_cell_size_1 * grad_gates.stride(1)),
            {grad_gates.stride(0), grad_gates.stride(1)}),
    };
    for_each_row(extents, operands, 2772, lltm_cell_backward_row);
  }
  made[0] = static_cast<Tensor&&>(grad_gates);
  made[1] = static_cast<Tensor&&>(grad_old_cell);
  return true;
}

static void lltm_cell_backward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] = {take(stack[0]), take(stack[1]), take(stack[2]), take(stack[3])};
  const Size sizes[] = {0};
  Tensor made[2];
  finish(stack, lltm_cell_backward(given, sizes, made), made);
}

static const Registration registration(
    "lltm_cell_backward_04b25db1a812(Tensor gates, Tensor old_cell, Tensor grad_output_0, Tensor "
    "grad_output_1) -> (Tensor, Tensor)",
    "lltm_cell_backward_04b25db1a812", lltm_cell_backward_on_stack);

}  // namespace opwright::emitted
