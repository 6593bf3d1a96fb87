// How a launch lays out the axes of a kernel: merged where contiguous, in packs, with division by multiplication.
#pragma once

#include "opwright/cuda/arguments.h"
#include "opwright/tensor.h"

namespace opwright::cuda {

// The part of an operand that decides the layout of the kernel's axes.
struct LaunchOperand {
  Size* strides;
  const void* data;
  Size item_bytes;  // 0 for an iota
  bool stored;
  bool repeated;  // one value for neighbours along the last axis, which a kernel reads as such
};

template <class T, int axes>
inline LaunchOperand place(Elements<T, axes>& elements) {
  return {elements.strides, elements.data, sizeof(T), true, false};
}
template <class T, int axes>
inline LaunchOperand place(Elements<const T, axes>& elements) {
  return {elements.strides, elements.data, sizeof(T), false, false};
}
template <int axes>
inline LaunchOperand place(Counter<axes>& counter) {
  return {counter.strides, nullptr, 0, false, false};
}
template <class Operand>
inline LaunchOperand place_repeated(Operand& operand) {
  LaunchOperand place = cuda::place(operand);
  place.repeated = true;
  return place;
}

// Merge neighbouring axes that are contiguous in every operand. The merged axes come last, after axes of one element.
// `first` is the index of their first stride. An axis becomes the last only if operands that were uniform along the
// last axis are uniform along it too: a kernel may take one value of them for a whole pack.
template <int axes, int count>
inline void merge(Walk<axes>& walk, int first, const LaunchOperand (&places)[count]) {
  int last = axes - 1;  // end of the merged axes
  for (int axis = axes - 2; axis >= 0; --axis) {
    const Size extent = walk.extents[axis];
    if (extent == 1) continue;
    bool contiguous = true, is_one = walk.extents[last] == 1;
    for (const LaunchOperand& place : places) {
      contiguous &= place.strides[first + axis] == place.strides[first + last] * walk.extents[last];
      is_one &= place.strides[first + last] != 0 || place.strides[first + axis] == 0;
    }
    if (!contiguous && !is_one) --last;
    walk.extents[last] = contiguous && !is_one ? walk.extents[last] * extent : extent;
    if (contiguous && !is_one) continue;
    for (const LaunchOperand& place : places) place.strides[first + last] = place.strides[first + axis];
  }
  for (int axis = last - 1; axis >= 0; --axis) {
    walk.extents[axis] = 1;
    for (const LaunchOperand& place : places) place.strides[first + axis] = 0;
  }
}

inline Divider divider(Size divisor) {
  uint32_t shift = 0;
  while ((Size(1) << shift) < divisor) ++shift;
  const uint64_t factor = ((uint64_t(1) << 32) * ((uint64_t(1) << shift) - uint64_t(divisor))) / uint64_t(divisor) + 1;
  return {static_cast<uint32_t>(factor), shift};
}

// Count packs of `width` elements.
template <int axes>
inline void count_packs(Walk<axes>& walk, int width) {
  walk.packs = (walk.extents[axes - 1] + width - 1) / width;
  walk.total = walk.packs;
  for (int axis = 0; axis < axes - 1; ++axis) walk.total *= walk.extents[axis];
  for (int axis = 0; axis < axes; ++axis) {
    const Size extent = axis == axes - 1 ? walk.packs : walk.extents[axis];
    walk.dividers[axis] = extent > 0 && extent < (Size(1) << 31) ? divider(extent) : Divider{0, 0};
  }
}

// Whether every pack of `width` neighbours is contiguous and aligned, or one value: where there are outer axes, only of
// an operand that is repeated. If all axes merge into one, the last pack may have fewer neighbours.
template <int outer, int inner, int count>
inline bool has_packs(const Walk<inner>& walk, const LaunchOperand (&places)[count], int width) {
  constexpr int axes = outer + inner;
  bool is_one_run = outer == 0;
  for (int axis = 0; axis < inner - 1; ++axis) is_one_run &= walk.extents[axis] == 1;
  if (!is_one_run && walk.extents[inner - 1] % width != 0) return false;
  for (const LaunchOperand& place : places) {
    const Size step = place.strides[axes - 1];
    if (place.item_bytes == 0 || (step == 0 && (outer == 0 ? !place.stored : place.repeated))) continue;
    const Size bytes = place.item_bytes * width < 16 ? place.item_bytes * width : 16;
    if (step != 1 || reinterpret_cast<uintptr_t>(place.data) % bytes != 0) return false;
    for (int axis = 0; axis < axes - 1; ++axis)
      if (place.strides[axis] * place.item_bytes % bytes != 0) return false;
  }
  return true;
}

// Whether offsets along the inner axes fit in 32 bits.
template <int outer, int inner, int count>
inline bool fits_32_bits(const Walk<inner>& walk, const LaunchOperand (&places)[count]) {
  constexpr Size most = Size(1) << 30;
  Size total = 1;
  for (Size extent : walk.extents) {
    if (extent > most) return false;
    total *= extent;
    if (total > most) return false;
  }
  for (const LaunchOperand& place : places) {
    Size reach = 0;
    for (int axis = 0; axis < inner; ++axis) {
      const Size stride = place.strides[outer + axis], step = stride < 0 ? -stride : stride;
      if (step > most && walk.extents[axis] > 1) return false;
      reach += step * (walk.extents[axis] - 1);
      if (reach > most) return false;
    }
  }
  return true;
}

}  // namespace opwright::cuda
