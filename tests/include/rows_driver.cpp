// Runs for_each_row for the tests: axes and operands are arrays, and "threads" run one after another.
#include "opwright/rows.h"

#include "stable_abi.h"

extern "C" {
static int64_t pieces = 0;

int32_t torch_get_num_threads(uint32_t* count) {
  *count = 2;
  return 0;
}

// Odd pieces, so that rows are cut in the middle, last piece first.
int32_t torch_parallel_for(int64_t begin, int64_t end, int64_t grain, ParallelFunc function, void* context) {
  const int64_t piece = grain % 2 ? grain : grain + 1;
  for (int64_t from = (end - begin - 1) / piece * piece + begin; from >= begin; from -= piece) {
    function(from, from + piece < end ? from + piece : end, context);
    ++pieces;
  }
  return 0;
}
}

using namespace opwright;

struct Pair {  // sixteen bytes, as a complex128
  double first, second;
};
static Pair operator+(Pair x, Pair y) { return {x.first + y.first, x.second + y.second}; }

template <class T>
static void add_row(Size count, void* const* row) {
  const T* x = static_cast<const T*>(row[0]);
  const T y = *static_cast<const T*>(row[1]);
  T* out = static_cast<T*>(row[2]);
  for (Size j = 0; j < count; ++j) out[j] = static_cast<T>(x[j] + y);
}

// out = x + y, where y does not move along the last axis.
template <class T, int axes>
static void add(const Size* extents, const Size* strides, T* x, T* y, T* out, Size grain) {
  Size size[axes], step[3][axes];
  for (int axis = 0; axis < axes; ++axis) {
    size[axis] = extents[axis];
    for (int k = 0; k < 3; ++k) step[k][axis] = strides[k * axes + axis];
  }
  const Operand<axes> operands[] = {load<axes, const T>(x, step[0]), load<axes, const T>(y, step[1], false),
                                    store<axes>(out, step[2])};
  for_each_row(size, operands, grain, add_row<T>);
}

// The three parts of every item, last one first.
static void turn_row(Size count, void* const* row) {
  const float* x = static_cast<const float*>(row[0]);
  float* out = static_cast<float*>(row[1]);
  for (Size j = 0; j < count; ++j)
    for (Size part = 0; part < 3; ++part) out[3 * j + part] = x[3 * j + 2 - part];
}

extern "C" int64_t turn(const Size* extents, const Size* strides, float* x, float* out, Size grain) {
  pieces = 0;
  const Size size[] = {extents[0], extents[1]};
  const Operand<2> operands[] = {in_parts(load<2, const float>(x, {strides[0], strides[1]}), 3, strides[2]),
                                 in_parts(store<2>(out, {strides[3], strides[4]}), 3, strides[5])};
  for_each_row(size, operands, grain, turn_row);
  return pieces;
}

template <class T>
static int64_t add_axes(int axes, const Size* extents, const Size* strides, T* x, T* y, T* out, Size grain) {
  pieces = 0;
  if (axes == 1) add<T, 1>(extents, strides, x, y, out, grain);
  if (axes == 2) add<T, 2>(extents, strides, x, y, out, grain);
  if (axes == 3) add<T, 3>(extents, strides, x, y, out, grain);
  if (axes == 5) add<T, 5>(extents, strides, x, y, out, grain);
  return pieces;
}

extern "C" {
int64_t add_float32(int axes, const Size* extents, const Size* strides, float* x, float* y, float* out, Size grain) {
  return add_axes(axes, extents, strides, x, y, out, grain);
}
int64_t add_int64(int axes, const Size* extents, const Size* strides, int64_t* x, int64_t* y, int64_t* out,
                  Size grain) {
  return add_axes(axes, extents, strides, x, y, out, grain);
}
int64_t add_int16(int axes, const Size* extents, const Size* strides, int16_t* x, int16_t* y, int16_t* out,
                  Size grain) {
  return add_axes(axes, extents, strides, x, y, out, grain);
}
int64_t add_complex128(int axes, const Size* extents, const Size* strides, Pair* x, Pair* y, Pair* out, Size grain) {
  return add_axes(axes, extents, strides, x, y, out, grain);
}
int64_t add_uint8(int axes, const Size* extents, const Size* strides, uint8_t* x, uint8_t* y, uint8_t* out,
                  Size grain) {
  return add_axes(axes, extents, strides, x, y, out, grain);
}
}
