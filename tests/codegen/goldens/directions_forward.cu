#include "opwright/cuda/kernel.h"

namespace opwright::emitted {

struct directions_forward_case_0_arguments {
  Walk<1> inner_axes;
  Elements<const float, 1> x;
  Elements<const float, 1> x_1;
  Elements<const float, 1> x_2;
  Elements<float, 1> saved_sum_out;
  Elements<float, 1> output_1;
  Elements<float, 1> output_2;
  Elements<float, 1> output_3;
};

template <class Index, int Width>
struct directions_forward_case_0_points {
  LoadedPack<float, Width> x_pack;
  LoadedPack<float, Width> x_1_pack;
  LoadedPack<float, Width> x_2_pack;

  __device__ void read(const directions_forward_case_0_arguments& given, const Points<Index, 0, 1>& at) {
    x_pack = load<Width>(given.x, at);
    x_1_pack = load<Width>(given.x_1, at);
    x_2_pack = load<Width>(given.x_2, at);
  }

  __device__ void compute(const directions_forward_case_0_arguments& given, const Points<Index, 0, 1>& at) const {
    Pack<float, Width> saved_sum_out_pack;
    Pack<float, Width> output_1_pack;
    Pack<float, Width> output_2_pack;
    Pack<float, Width> output_3_pack;
#pragma unroll
    for (int j = 0; j < Width; ++j) {
      const float x = x_pack[j];
      const float magnitude = fabsf(x);
      const float x_1 = x_1_pack[j];
      const float magnitude_1 = fabsf(x_1);
      const float x_2 = x_2_pack[j];
      const float magnitude_2 = fabsf(x_2);
      const float saved_sum = 0.0f + magnitude * magnitude + magnitude_1 * magnitude_1 + magnitude_2 * magnitude_2;
      const float norm = sqrtf(saved_sum);
      saved_sum_out_pack[j] = saved_sum;
      output_1_pack[j] = x / norm;
      output_2_pack[j] = x_1 / norm;
      output_3_pack[j] = x_2 / norm;
    }
    store(given.saved_sum_out, at, saved_sum_out_pack);
    store(given.output_1, at, output_1_pack);
    store(given.output_2, at, output_2_pack);
    store(given.output_3, at, output_3_pack);
  }
};

extern "C" __global__ void __launch_bounds__(256)
directions_forward_case_0(const __grid_constant__ directions_forward_case_0_arguments given) {
  for_each_point<directions_forward_case_0_points, int32_t, 1, 1>(given);
}
extern "C" __global__ void __launch_bounds__(256)
directions_forward_case_0_wide(const __grid_constant__ directions_forward_case_0_arguments given) {
  for_each_point<directions_forward_case_0_points, int64_t, 1, 1>(given);
}
extern "C" __global__ void __launch_bounds__(256)
directions_forward_case_0_packed(const __grid_constant__ directions_forward_case_0_arguments given) {
  for_each_point<directions_forward_case_0_points, int32_t, 4, 1>(given);
}
extern "C" __global__ void __launch_bounds__(256)
directions_forward_case_0_packed_wide(const __grid_constant__ directions_forward_case_0_arguments given) {
  for_each_point<directions_forward_case_0_points, int64_t, 4, 1>(given);
}

struct directions_forward_arguments {
  Walk<1> outer_axes;
  Walk<1> inner_axes;
  Elements<const float, 2> x;
  Elements<float, 2> saved_sum;
  Elements<float, 2> output;
};

template <class Index, int Width, int Held>
struct directions_forward_rows {
  // One pack of a row, in a thread.
  struct Piece {
    LoadedPack<float, Width> x_pack;

    __device__ void read(const directions_forward_arguments& given, const Points<Index, 1, 1>& at) {
      x_pack = load<Width>(given.x, at);
    }
  };

  struct Reductions_0 {
    double saved_sum_sum;

    __device__ void start() {
      saved_sum_sum = 0;
    }
    __device__ void add(const Reductions_0& other) {
      saved_sum_sum += other.saved_sum_sum;
    }
  };

  static __device__ void run(const directions_forward_arguments& given, const Row<Index, 1, 1>& this_row) {
    Piece these_pieces[Held > 0 ? Held : 1];
    read_pieces<Width, Held>(given, this_row, these_pieces);
    Reductions_0 reductions_0;
    reductions_0.start();
    for_each_piece<Width, Held>(given, this_row, these_pieces, [&](Piece& this_piece, const decltype(this_row.at)& at) {
      float saved_sum_sum_part = 0;
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        const float x = this_piece.x_pack[j];
        const float magnitude = fabsf(x);
        saved_sum_sum_part += magnitude * magnitude;
      }
      reductions_0.saved_sum_sum += saved_sum_sum_part;
    });
    reduce_threads(reductions_0);
    const float saved_sum_sum = static_cast<float>(reductions_0.saved_sum_sum);
    const float norm = sqrtf(saved_sum_sum);
    for_each_piece<Width, Held>(given, this_row, these_pieces, [&](Piece& this_piece, const decltype(this_row.at)& at) {
      Pack<float, Width> output_pack;
#pragma unroll
      for (int j = 0; j < Width; ++j) {
        const float x = this_piece.x_pack[j];
        output_pack[j] = x / norm;
      }
      store(given.output, at, output_pack);
    });
    if (this_row.is_first_thread) {
      store_one<float>(given.saved_sum, this_row.at, saved_sum_sum);
    }
  }
};

extern "C" __global__ void __launch_bounds__(1024)
directions_forward(const __grid_constant__ directions_forward_arguments given) {
  for_each_row<directions_forward_rows, int32_t, 1, 0>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
directions_forward_wide(const __grid_constant__ directions_forward_arguments given) {
  for_each_row<directions_forward_rows, int64_t, 1, 0>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
directions_forward_held(const __grid_constant__ directions_forward_arguments given) {
  for_each_row<directions_forward_rows, int32_t, 1, 8>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
directions_forward_packed(const __grid_constant__ directions_forward_arguments given) {
  for_each_row<directions_forward_rows, int32_t, 4, 0>(given);
}
extern "C" __global__ void __launch_bounds__(1024)
directions_forward_held_packed(const __grid_constant__ directions_forward_arguments given) {
  for_each_row<directions_forward_rows, int32_t, 4, 8>(given);
}

}  // namespace opwright::emitted
