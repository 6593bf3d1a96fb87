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
    Pack<float, Width> x_pack;
    Pack<float, Width> power_pack;

    __device__ void read(const softmax_forward_arguments& given, const Points<Index, 1, 1>& at) {
      x_pack = load<Width>(given.x, at);
    }
  };

  struct Reductions_0 {
    int32_t amax_x_maximum;

    __device__ void start() {
      amax_x_maximum = INT32_MIN;
    }
    __device__ void add(const Reductions_0& other) {
      amax_x_maximum = other.amax_x_maximum > amax_x_maximum ? other.amax_x_maximum : amax_x_maximum;
    }
  };

  struct Reductions_1 {
    double sum_power_sum;

    __device__ void start() {
      sum_power_sum = 0;
    }
    __device__ void add(const Reductions_1& other) {
      sum_power_sum += other.sum_power_sum;
    }
  };

  static __device__ void run(const softmax_forward_arguments& given, const Row<Index, 1, 1>& this_row) {
    Piece these_pieces[Held > 0 ? Held : 1];
    read_pieces<Width, Held>(given, this_row, these_pieces);
    Reductions_0 reductions_0;
    reductions_0.start();
    for_each_piece<Width, Held>(given, this_row, these_pieces, [&](Piece& this_piece, const auto& at) {
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        const float x = this_piece.x_pack[j];
        const int32_t amax_x_maximum_next = order_of(x);
        reductions_0.amax_x_maximum = amax_x_maximum_next > reductions_0.amax_x_maximum ? amax_x_maximum_next :
            reductions_0.amax_x_maximum;
      }
    });
    reduce_threads(reductions_0);
    const float amax_x_maximum = from_order<float>(reductions_0.amax_x_maximum);
    Reductions_1 reductions_1;
    reductions_1.start();
    for_each_piece<Width, Held>(given, this_row, these_pieces, [&](Piece& this_piece, const auto& at) {
      float sum_power_sum_part = 0;
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        const float x = this_piece.x_pack[j];
        const float power = expf(x - amax_x_maximum);
        this_piece.power_pack[j] = power;
        sum_power_sum_part += power;
      }
      reductions_1.sum_power_sum += sum_power_sum_part;
    });
    reduce_threads(reductions_1);
    const float sum_power_sum = static_cast<float>(reductions_1.sum_power_sum);
    const float reciprocal_1 = 1 / sum_power_sum;
    for_each_piece<Width, Held>(given, this_row, these_pieces, [&](Piece& this_piece, const auto& at) {
      Pack<float, Width> output_pack;
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        const float x = this_piece.x_pack[j];
        const float power = Held > 0 ? this_piece.power_pack[j] : expf(x - amax_x_maximum);
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
extern "C" __global__ void __launch_bounds__(256)
softmax_forward_held_4(const __grid_constant__ softmax_forward_arguments given) {
  for_each_row<softmax_forward_rows, int32_t, 1, 4>(given);
}
extern "C" __global__ void __launch_bounds__(512)
softmax_forward_held_8(const __grid_constant__ softmax_forward_arguments given) {
  for_each_row<softmax_forward_rows, int32_t, 1, 8>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
softmax_forward_packed(const __grid_constant__ softmax_forward_arguments given) {
  for_each_row<softmax_forward_rows, int32_t, 4, 0>(given);
}
extern "C" __global__ void __launch_bounds__(256)
softmax_forward_held_4_packed(const __grid_constant__ softmax_forward_arguments given) {
  for_each_row<softmax_forward_rows, int32_t, 4, 4>(given);
}
extern "C" __global__ void __launch_bounds__(512)
softmax_forward_held_8_packed(const __grid_constant__ softmax_forward_arguments given) {
  for_each_row<softmax_forward_rows, int32_t, 4, 8>(given);
}

}  // namespace opwright::emitted
