// Kernels that reduce their rows. A team of threads has a row: softmax, normalisation. If rows are few and long, as in
// a sum of everything, blocks reduce pieces of them, and a second launch combines these.  A thread keeps `Held` packs
// of its row in registers, so that several passes read a row once. If Held is 0, it reads them again in each pass, some
// at a time, mostly from the cache.
#pragma once

#include "opwright/cuda/packs.h"
#include "opwright/cuda/teams.h"

namespace opwright {

// A row, or a piece of one, for a thread.
template <class Index, int outer_axes, int inner_axes>
struct Row {
  Points<Index, outer_axes, inner_axes> at;  // its first element
  Index begin, end;                          // its packs
  bool is_first_thread;                      // whether this thread writes the results of the row
};

namespace detail {

template <class Index, int outer, int inner>
OPWRIGHT_INLINE Row<Index, outer, inner> row_of(const Walk<outer>&, const Walk<inner>&);

// A row beyond the end has no packs. The threads of its team take part in barriers, and read the last row.
template <class Index, class Arguments>
OPWRIGHT_INLINE auto find_row(const Arguments& given, int64_t number)
    -> decltype(row_of<Index>(given.outer_axes, given.inner_axes)) {
  decltype(row_of<Index>(given.outer_axes, given.inner_axes)) row;
  const bool is_there = number < given.outer_axes.total;
  const int64_t found = is_there ? number : given.outer_axes.total - 1;
  find_pack<1>(given.outer_axes, static_cast<Index>(found), row.at.outer_index);
  for (Index& index : row.at.inner_index) index = 0;
  row.at.count = 1;
  row.begin = 0;
  row.end = is_there ? static_cast<Index>(given.inner_axes.total) : 0;
  row.is_first_thread = is_there && threadIdx.x == 0;
  return row;
}

template <int Width, class Arguments, class Row, class Index>
OPWRIGHT_INLINE auto find_piece(const Arguments& given, const Row& row, Index number) {
  auto at = row.at;
  find_pack<Width>(given.inner_axes, number, at.inner_index);
  at.count = Width;  // rows fill whole packs
  return at;
}

// Read `count` packs, from the one with this number on: all of them before any is used.
template <int Width, int count, class Arguments, class Row, class Index, class Piece>
OPWRIGHT_INLINE void read_from(const Arguments& given, const Row& row, Index first, Piece* pieces) {
#pragma unroll
  for (int some = 0; some < count; ++some) {
    const Index number = first + some * static_cast<Index>(blockDim.x);
    if (number < row.end) pieces[some].read(given, find_piece<Width>(given, row, number));
  }
}

template <int Width, int count, class Arguments, class Row, class Index, class Piece, class Visit>
OPWRIGHT_INLINE void visit_from(const Arguments& given, const Row& row, Index first, Piece* pieces,
                                const Visit& visit) {
#pragma unroll
  for (int some = 0; some < count; ++some) {
    const Index number = first + some * static_cast<Index>(blockDim.x);
    if (number < row.end) visit(pieces[some], find_piece<Width>(given, row, number));
  }
}

}  // namespace detail

// Read the packs that a thread keeps.
template <int Width, int Held, class Arguments, class Row, class Piece>
OPWRIGHT_INLINE void read_pieces(const Arguments& given, const Row& row, Piece* pieces) {
  using Index = decltype(row.begin);
  detail::read_from<Width, Held>(given, row, row.begin + static_cast<Index>(threadIdx.x), pieces);
}

// Visit this thread's packs of a row.
template <int Width, int Held, class Arguments, class Row, class Piece, class Visit>
OPWRIGHT_INLINE void for_each_piece(const Arguments& given, const Row& row, Piece* pieces, const Visit& visit) {
  using Index = decltype(row.begin);
  const Index first = row.begin + static_cast<Index>(threadIdx.x);
  if constexpr (Held > 0) {
    detail::visit_from<Width, Held>(given, row, first, pieces, visit);
  } else {
    constexpr int batch = sizeof(Piece) <= 32 ? 4 : (sizeof(Piece) <= 64 ? 2 : 1);  // at most 32 registers
#pragma unroll 1
    for (Index number = first; number < row.end; number += batch * static_cast<Index>(blockDim.x)) {
      Piece again[batch];
      detail::read_from<Width, batch>(given, row, number, again);
      detail::visit_from<Width, batch>(given, row, number, again, visit);
    }
  }
}

// All rows, blockDim.y of them at a time in each block.
template <template <class, int, int> class Kernel, class Index, int Width, int Held, class Arguments>
OPWRIGHT_INLINE void for_each_row(const Arguments& given) {
  const int64_t rows = given.outer_axes.total, of_block = blockDim.y, step = of_block * gridDim.x;
  for (int64_t first = of_block * blockIdx.x; first < rows; first += step)
    Kernel<Index, Width, Held>::run(given, detail::find_row<Index>(given, first + threadIdx.y));
}

// All rows of a kernel with one pass.
template <template <class, int, int> class Kernel, class Index, int Width, int Held, class Arguments>
OPWRIGHT_INLINE void reduce_rows(const Arguments& given) {
  const int64_t rows = given.outer_axes.total, of_block = blockDim.y, step = of_block * gridDim.x;
  for (int64_t first = of_block * blockIdx.x; first < rows; first += step) {
    const auto row = detail::find_row<Index>(given, first + threadIdx.y);
    typename Kernel<Index, Width, Held>::Reductions reductions;
    reductions.start();
    Kernel<Index, Width, Held>::reduce(given, row, reductions);
    reduce_threads(reductions);
    Kernel<Index, Width, Held>::finish(given, row, reductions);
  }
}

// Each block reduces one piece of a row into `partials`.
template <template <class, int, int> class Kernel, class Index, int Width, int Held, class Arguments>
OPWRIGHT_INLINE void reduce_pieces(const Arguments& given) {
  using Reductions = typename Kernel<Index, Width, Held>::Reductions;
  const int64_t packs = given.inner_axes.total, pieces = given.pieces, piece = blockIdx.x % pieces;
  auto row = detail::find_row<Index>(given, blockIdx.x / pieces);
  row.begin = static_cast<Index>(packs * piece / pieces);
  row.end = static_cast<Index>(packs * (piece + 1) / pieces);
  Reductions reductions;
  reductions.start();
  Kernel<Index, Width, Held>::reduce(given, row, reductions);
  reduce_threads(reductions);
  if (threadIdx.x == 0) static_cast<Reductions*>(given.partials)[blockIdx.x] = reductions;
}

// Each block combines the pieces of a row, always in the same order.
template <template <class, int, int> class Kernel, class Index, int Width, int Held, class Arguments>
OPWRIGHT_INLINE void finish_rows(const Arguments& given) {
  using Reductions = typename Kernel<Index, Width, Held>::Reductions;
  const auto row = detail::find_row<Index>(given, blockIdx.x);
  const Reductions* partials = static_cast<const Reductions*>(given.partials) + blockIdx.x * given.pieces;
  Reductions reductions;
  reductions.start();
  for (int64_t piece = threadIdx.x; piece < given.pieces; piece += blockDim.x) reductions.add(partials[piece]);
  reduce_threads(reductions);
  Kernel<Index, Width, Held>::finish(given, row, reductions);
}

}  // namespace opwright
