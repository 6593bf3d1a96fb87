// Kernels that reduce over their outer axes: sums of columns, gradients of a weight or a bias. No atomics: reduced axes
// are cut into pieces, as many as the sizes alone ask for, and partial results are combined in order.  A block has 32
// neighbouring packs of columns, and several lanes, each of which reduces every n-th point.
#pragma once

#include "opwright/cuda/packs.h"

namespace opwright {
namespace detail {

template <class Index, int outer, int inner>
OPWRIGHT_INLINE Points<Index, outer, inner> points_of(const Walk<outer>&, const Walk<inner>&);

// Combines the partial results of a block's lanes in the first lane.
template <int lanes, class Reductions>
OPWRIGHT_INLINE void reduce_lanes(Reductions& reductions) {
  __shared__ Reductions of_lane[lanes][32];
  of_lane[threadIdx.y][threadIdx.x] = reductions;
  __syncthreads();
  if (threadIdx.y != 0) return;
#pragma unroll 1
  for (int lane = 1; lane < lanes; ++lane) reductions.add(of_lane[lane][threadIdx.x]);
}

// The pack of columns of a thread; beyond the end, the last pack.
template <class Index, int Width, class Arguments>
OPWRIGHT_INLINE auto find_columns(const Arguments& given, int64_t number)
    -> decltype(points_of<Index>(given.outer_axes, given.inner_axes)) {
  decltype(points_of<Index>(given.outer_axes, given.inner_axes)) at;
  const int64_t last = given.inner_axes.total - 1;
  find_pack<Width>(given.inner_axes, static_cast<Index>(number < last ? number : last), at.inner_index);
  at.count = Width;  // the columns fill whole packs
  for (Index& index : at.outer_index) index = 0;
  return at;
}

}  // namespace detail

// Each block reduces one piece of a tile of columns.
template <template <class, int> class Kernel, class Index, int Width, int batch, int lanes, class Arguments>
OPWRIGHT_INLINE void reduce_columns(const Arguments& given) {
  using Reductions = typename Kernel<Index, Width>::Reductions;
  using Parts = typename Kernel<Index, Width>::Parts;
  const int64_t columns = given.inner_axes.total, reduced = given.outer_axes.total;
  const int64_t piece = blockIdx.x % given.pieces, number = blockIdx.x / given.pieces * 32 + threadIdx.x;
  const int64_t begin = reduced * piece / given.pieces, end = reduced * (piece + 1) / given.pieces;
  auto at = detail::find_columns<Index, Width>(given, number);
  Reductions reductions;
  reductions.start();
  for (int64_t first = begin + threadIdx.y; first < end && number < columns; first += batch * lanes) {
    Kernel<Index, Width> points[batch];
    decltype(at) places[batch];
    Parts parts;
    parts.start();
#pragma unroll
    for (int some = 0; some < batch; ++some) {
      places[some] = at;
      if (first + some * lanes >= end) continue;
      find_pack<1>(given.outer_axes, static_cast<Index>(first + some * lanes), places[some].outer_index);
      points[some].read(given, places[some]);
    }
#pragma unroll
    for (int some = 0; some < batch; ++some)
      if (first + some * lanes < end) points[some].compute(given, places[some], parts);
    reductions.add(parts);
  }
  detail::reduce_lanes<lanes>(reductions);
  if (threadIdx.y != 0 || number >= columns) return;
  if (given.pieces == 1) return Kernel<Index, Width>::finish(given, at, reductions);
  static_cast<Reductions*>(given.partials)[piece * columns + number] = reductions;
}

// Each block combines the pieces of a tile of columns, always in the same order.
template <template <class, int> class Kernel, class Index, int Width, int batch, int lanes, class Arguments>
OPWRIGHT_INLINE void finish_columns(const Arguments& given) {
  using Reductions = typename Kernel<Index, Width>::Reductions;
  const int64_t columns = given.inner_axes.total, number = static_cast<int64_t>(blockIdx.x) * 32 + threadIdx.x;
  const Reductions* partials = static_cast<const Reductions*>(given.partials);
  Reductions reductions;
  reductions.start();
  for (int64_t piece = threadIdx.y; piece < given.pieces && number < columns; piece += lanes)
    reductions.add(partials[piece * columns + number]);
  detail::reduce_lanes<lanes>(reductions);
  if (threadIdx.y == 0 && number < columns)
    Kernel<Index, Width>::finish(given, detail::find_columns<Index, Width>(given, number), reductions);
}

}  // namespace opwright
