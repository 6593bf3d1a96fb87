#include "opwright/cuda/kernel.h"

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

template <class Index, int Width, int Held>
struct layer_norm_backward_sum_grad_x_hat_rows {
  // One pack of a row, in a thread.
  struct Piece {
    LoadedPack<float, Width> grad_output_pack;
    LoadedPack<float, Width> x_pack;

    __device__ void read(const layer_norm_backward_sum_grad_x_hat_arguments& given, const Points<Index, 1, 1>& at) {
      grad_output_pack = load<Width>(given.grad_output, at);
      x_pack = load<Width>(given.x, at);
    }
  };

  struct Reductions_0 {
    double row_sum_grad_x_hat;
    double row_sum_grad_x_hat_x_hat;

    __device__ void start() {
      row_sum_grad_x_hat = 0;
      row_sum_grad_x_hat_x_hat = 0;
    }
    __device__ void add(const Reductions_0& other) {
      row_sum_grad_x_hat += other.row_sum_grad_x_hat;
      row_sum_grad_x_hat_x_hat += other.row_sum_grad_x_hat_x_hat;
    }
  };

  static __device__ void run(const layer_norm_backward_sum_grad_x_hat_arguments& given,
      const Row<Index, 1, 1>& this_row) {
    const int64_t size = given.size;
    const float saved_sum = load_one(given.saved_sum, this_row.at);
    const float saved_squares = load_one(given.saved_squares, this_row.at);
    Piece these_pieces[Held > 0 ? Held : 1];
    read_pieces<Width, Held>(given, this_row, these_pieces);
    const float mean = saved_sum / static_cast<float>(size);
    const float variance = saved_squares / static_cast<float>(size);
    const bool overflown = variance == infinity<float>();
    const float add_variance = variance + 1e-05f;
    const float root = rsqrtf(add_variance);
    const float scale = overflown ? not_a_number<float>() : root;
    const float div_scale = scale / static_cast<float>(size);
    Reductions_0 reductions_0;
    reductions_0.start();
    for_each_piece<Width, Held>(given, this_row, these_pieces, [&](Piece& this_piece, const decltype(this_row.at)& at) {
      const LoadedPack<float, Width> weight_pack = load<Width>(given.weight, at);
      float row_sum_grad_x_hat_part = 0;
      float row_sum_grad_x_hat_x_hat_part = 0;
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        const float grad_output = this_piece.grad_output_pack[j];
        const float weight = weight_pack[j];
        const float grad_x_hat = grad_output * weight;
        const float x = this_piece.x_pack[j];
        const float x_hat = (x - mean) * scale;
        row_sum_grad_x_hat_part += grad_x_hat;
        row_sum_grad_x_hat_x_hat_part += grad_x_hat * x_hat;
      }
      reductions_0.row_sum_grad_x_hat += row_sum_grad_x_hat_part;
      reductions_0.row_sum_grad_x_hat_x_hat += row_sum_grad_x_hat_x_hat_part;
    });
    reduce_threads(reductions_0);
    const float row_sum_grad_x_hat = static_cast<float>(reductions_0.row_sum_grad_x_hat);
    const float row_sum_grad_x_hat_x_hat = static_cast<float>(reductions_0.row_sum_grad_x_hat_x_hat);
    for_each_piece<Width, Held>(given, this_row, these_pieces, [&](Piece& this_piece, const decltype(this_row.at)& at) {
      const LoadedPack<float, Width> weight_pack = load<Width>(given.weight, at);
      Pack<float, Width> grad_x_out_pack;
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        const float grad_output = this_piece.grad_output_pack[j];
        const float weight = weight_pack[j];
        const float grad_x_hat = grad_output * weight;
        const float x = this_piece.x_pack[j];
        const float x_hat = (x - mean) * scale;
        const float grad_x = div_scale *
            (grad_x_hat * static_cast<float>(size) - row_sum_grad_x_hat - x_hat * row_sum_grad_x_hat_x_hat);
        grad_x_out_pack[j] = grad_x;
      }
      store(given.grad_x_out, at, grad_x_out_pack);
    });
  }
};

extern "C" __global__ void __launch_bounds__(1024)
layer_norm_backward_sum_grad_x_hat(const __grid_constant__ layer_norm_backward_sum_grad_x_hat_arguments given) {
  for_each_row<layer_norm_backward_sum_grad_x_hat_rows, int32_t, 1, 0>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
layer_norm_backward_sum_grad_x_hat_wide(const __grid_constant__ layer_norm_backward_sum_grad_x_hat_arguments given) {
  for_each_row<layer_norm_backward_sum_grad_x_hat_rows, int64_t, 1, 0>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
layer_norm_backward_sum_grad_x_hat_held(const __grid_constant__ layer_norm_backward_sum_grad_x_hat_arguments given) {
  for_each_row<layer_norm_backward_sum_grad_x_hat_rows, int32_t, 1, 8>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
layer_norm_backward_sum_grad_x_hat_packed(const __grid_constant__ layer_norm_backward_sum_grad_x_hat_arguments given) {
  for_each_row<layer_norm_backward_sum_grad_x_hat_rows, int32_t, 4, 0>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
layer_norm_backward_sum_grad_x_hat_held_packed(const __grid_constant__ layer_norm_backward_sum_grad_x_hat_arguments
    given) {
  for_each_row<layer_norm_backward_sum_grad_x_hat_rows, int32_t, 4, 4>(given);
}

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

template <class Index, int Width>
struct layer_norm_backward_sum_grad_x_hat_columns_columns {
  LoadedPack<float, Width> grad_output_pack;
  LoadedPack<float, Width> x_pack;
  float saved_sum;
  float saved_squares;

  // Partial results of each column: of a few points, and of all.
  struct Parts {
    float grad_weight[Width];
    float grad_bias[Width];

    __device__ void start() {
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        grad_weight[j] = 0;
        grad_bias[j] = 0;
      }
    }
  };
  struct Reductions {
    double grad_weight[Width];
    double grad_bias[Width];

    __device__ void start() {
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        grad_weight[j] = 0;
        grad_bias[j] = 0;
      }
    }
    template <class Other>
    __device__ void add(const Other& other) {
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        grad_weight[j] += other.grad_weight[j];
        grad_bias[j] += other.grad_bias[j];
      }
    }
  };

  __device__ void read(const layer_norm_backward_sum_grad_x_hat_columns_arguments& given,
      const Points<Index, 1, 1>& at) {
    grad_output_pack = load<Width>(given.grad_output, at);
    x_pack = load<Width>(given.x, at);
    saved_sum = load_one(given.saved_sum, at);
    saved_squares = load_one(given.saved_squares, at);
  }

  __device__ void compute(const layer_norm_backward_sum_grad_x_hat_columns_arguments& given,
      const Points<Index, 1, 1>& at, Parts& parts) const {
    const int64_t size = given.size;
#pragma unroll
    for (int j = 0; j < Width; ++j) {
      const float grad_output = grad_output_pack[j];
      const float x = x_pack[j];
      const float mean = saved_sum / static_cast<float>(size);
      const float variance = saved_squares / static_cast<float>(size);
      const bool overflown = variance == infinity<float>();
      const float add_variance = variance + 1e-05f;
      const float root = rsqrtf(add_variance);
      const float scale = overflown ? not_a_number<float>() : root;
      const float x_hat = (x - mean) * scale;
      parts.grad_weight[j] += grad_output * x_hat;
      parts.grad_bias[j] += grad_output;
    }
  }

  static __device__ void finish(const layer_norm_backward_sum_grad_x_hat_columns_arguments& given,
      const Points<Index, 1, 1>& at, const Reductions& reductions) {
    Pack<float, Width> grad_weight_pack;
    Pack<float, Width> grad_bias_pack;
#pragma unroll
    for (int j = 0; j < Width; ++j) {
      grad_weight_pack[j] = static_cast<float>(reductions.grad_weight[j]);
      grad_bias_pack[j] = static_cast<float>(reductions.grad_bias[j]);
    }
    store(given.grad_weight, at, grad_weight_pack);
    store(given.grad_bias, at, grad_bias_pack);
  }
};

extern "C" __global__ void __launch_bounds__(256)
layer_norm_backward_sum_grad_x_hat_columns(const __grid_constant__ layer_norm_backward_sum_grad_x_hat_columns_arguments
    given) {
  reduce_columns<layer_norm_backward_sum_grad_x_hat_columns_columns, int32_t, 1, 4, 8>(given);
}
extern "C" __global__ void __launch_bounds__(256)
layer_norm_backward_sum_grad_x_hat_columns_wide(const __grid_constant__
    layer_norm_backward_sum_grad_x_hat_columns_arguments given) {
  reduce_columns<layer_norm_backward_sum_grad_x_hat_columns_columns, int64_t, 1, 4, 8>(given);
}
extern "C" __global__ void __launch_bounds__(256)
layer_norm_backward_sum_grad_x_hat_columns_packed(const __grid_constant__
    layer_norm_backward_sum_grad_x_hat_columns_arguments given) {
  reduce_columns<layer_norm_backward_sum_grad_x_hat_columns_columns, int32_t, 4, 4, 8>(given);
}

extern "C" __global__ void __launch_bounds__(256)
layer_norm_backward_sum_grad_x_hat_columns_finish(const __grid_constant__
    layer_norm_backward_sum_grad_x_hat_columns_arguments given) {
  finish_columns<layer_norm_backward_sum_grad_x_hat_columns_columns, int32_t, 1, 4, 8>(given);
}
extern "C" __global__ void __launch_bounds__(256)
layer_norm_backward_sum_grad_x_hat_columns_finish_wide(const __grid_constant__
    layer_norm_backward_sum_grad_x_hat_columns_arguments given) {
  finish_columns<layer_norm_backward_sum_grad_x_hat_columns_columns, int64_t, 1, 4, 8>(given);
}
extern "C" __global__ void __launch_bounds__(256)
layer_norm_backward_sum_grad_x_hat_columns_finish_packed(const __grid_constant__
    layer_norm_backward_sum_grad_x_hat_columns_arguments given) {
  finish_columns<layer_norm_backward_sum_grad_x_hat_columns_columns, int32_t, 4, 4, 8>(given);
}

}  // namespace opwright::emitted
