#include "opwright/cuda/kernel.h"

namespace opwright::emitted {

struct mean_square_forward_arguments {
  Walk<1> outer_axes;
  Walk<2> inner_axes;
  Elements<const BFloat16, 3> x;
  int64_t size;
  Elements<BFloat16, 3> output_bfloat16_out;
  void* partials;
  int64_t pieces;
};

template <class Index, int Width, int Held>
struct mean_square_forward_rows {
  // One pack of a row, in a thread.
  struct Piece {
    LoadedPack<BFloat16, Width> x_pack;

    __device__ void read(const mean_square_forward_arguments& given, const Points<Index, 1, 2>& at) {
      x_pack = load<Width>(given.x, at);
    }
  };

  struct Reductions {
    double row_sum_values;

    __device__ void start() {
      row_sum_values = 0;
    }
    __device__ void add(const Reductions& other) {
      row_sum_values += other.row_sum_values;
    }
  };

  static __device__ void reduce(const mean_square_forward_arguments& given, const Row<Index, 1, 2>& this_row,
      Reductions& reductions) {
    Piece these_pieces[Held > 0 ? Held : 1];
    read_pieces<Width, Held>(given, this_row, these_pieces);
    for_each_piece<Width, Held>(given, this_row, these_pieces, [&](Piece& this_piece, const decltype(this_row.at)& at) {
      float row_sum_values_part = 0;
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        const BFloat16 x = this_piece.x_pack[j];
        row_sum_values_part += to_float(x) * to_float(x);
      }
      reductions.row_sum_values += row_sum_values_part;
    });
  }

  static __device__ void finish(const mean_square_forward_arguments& given, const Row<Index, 1, 2>& this_row,
      const Reductions& reductions) {
    const int64_t size = given.size;
    const float row_sum_values = static_cast<float>(reductions.row_sum_values);
    const float mean = row_sum_values / static_cast<float>(size);
    const BFloat16 output_bfloat16 = to_bfloat16(mean);
    if (this_row.is_first_thread) {
      store_one<BFloat16>(given.output_bfloat16_out, this_row.at, output_bfloat16);
    }
  }
};

extern "C" __global__ void __launch_bounds__(1024)
mean_square_forward(const __grid_constant__ mean_square_forward_arguments given) {
  reduce_rows<mean_square_forward_rows, int32_t, 1, 0>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
mean_square_forward_wide(const __grid_constant__ mean_square_forward_arguments given) {
  reduce_rows<mean_square_forward_rows, int64_t, 1, 0>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
mean_square_forward_held(const __grid_constant__ mean_square_forward_arguments given) {
  reduce_rows<mean_square_forward_rows, int32_t, 1, 8>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
mean_square_forward_packed(const __grid_constant__ mean_square_forward_arguments given) {
  reduce_rows<mean_square_forward_rows, int32_t, 8, 0>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
mean_square_forward_held_packed(const __grid_constant__ mean_square_forward_arguments given) {
  reduce_rows<mean_square_forward_rows, int32_t, 8, 8>(given);
}

extern "C" __global__ void __launch_bounds__(256)
mean_square_forward_pieces(const __grid_constant__ mean_square_forward_arguments given) {
  reduce_pieces<mean_square_forward_rows, int32_t, 1, 0>(given);
}
extern "C" __global__ void __launch_bounds__(256)
mean_square_forward_pieces_wide(const __grid_constant__ mean_square_forward_arguments given) {
  reduce_pieces<mean_square_forward_rows, int64_t, 1, 0>(given);
}
extern "C" __global__ void __launch_bounds__(256)
mean_square_forward_pieces_packed(const __grid_constant__ mean_square_forward_arguments given) {
  reduce_pieces<mean_square_forward_rows, int32_t, 8, 0>(given);
}

extern "C" __global__ void __launch_bounds__(256)
mean_square_forward_finish(const __grid_constant__ mean_square_forward_arguments given) {
  finish_rows<mean_square_forward_rows, int32_t, 1, 0>(given);
}
extern "C" __global__ void __launch_bounds__(256)
mean_square_forward_finish_wide(const __grid_constant__ mean_square_forward_arguments given) {
  finish_rows<mean_square_forward_rows, int64_t, 1, 0>(given);
}
extern "C" __global__ void __launch_bounds__(256)
mean_square_forward_finish_packed(const __grid_constant__ mean_square_forward_arguments given) {
  finish_rows<mean_square_forward_rows, int32_t, 8, 0>(given);
}

}  // namespace opwright::emitted
