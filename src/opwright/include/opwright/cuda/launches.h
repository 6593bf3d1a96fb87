// Choose the version of a kernel and the number of blocks, by sizes, strides and addresses alone.
#pragma once

#include "opwright/cuda/launch.h"
#include "opwright/cuda/places_of_launch.h"
#include "opwright/complex_arithmetic.h"
#include "opwright/half.h"

namespace opwright::cuda {

constexpr Size threads_of_block = 256, most_blocks = 65536;

inline Size least(Size a, Size b) { return a < b ? a : b; }
inline Size blocks_for(Size work, Size of_block) { return least((work + of_block - 1) / of_block, most_blocks); }

// Kernels with independent points. `kernels` are the plain version and the one with 64-bit indices, then both for
// packs.
template <int width, int batch, class Arguments, int versions, int count>
inline bool launch_points(Kernel (&kernels)[versions], Arguments& given, const LaunchOperand (&places)[count]) {
  auto& walk = given.inner_axes;
  merge(walk, 0, places);
  const bool packed = versions > 2 && has_packs<0>(walk, places, width), wide = !fits_32_bits<0>(walk, places);
  count_packs(walk, packed ? width : 1);
  if (walk.total == 0) return true;
  const Size blocks = blocks_for(walk.total, threads_of_block * batch);
  return launch(kernels[2 * packed + wide], blocks, threads_of_block, given);
}

// How many threads share a row. A warp takes the rows that it can hold; longer rows take as many threads as hold them.
inline Size team_for(Size packs, Size held) {
  constexpr Size most_threads = 1024;
  Size threads = 1;
  while (threads < 32 && threads < packs) threads *= 2;
  while (threads < most_threads && threads * held < packs) threads *= 2;
  return threads;
}

// How a kernel with outer axes is launched: with packs or not, with 32-bit or 64-bit indices.
struct Layout {
  bool packed, wide;
};

// Its axes: merged, and in packs of `width` where possible.
template <int width, class Arguments, int count>
inline Layout lay_out(Arguments& given, const LaunchOperand (&places)[count], bool may_be_packed) {
  constexpr int outer = sizeof(given.outer_axes.extents) / sizeof(Size);
  merge(given.outer_axes, 0, places);
  merge(given.inner_axes, outer, places);
  count_packs(given.outer_axes, 1);
  const bool wide = given.outer_axes.total >= (Size(1) << 31) || !fits_32_bits<outer>(given.inner_axes, places);
  const bool packed = may_be_packed && !wide && has_packs<outer>(given.inner_axes, places, width);
  count_packs(given.inner_axes, packed ? width : 1);
  return {packed, wide};
}

// Kernels with several passes over their rows. `kernels` are: any row, any row with 64-bit indices, rows of which each
// thread keeps `held` elements in registers; then any row, and rows of `held_packed` packs, with packs.
template <int held, int held_packed, class Arguments, int versions>
inline bool launch_teams(Kernel (&kernels)[versions], Arguments& given, Layout layout) {
  constexpr Size threads_of_small_teams = 128;
  const Size rows = given.outer_axes.total;
  if (rows == 0) return true;
  const Size packs = given.inner_axes.total, of_thread = layout.packed ? held_packed : held;
  const Size threads = team_for(packs, of_thread);
  const bool fits = threads * of_thread >= packs;
  const int version = layout.wide ? 1 : (layout.packed ? 3 + fits : 2 * fits);
  const Size together = threads < threads_of_small_teams ? threads_of_small_teams / threads : 1;
  return launch(kernels[version], blocks_for(rows, together), {threads, together}, given);
}

template <int width, int held, int held_packed, class Arguments, int versions, int count>
inline bool launch_rows(Kernel (&kernels)[versions], Arguments& given, const LaunchOperand (&places)[count]) {
  return launch_teams<held, held_packed>(kernels, given, lay_out<width>(given, places, versions > 3));
}

// Kernels with one pass: as above; but if rows are few and long, blocks reduce pieces of them, and a second launch
// combines these. Those kernels come last: pieces of any row, with 64-bit indices, with packs; then the combining ones,
// in the same order.
template <int width, int held, int held_packed, int reduced_bytes, class Arguments, int versions, int count>
inline bool launch_reductions(Kernel (&kernels)[versions], Arguments& given, const LaunchOperand (&places)[count]) {
  constexpr Size most_rows = 256, blocks_wanted = 1024, least_piece = 2048;  // packs
  constexpr int widths = versions > 7 ? 3 : 2;                               // the number of versions for pieces
  const Layout layout = lay_out<width>(given, places, widths == 3);
  const Size rows = given.outer_axes.total, packs = given.inner_axes.total;
  given.pieces = rows > 0 && rows <= most_rows ? least(blocks_wanted / rows, packs / least_piece) : 1;
  if (given.pieces <= 1) return launch_teams<held, held_packed>(kernels, given, layout);
  const Size bytes = rows * given.pieces * reduced_bytes;
  const Tensor partials = allocate(uint8, 1, &bytes, 1);
  if (!partials) return false;
  given.partials = partials.at<char>(0);
  Kernel* const pieces = kernels + versions - 2 * widths + (layout.wide ? 1 : (layout.packed ? 2 : 0));
  return launch(pieces[0], rows * given.pieces, threads_of_block, given) &&
         launch(pieces[widths], rows, threads_of_block, given);
}

// Kernels that reduce columns. `kernels` are, for any column, 64-bit indices and packs: those that reduce, then those
// that combine pieces of the reduced axes. `lanes` threads of a block reduce one pack of columns, each `batch` points
// at a time.
template <int width, int batch, int lanes, int reduced_bytes, class Arguments, int versions, int count>
inline bool launch_columns(Kernel (&kernels)[versions], Arguments& given, const LaunchOperand (&places)[count]) {
  constexpr Size columns_of_block = 32, blocks_wanted = 1024, least_points = 4 * batch * lanes;
  constexpr int widths = versions / 2;
  const Layout layout = lay_out<width>(given, places, widths == 3);
  const Size columns = given.inner_axes.total, tiles = (columns + columns_of_block - 1) / columns_of_block;
  if (columns == 0) return true;
  given.pieces = least((blocks_wanted + tiles - 1) / tiles, given.outer_axes.total / least_points);
  if (given.pieces < 1) given.pieces = 1;
  Kernel* const version = kernels + (layout.wide ? 1 : (layout.packed ? 2 : 0));
  const Shape threads(columns_of_block, lanes);
  if (given.pieces == 1) return launch(version[0], tiles, threads, given);
  const Size bytes = columns * given.pieces * reduced_bytes * (layout.packed ? width : 1);
  const Tensor partials = allocate(uint8, 1, &bytes, 1);
  if (!partials) return false;
  given.partials = partials.at<char>(0);
  return launch(version[0], tiles * given.pieces, threads, given) && launch(version[widths], tiles, threads, given);
}

}  // namespace opwright::cuda
