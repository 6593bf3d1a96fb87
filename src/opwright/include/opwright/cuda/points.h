// Kernels with independent points.
#pragma once

#include "opwright/cuda/packs.h"

namespace opwright {
namespace detail {

template <class Index, int axes>
OPWRIGHT_INLINE Points<Index, 0, axes> points_of(const Walk<axes>&);

}  // namespace detail

// Every thread takes `batch` packs at a time and reads them all before it computes, so that many loads are in flight.
template <template <class, int> class Kernel, class Index, int Width, int batch, class Arguments>
OPWRIGHT_INLINE void for_each_point(const Arguments& given) {
  using At = decltype(detail::points_of<Index>(given.inner_axes));
  const Index total = static_cast<Index>(given.inner_axes.total);
  const Index block = static_cast<Index>(blockDim.x) * batch, grid = block * static_cast<Index>(gridDim.x);
  for (Index first = static_cast<Index>(blockIdx.x) * block + threadIdx.x; first < total; first += grid) {
    Kernel<Index, Width> packs[batch];
    At at[batch];
#pragma unroll
    for (int some = 0; some < batch; ++some) {
      const Index number = first + some * static_cast<Index>(blockDim.x);
      if (number >= total) continue;
      at[some].count = find_pack<Width>(given.inner_axes, number, at[some].inner_index);
      packs[some].read(given, at[some]);
    }
#pragma unroll
    for (int some = 0; some < batch; ++some)
      if (first + some * static_cast<Index>(blockDim.x) < total) packs[some].compute(given, at[some]);
  }
}

}  // namespace opwright
