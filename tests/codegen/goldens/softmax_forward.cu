#include "opwright/cuda/kernel.h"

namespace opwright::emitted {

struct softmax_forward_arguments {
  Walk<1> outer_axes;
  Walk<1> inner_axes;
  Elements<const float, 2> x;
  Elements<float, 2> output;
};

template <class Index, int Width, int Held>
struct softmax_forward_rows {
  // One pack of a row, in a thread.
  struct Piece {
    LoadedPack<float, Width> x_pack;
    Pack<float, Width> power_pack;

    __device__ void read(const softmax_forward_arguments& given, const Points<Index, 1, 1>& at) {
      x_pack = load<Width>(given.x, at);
    }
  };

  struct Reductions_0 {
    int32_t row_amax_x;

    __device__ void start() {
      row_amax_x = INT32_MIN;
    }
    __device__ void add(const Reductions_0& other) {
      row_amax_x = other.row_amax_x > row_amax_x ? other.row_amax_x : row_amax_x;
    }
  };

  struct Reductions_1 {
    double row_sum_power;

    __device__ void start() {
      row_sum_power = 0;
    }
    __device__ void add(const Reductions_1& other) {
      row_sum_power += other.row_sum_power;
    }
  };

  static __device__ void run(const softmax_forward_arguments& given, const Row<Index, 1, 1>& this_row) {
    Piece these_pieces[Held > 0 ? Held : 1];
    read_pieces<Width, Held>(given, this_row, these_pieces);
    Reductions_0 reductions_0;
    reductions_0.start();
    for_each_piece<Width, Held>(given, this_row, these_pieces, [&](Piece& this_piece, const decltype(this_row.at)& at) {
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        const float x = this_piece.x_pack[j];
        const int32_t row_amax_x_next = order_of(x);
        reductions_0.row_amax_x = row_amax_x_next > reductions_0.row_amax_x ? row_amax_x_next : reductions_0.row_amax_x;
      }
    });
    reduce_threads(reductions_0);
    const float row_amax_x = from_order<float>(reductions_0.row_amax_x);
    Reductions_1 reductions_1;
    reductions_1.start();
    for_each_piece<Width, Held>(given, this_row, these_pieces, [&](Piece& this_piece, const decltype(this_row.at)& at) {
      float row_sum_power_part = 0;
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        const float x = this_piece.x_pack[j];
        const float power = expf(x - row_amax_x);
        this_piece.power_pack[j] = power;
        row_sum_power_part += power;
      }
      reductions_1.row_sum_power += row_sum_power_part;
    });
    reduce_threads(reductions_1);
    const float row_sum_power = static_cast<float>(reductions_1.row_sum_power);
    const float reciprocal_1 = 1 / row_sum_power;
    for_each_piece<Width, Held>(given, this_row, these_pieces, [&](Piece& this_piece, const decltype(this_row.at)& at) {
      Pack<float, Width> output_pack;
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        const float x = this_piece.x_pack[j];
        const float power = Held > 0 ? this_piece.power_pack[j] : expf(x - row_amax_x);
        output_pack[j] = power * reciprocal_1;
      }
      store(given.output, at, output_pack);
    });
  }
};

extern "C" __global__ void __launch_bounds__(1024)
softmax_forward(const __grid_constant__ softmax_forward_arguments given) {
  for_each_row<softmax_forward_rows, int32_t, 1, 0>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
softmax_forward_wide(const __grid_constant__ softmax_forward_arguments given) {
  for_each_row<softmax_forward_rows, int64_t, 1, 0>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
softmax_forward_held(const __grid_constant__ softmax_forward_arguments given) {
  for_each_row<softmax_forward_rows, int32_t, 1, 8>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
softmax_forward_packed(const __grid_constant__ softmax_forward_arguments given) {
  for_each_row<softmax_forward_rows, int32_t, 4, 0>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
softmax_forward_held_packed(const __grid_constant__ softmax_forward_arguments given) {
  for_each_row<softmax_forward_rows, int32_t, 4, 4>(given);
}

}  // namespace opwright::emitted
