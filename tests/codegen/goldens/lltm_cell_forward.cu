#include "opwright/cuda/kernel.h"

namespace opwright::emitted {

struct lltm_cell_forward_arguments {
  Walk<2> inner_axes;
  Elements<const float, 2> old_cell;
  Elements<const float, 2> g;
  Elements<const float, 2> i;
  Elements<const float, 2> o;
  Elements<float, 2> cell_out;
  Elements<float, 2> output_0;
};

template <class Index, int Width>
struct lltm_cell_forward_points {
  LoadedPack<float, Width> old_cell_pack;
  LoadedPack<float, Width> g_pack;
  LoadedPack<float, Width> i_pack;
  LoadedPack<float, Width> o_pack;

  __device__ void read(const lltm_cell_forward_arguments& given, const Points<Index, 0, 2>& at) {
    old_cell_pack = load<Width>(given.old_cell, at);
    g_pack = load<Width>(given.g, at);
    i_pack = load<Width>(given.i, at);
    o_pack = load<Width>(given.o, at);
  }

  __device__ void compute(const lltm_cell_forward_arguments& given, const Points<Index, 0, 2>& at) const {
    Pack<float, Width> cell_out_pack;
    Pack<float, Width> output_0_pack;
#pragma unroll
    for (int j = 0; j < Width; ++j) {
      const float old_cell = old_cell_pack[j];
      const float g = g_pack[j];
      const float i = i_pack[j];
      const float cell = old_cell + (g > 0.0f ? g : expm1f(g)) * sigmoid(i);
      const float o = o_pack[j];
      cell_out_pack[j] = cell;
      output_0_pack[j] = tanhf(cell) * sigmoid(o);
    }
    store(given.cell_out, at, cell_out_pack);
    store(given.output_0, at, output_0_pack);
  }
};

extern "C" __global__ void __launch_bounds__(256)
lltm_cell_forward(const __grid_constant__ lltm_cell_forward_arguments given) {
  for_each_point<lltm_cell_forward_points, int32_t, 1, 1>(given);
}
extern "C" __global__ void __launch_bounds__(256)
lltm_cell_forward_wide(const __grid_constant__ lltm_cell_forward_arguments given) {
  for_each_point<lltm_cell_forward_points, int64_t, 1, 1>(given);
}
extern "C" __global__ void __launch_bounds__(256)
lltm_cell_forward_packed(const __grid_constant__ lltm_cell_forward_arguments given) {
  for_each_point<lltm_cell_forward_points, int32_t, 4, 1>(given);
}
extern "C" __global__ void __launch_bounds__(256)
lltm_cell_forward_packed_wide(const __grid_constant__ lltm_cell_forward_arguments given) {
  for_each_point<lltm_cell_forward_points, int64_t, 4, 1>(given);
}

}  // namespace opwright::emitted
