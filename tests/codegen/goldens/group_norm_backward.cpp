// group_norm_backward, from group_norm in test_cpp_goldens.py. Written by opwright; formatted by
//   opwright source test_cpp_goldens.py:group_norm --rung cpp
#include "opwright/kernel.h"

namespace opwright::emitted {

namespace {
struct group_norm_backward_sum_row_reductions {
  double row_sum = 0;
  double row_sum_1 = 0;
  void add(const group_norm_backward_sum_row_reductions& other) {
    row_sum += other.row_sum;
    row_sum_1 += other.row_sum_1;
  }
};
}  // namespace

//   reshape_x = x[i0, i1*(weight_size_0 // 4) + i2, i3, i4]
//   mean = saved_sum/float32(size)
//   variance = saved_squares/float32(size)
//   overflown = variance = ∞
//   add_variance = variance + 1e-05
//   root = 1/√add_variance
//   scale = overflown ? nan : root
//   reshape_weight = weight[i1*(weight_size_0 // 4) + i2]
//   reshape_bias = bias[i1*(weight_size_0 // 4) + i2]
//   reshape_result = (reshape_x - mean)·scale·reshape_weight + reshape_bias
//   sigmoid_1 = σ(reshape_result)
//   mul_4 = grad_output·sigmoid_1·(reshape_result·(1 - sigmoid_1) + 1)
//   row_sum = Σ mul_4·reshape_x
//   row_sum_1 = Σ mul_4
//   sum[i0, i1*(weight_size_0 // 4) + i2] = row_sum
//   sum_1[i0, i1*(weight_size_0 // 4) + i2] = row_sum_1
static void group_norm_backward_sum_row(Size count, void* const* row,
    group_norm_backward_sum_row_reductions& reductions) {
  const float* grad_output_row = static_cast<const float*>(row[0]);
  const float* reshape_x_row = static_cast<const float*>(row[1]);
  const float saved_sum = *static_cast<const float*>(row[2]);
  const int64_t size = *static_cast<const int64_t*>(row[3]);
  const float saved_squares = *static_cast<const float*>(row[4]);
  const float reshape_weight = *static_cast<const float*>(row[5]);
  const float reshape_bias = *static_cast<const float*>(row[6]);
  const float mean = saved_sum / static_cast<float>(size);
  const float variance = saved_squares / static_cast<float>(size);
  const bool overflown = variance == __builtin_inff();
  const float add_variance = variance + 1e-05f;
  const float root = rsqrt(add_variance);
  const float scale = overflown ? __builtin_nanf("") : root;
  double row_sum_total = 0;
  double row_sum_1_total = 0;
  for (Size begin = 0; begin < count; begin += sum_run) {
    const Size end = least(begin + sum_run, count);
    float row_sum_part[sum_run];
    float row_sum_1_part[sum_run];
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const float grad_output = grad_output_row[j];
      const float reshape_x = reshape_x_row[j];
      const float reshape_result = (reshape_x - mean) * scale * reshape_weight + reshape_bias;
      const float sigmoid_1 = sigmoid(reshape_result);
      const float mul_4 = grad_output * sigmoid_1 * (reshape_result * (1.0f - sigmoid_1) + 1.0f);
      row_sum_part[j - begin] = mul_4 * reshape_x;
      row_sum_1_part[j - begin] = mul_4;
    }
    row_sum_total += sum_of(row_sum_part, end - begin);
    row_sum_1_total += sum_of(row_sum_1_part, end - begin);
  }
  reductions.row_sum += row_sum_total;
  reductions.row_sum_1 += row_sum_1_total;
}

static void group_norm_backward_sum_row_end(void* const* row,
    const group_norm_backward_sum_row_reductions& reductions) {
  float* sum = static_cast<float*>(row[7]);
  float* sum_1 = static_cast<float*>(row[8]);
  const float row_sum = static_cast<float>(reductions.row_sum);
  const float row_sum_1 = static_cast<float>(reductions.row_sum_1);
  *sum = row_sum;
  *sum_1 = row_sum_1;
}

// The same for sixteen rows, one in each lane of a vector.
static void group_norm_backward_sum_row_lanes(Size count, void* const* row, const Size* steps) {
  const float* grad_output_row = static_cast<const float*>(row[0]);
  const Size grad_output_step = steps[0];
  const float* reshape_x_row = static_cast<const float*>(row[1]);
  const Size reshape_x_step = steps[1];
  const float* saved_sum_lanes = static_cast<const float*>(row[2]);
  const int64_t* size_lanes = static_cast<const int64_t*>(row[3]);
  const float* saved_squares_lanes = static_cast<const float*>(row[4]);
  const float* reshape_weight_lanes = static_cast<const float*>(row[5]);
  const float* reshape_bias_lanes = static_cast<const float*>(row[6]);
  float* sum = static_cast<float*>(row[7]);
  float* sum_1 = static_cast<float*>(row[8]);
  float mean_lanes[lanes];
  float scale_lanes[lanes];
#pragma omp simd
  for (Size l = 0; l < lanes; ++l) {
    const float saved_sum = saved_sum_lanes[l];
    const int64_t size = size_lanes[l];
    const float saved_squares = saved_squares_lanes[l];
    const float mean = saved_sum / static_cast<float>(size);
    const float variance = saved_squares / static_cast<float>(size);
    const bool overflown = variance == __builtin_inff();
    const float add_variance = variance + 1e-05f;
    const float root = rsqrt(add_variance);
    const float scale = overflown ? __builtin_nanf("") : root;
    mean_lanes[l] = mean;
    scale_lanes[l] = scale;
  }
  double row_sum_total[lanes];
  double row_sum_1_total[lanes];
#pragma omp simd
  for (Size l = 0; l < lanes; ++l) {
    row_sum_total[l] = 0;
    row_sum_1_total[l] = 0;
  }
  for (Size j = 0; j < count; ++j) {
#pragma omp simd
    for (Size l = 0; l < lanes; ++l) {
      const float mean = mean_lanes[l];
      const float scale = scale_lanes[l];
      const float reshape_weight = reshape_weight_lanes[l];
      const float reshape_bias = reshape_bias_lanes[l];
      const float grad_output = grad_output_row[j * grad_output_step + l];
      const float reshape_x = reshape_x_row[j * reshape_x_step + l];
      const float reshape_result = (reshape_x - mean) * scale * reshape_weight + reshape_bias;
      const float sigmoid_1 = sigmoid(reshape_result);
      const float mul_4 = grad_output * sigmoid_1 * (reshape_result * (1.0f - sigmoid_1) + 1.0f);
      row_sum_total[l] += mul_4 * reshape_x;
      row_sum_1_total[l] += mul_4;
    }
  }
#pragma omp simd
  for (Size l = 0; l < lanes; ++l) {
    const float row_sum = static_cast<float>(row_sum_total[l]);
    const float row_sum_1 = static_cast<float>(row_sum_1_total[l]);
    sum[l] = row_sum;
    sum_1[l] = row_sum_1;
  }
}

//   unsqueeze_weight = weight[i1*(weight_size_0 // 4) + i2]
//   ds_val_sum = Σ sum·unsqueeze_weight
//   db_val_sum = Σ sum_1·unsqueeze_weight
//   unsqueeze_mean = saved_sum/float32(size)
//   variance = saved_squares/float32(size)
//   overflown = variance = ∞
//   add_variance = variance + 1e-05
//   root = 1/√add_variance
//   unsqueeze_scale_1 = overflown ? nan : root
//   ds_val = ds_val_sum
//   db_val = db_val_sum
//   sum_2 = Σ (sum - sum_1·unsqueeze_mean)·unsqueeze_scale_1
//   grad_bias[i1*(weight_size_0 // 4) + i2] = Σ sum_1
static void group_norm_backward_ds_val_row(Size count, void* const* row) {
  const float* sum_row = static_cast<const float*>(row[0]);
  const float* unsqueeze_weight_row = static_cast<const float*>(row[1]);
  const float* sum_1_row = static_cast<const float*>(row[2]);
  const float saved_sum = *static_cast<const float*>(row[3]);
  const int64_t size = *static_cast<const int64_t*>(row[4]);
  const float saved_squares = *static_cast<const float*>(row[5]);
  float* ds_val = static_cast<float*>(row[6]);
  float* db_val = static_cast<float*>(row[7]);
  float* sum_2_row = static_cast<float*>(row[8]);
  float* grad_bias_row = static_cast<float*>(row[9]);
  const float unsqueeze_mean = saved_sum / static_cast<float>(size);
  const float variance = saved_squares / static_cast<float>(size);
  const bool overflown = variance == __builtin_inff();
  const float add_variance = variance + 1e-05f;
  const float root = rsqrt(add_variance);
  const float unsqueeze_scale_1 = overflown ? __builtin_nanf("") : root;
  double ds_val_sum_total = 0;
  double db_val_sum_total = 0;
  for (Size begin = 0; begin < count; begin += sum_run) {
    const Size end = least(begin + sum_run, count);
    float ds_val_sum_part[sum_run];
    float db_val_sum_part[sum_run];
#pragma omp simd
    for (Size j = begin; j < end; ++j) {
      const float sum = sum_row[j];
      const float unsqueeze_weight = unsqueeze_weight_row[j];
      const float sum_1 = sum_1_row[j];
      ds_val_sum_part[j - begin] = sum * unsqueeze_weight;
      db_val_sum_part[j - begin] = sum_1 * unsqueeze_weight;
      sum_2_row[j] += (sum - sum_1 * unsqueeze_mean) * unsqueeze_scale_1;
      grad_bias_row[j] += sum_1;
    }
    ds_val_sum_total += sum_of(ds_val_sum_part, end - begin);
    db_val_sum_total += sum_of(db_val_sum_part, end - begin);
  }
  const float ds_val_sum = static_cast<float>(ds_val_sum_total);
  const float db_val_sum = static_cast<float>(db_val_sum_total);
  *ds_val = ds_val_sum;
  *db_val = db_val_sum;
}

static void group_norm_backward_ds_val_row_start(Size count, void* const* row) {
  double* sum_2_total = static_cast<double*>(row[0]);
  double* grad_bias_total = static_cast<double*>(row[1]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    sum_2_total[j] = 0;
    grad_bias_total[j] = 0;
  }
}

static void group_norm_backward_ds_val_row_combine(Size count, void* const* row) {
  double* sum_2_total = static_cast<double*>(row[0]);
  double* grad_bias_total = static_cast<double*>(row[1]);
  const double* sum_2_other = static_cast<const double*>(row[2]);
  const double* grad_bias_other = static_cast<const double*>(row[3]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    sum_2_total[j] += sum_2_other[j];
    grad_bias_total[j] += grad_bias_other[j];
  }
}

static void group_norm_backward_ds_val_row_end(Size count, void* const* row) {
  double* sum_2_total = static_cast<double*>(row[0]);
  double* grad_bias_total = static_cast<double*>(row[1]);
  float* sum_2 = static_cast<float*>(row[2]);
  float* grad_bias = static_cast<float*>(row[3]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    sum_2[j] = static_cast<float>(sum_2_total[j]);
    grad_bias[j] = static_cast<float>(grad_bias_total[j]);
  }
}

static void group_norm_backward_ds_val_row_settle(Size count, void* const* row) {
  double* sum_2_total = static_cast<double*>(row[0]);
  double* grad_bias_total = static_cast<double*>(row[1]);
  float* sum_2_some = static_cast<float*>(row[2]);
  float* grad_bias_some = static_cast<float*>(row[3]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    sum_2_total[j] += sum_2_some[j], sum_2_some[j] = 0;
    grad_bias_total[j] += grad_bias_some[j], grad_bias_some[j] = 0;
  }
}

//   reshape_x = x[i0, i1*(weight_size_0 // 4) + i2, i3, i4]
//   mean = saved_sum/float32(size)
//   variance = saved_squares/float32(size)
//   scale = variance = ∞ ? nan : 1/√(variance + 1e-05)
//   reshape_weight = weight[i1*(weight_size_0 // 4) + i2]
//   reshape_bias = bias[i1*(weight_size_0 // 4) + i2]
//   reshape_result = (reshape_x - mean)·scale·reshape_weight + reshape_bias
//   sigmoid_1 = σ(reshape_result)
//   mul_17 = grad_output·sigmoid_1·(reshape_result·(1 - sigmoid_1) + 1)·(scale·reshape_weight)
//   unsqueeze_mul_2 = (db_val·mean - ds_val)·scale·scale·scale·float32(1/float64(size))
//   unsqueeze_sub_1 = -unsqueeze_mul_2·mean - db_val·scale·float32(1/float64(size))
//   grad_x_1[i0, i1*(weight_size_0 // 4) + i2, i3, i4] = mul_17 + reshape_x·unsqueeze_mul_2 + unsqueeze_sub_1
static void group_norm_backward_grad_x_1_row(Size count, void* const* row) {
  const float* grad_output_row = static_cast<const float*>(row[0]);
  const float* reshape_x_row = static_cast<const float*>(row[1]);
  const float saved_sum = *static_cast<const float*>(row[2]);
  const int64_t size = *static_cast<const int64_t*>(row[3]);
  const float saved_squares = *static_cast<const float*>(row[4]);
  const float reshape_weight = *static_cast<const float*>(row[5]);
  const float reshape_bias = *static_cast<const float*>(row[6]);
  const float db_val = *static_cast<const float*>(row[7]);
  const float ds_val = *static_cast<const float*>(row[8]);
  float* grad_x_1_row = static_cast<float*>(row[9]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    const float grad_output = grad_output_row[j];
    const float reshape_x = reshape_x_row[j];
    const float mean = saved_sum / static_cast<float>(size);
    const float variance = saved_squares / static_cast<float>(size);
    const float scale = variance == __builtin_inff() ? __builtin_nanf("") : rsqrt(variance + 1e-05f);
    const float reshape_result = (reshape_x - mean) * scale * reshape_weight + reshape_bias;
    const float sigmoid_1 = sigmoid(reshape_result);
    const float mul_17 = grad_output * sigmoid_1 * (reshape_result * (1.0f - sigmoid_1) + 1.0f) *
        (scale * reshape_weight);
    const float unsqueeze_mul_2 = (db_val * mean - ds_val) * scale * scale * scale *
        static_cast<float>(1.0 / static_cast<double>(size));
    const float unsqueeze_sub_1 = -unsqueeze_mul_2 * mean -
        db_val * scale * static_cast<float>(1.0 / static_cast<double>(size));
    grad_x_1_row[j] = mul_17 + reshape_x * unsqueeze_mul_2 + unsqueeze_sub_1;
  }
}

//   grad_weight = sum_2[i0, i1]
//   grad_weight_1[i0*(weight_size_0 // 4) + i1] = grad_weight
static void group_norm_backward_grad_weight_1_row(Size count, void* const* row) {
  const float* grad_weight_row = static_cast<const float*>(row[0]);
  float* grad_weight_1_row = static_cast<float*>(row[1]);
#pragma omp simd
  for (Size j = 0; j < count; ++j) {
    const float grad_weight = grad_weight_row[j];
    grad_weight_1_row[j] = grad_weight;
  }
}

static bool group_norm_backward(const Tensor* given, const Size* sizes, Tensor* made) {
  const Tensor& x = given[0];
  const Tensor& weight = given[1];
  const Tensor& bias = given[2];
  const Tensor& saved_squares = given[3];
  const Tensor& saved_sum = given[4];
  const Tensor& grad_output = given[5];
  const bool known = x.is(float32, 4) && weight.is(float32, 1) && bias.is(float32, 1) && saved_squares.is(float32, 4) &&
      saved_sum.is(float32, 4) && grad_output.is(float32, 4);
  if (!known) return false;
  const Size x_size_0 = x.size(0);
  const Size x_size_1 = x.size(1);
  const Size x_size_2 = x.size(2);
  const Size x_size_3 = x.size(3);
  const Size weight_size_0 = weight.size(0);
  const Size bias_size_0 = bias.size(0);
  const Size saved_squares_size_0 = saved_squares.size(0);
  const Size saved_squares_size_1 = saved_squares.size(1);
  const Size saved_squares_size_2 = saved_squares.size(2);
  const Size saved_squares_size_3 = saved_squares.size(3);
  const Size saved_sum_size_0 = saved_sum.size(0);
  const Size saved_sum_size_1 = saved_sum.size(1);
  const Size saved_sum_size_2 = saved_sum.size(2);
  const Size saved_sum_size_3 = saved_sum.size(3);
  const Size grad_output_size_0 = grad_output.size(0);
  const Size grad_output_size_1 = grad_output.size(1);
  const Size grad_output_size_2 = grad_output.size(2);
  const Size grad_output_size_3 = grad_output.size(3);
  const bool valid = weight_size_0 == x_size_1 && bias_size_0 == x_size_1 && saved_squares_size_0 == x_size_0 &&
      saved_squares_size_1 == 4 && saved_squares_size_2 == 1 && saved_squares_size_3 == 1 &&
      saved_sum_size_0 == x_size_0 && saved_sum_size_1 == 4 && saved_sum_size_2 == 1 && saved_sum_size_3 == 1 &&
      grad_output_size_0 == x_size_0 && grad_output_size_1 == x_size_1 && grad_output_size_2 == x_size_2 &&
      grad_output_size_3 == x_size_3;
  if (!valid) return false;
  const Size sum_2_size_1 = floor_divide(weight_size_0, 4);
  const Size size = x_size_2*x_size_3*floor_divide(weight_size_0, 4);
  const Size sum_sizes[] = {x_size_0, x_size_1};
  Tensor sum = allocate(float32, sizeof(float), sum_sizes, 2);
  if (!sum) return false;
  const Size sum_1_sizes[] = {x_size_0, x_size_1};
  Tensor sum_1 = allocate(float32, sizeof(float), sum_1_sizes, 2);
  if (!sum_1) return false;
  {
    const Size extents[] = {x_size_0, 4, sum_2_size_1, x_size_2, x_size_3};
    const Operand<5> operands[] = {
        load<5>(grad_output.at<const float>(0),
            {grad_output.stride(0), floor_divide(weight_size_0, 4) * grad_output.stride(1), grad_output.stride(1),
            grad_output.stride(2), grad_output.stride(3)}),
        load<5>(x.at<const float>(0),
            {x.stride(0), floor_divide(weight_size_0, 4) * x.stride(1), x.stride(1), x.stride(2), x.stride(3)}),
        load<5>(saved_sum.at<const float>(0), {saved_sum.stride(0), saved_sum.stride(1), 0, 0, 0}, false),
        load<5>(&size, {0, 0, 0, 0, 0}, false),
        load<5>(saved_squares.at<const float>(0), {saved_squares.stride(0), saved_squares.stride(1), 0, 0, 0}, false),
        load<5>(weight.at<const float>(0),
            {0, floor_divide(weight_size_0, 4) * weight.stride(0), weight.stride(0), 0, 0}, false),
        load<5>(bias.at<const float>(0), {0, floor_divide(weight_size_0, 4) * bias.stride(0), bias.stride(0), 0, 0},
            false),
        store<5>(sum.at<float>(0), {sum.stride(0), floor_divide(weight_size_0, 4) * sum.stride(1), sum.stride(1), 0, 0},
            false),
        store<5>(sum_1.at<float>(0),
            {sum_1.stride(0), floor_divide(weight_size_0, 4) * sum_1.stride(1), sum_1.stride(1), 0, 0}, false),
    };
    if (!in_lanes(extents, operands, 2, 8192, group_norm_backward_sum_row_lanes))
      reduce_rows<group_norm_backward_sum_row_reductions, group_norm_backward_sum_row,
          group_norm_backward_sum_row_end>(extents, operands, 2, 8192);
  }
  const Size ds_val_sizes[] = {x_size_0, 4};
  Tensor ds_val = allocate(float32, sizeof(float), ds_val_sizes, 2);
  if (!ds_val) return false;
  const Size db_val_sizes[] = {x_size_0, 4};
  Tensor db_val = allocate(float32, sizeof(float), db_val_sizes, 2);
  if (!db_val) return false;
  const Size sum_2_sizes[] = {4, sum_2_size_1};
  Tensor sum_2 = allocate(float32, sizeof(float), sum_2_sizes, 2);
  if (!sum_2) return false;
  const Size grad_bias_sizes[] = {x_size_1};
  Tensor grad_bias = allocate(float32, sizeof(float), grad_bias_sizes, 1);
  if (!grad_bias) return false;
  {
    const Size extents[] = {x_size_0, 4, sum_2_size_1};
    const Operand<3> operands[] = {
        load<3>(sum.at<const float>(0), {sum.stride(0), floor_divide(weight_size_0, 4) * sum.stride(1), sum.stride(1)}),
        load<3>(weight.at<const float>(0), {0, floor_divide(weight_size_0, 4) * weight.stride(0), weight.stride(0)}),
        load<3>(sum_1.at<const float>(0),
            {sum_1.stride(0), floor_divide(weight_size_0, 4) * sum_1.stride(1), sum_1.stride(1)}),
        load<3>(saved_sum.at<const float>(0), {saved_sum.stride(0), saved_sum.stride(1), 0}, false),
        load<3>(&size, {0, 0, 0}, false),
        load<3>(saved_squares.at<const float>(0), {saved_squares.stride(0), saved_squares.stride(1), 0}, false),
        store<3>(ds_val.at<float>(0), {ds_val.stride(0), ds_val.stride(1), 0}, false),
        store<3>(db_val.at<float>(0), {db_val.stride(0), db_val.stride(1), 0}, false),
    };
    const Size kept[] = {sizeof(double), sizeof(double)};
    const Operand<3> results[] = {
        store<3>(sum_2.at<float>(0), {0, sum_2.stride(0), sum_2.stride(1)}),
        store<3>(grad_bias.at<float>(0),
            {0, floor_divide(weight_size_0, 4) * grad_bias.stride(0), grad_bias.stride(0)}),
    };
    reduce_columns(extents, operands, kept, results, 0, 1, 8192, group_norm_backward_ds_val_row,
        {group_norm_backward_ds_val_row_start, group_norm_backward_ds_val_row_combine,
        group_norm_backward_ds_val_row_end, nullptr, group_norm_backward_ds_val_row_settle});
  }
  const Size grad_x_1_sizes[] = {x_size_0, x_size_1, x_size_2, x_size_3};
  Tensor grad_x_1 = allocate(float32, sizeof(float), grad_x_1_sizes, 4);
  if (!grad_x_1) return false;
  {
    const Size extents[] = {x_size_0, 4, sum_2_size_1, x_size_2, x_size_3};
    const Operand<5> operands[] = {
        load<5>(grad_output.at<const float>(0),
            {grad_output.stride(0), floor_divide(weight_size_0, 4) * grad_output.stride(1), grad_output.stride(1),
            grad_output.stride(2), grad_output.stride(3)}),
        load<5>(x.at<const float>(0),
            {x.stride(0), floor_divide(weight_size_0, 4) * x.stride(1), x.stride(1), x.stride(2), x.stride(3)}),
        load<5>(saved_sum.at<const float>(0), {saved_sum.stride(0), saved_sum.stride(1), 0, 0, 0}, false),
        load<5>(&size, {0, 0, 0, 0, 0}, false),
        load<5>(saved_squares.at<const float>(0), {saved_squares.stride(0), saved_squares.stride(1), 0, 0, 0}, false),
        load<5>(weight.at<const float>(0),
            {0, floor_divide(weight_size_0, 4) * weight.stride(0), weight.stride(0), 0, 0}, false),
        load<5>(bias.at<const float>(0), {0, floor_divide(weight_size_0, 4) * bias.stride(0), bias.stride(0), 0, 0},
            false),
        load<5>(db_val.at<const float>(0), {db_val.stride(0), db_val.stride(1), 0, 0, 0}, false),
        load<5>(ds_val.at<const float>(0), {ds_val.stride(0), ds_val.stride(1), 0, 0, 0}, false),
        store<5>(grad_x_1.at<float>(0),
            {grad_x_1.stride(0), floor_divide(weight_size_0, 4) * grad_x_1.stride(1), grad_x_1.stride(1),
            grad_x_1.stride(2), grad_x_1.stride(3)}),
    };
    for_each_row(extents, operands, 2692, group_norm_backward_grad_x_1_row);
  }
  const Size grad_weight_1_sizes[] = {x_size_1};
  Tensor grad_weight_1 = allocate(float32, sizeof(float), grad_weight_1_sizes, 1);
  if (!grad_weight_1) return false;
  {
    const Size extents[] = {4, sum_2_size_1};
    const Operand<2> operands[] = {
        load<2>(sum_2.at<const float>(0), {sum_2.stride(0), sum_2.stride(1)}),
        quick(store<2>(grad_weight_1.at<float>(0),
            {floor_divide(weight_size_0, 4) * grad_weight_1.stride(0), grad_weight_1.stride(0)})),
    };
    for_each_row(extents, operands, 140000, group_norm_backward_grad_weight_1_row);
  }
  made[0] = static_cast<Tensor&&>(grad_x_1);
  made[1] = static_cast<Tensor&&>(grad_weight_1);
  made[2] = static_cast<Tensor&&>(grad_bias);
  return true;
}

static void group_norm_backward_on_stack(StableIValue* stack, uint64_t, uint64_t) {
  const Tensor given[] =
      {take(stack[0]), take(stack[1]), take(stack[2]), take(stack[3]), take(stack[4]), take(stack[5])};
  const Size sizes[] = {0};
  Tensor made[3];
  finish(stack, group_norm_backward(given, sizes, made), made);
}

static const Registration registration(
    "group_norm_backward_8a2ef4c932e9(Tensor x, Tensor weight, Tensor bias, Tensor saved_squares, Tensor "
    "saved_sum, Tensor grad_output) -> (Tensor, Tensor, Tensor)",
    "group_norm_backward_8a2ef4c932e9", group_norm_backward_on_stack);

}  // namespace opwright::emitted
