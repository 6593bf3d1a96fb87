// Neighbours that one thread loads, computes and stores together, with accesses of 16 bytes where they are contiguous.
//
// The launcher takes a width above 1 only if the neighbours of every operand are contiguous and aligned to a pack. Where
// points do not depend on each other, an operand may also have stride 0, and the last pack fewer elements than its
// width; it is filled with copies of the first.
#pragma once

#include "opwright/cuda/places.h"

namespace opwright {
namespace detail {

template <int bytes>
struct Word;
template <>
struct Word<1> {
  using type = unsigned char;
};
template <>
struct Word<2> {
  using type = unsigned short;
};
template <>
struct Word<4> {
  using type = unsigned int;
};
template <>
struct Word<8> {
  using type = uint2;
};
template <>
struct Word<16> {
  using type = uint4;
};

template <class T>
struct Plain {
  using type = T;
};
template <class T>
struct Plain<const T> {
  using type = T;
};

// What a register holds: one element, or several small ones.
template <class T, bool several>
struct Unit {
  using type = T;
};
template <class T>
struct Unit<T, true> {
  using type = uint32_t;
};

}  // namespace detail

template <class T, int width>
struct Pack {
  static constexpr int bytes = sizeof(T) * width, word_bytes = bytes < 16 ? bytes : 16, words = bytes / word_bytes;
  using Word = typename detail::Word<word_bytes>::type;

  T values[width];

  OPWRIGHT_INLINE T& operator[](int k) { return values[k]; }
  OPWRIGHT_INLINE const T& operator[](int k) const { return values[k]; }
};

// A pack as it lies in memory. Elements are taken out where they are used: a register holds two of a half type, and
// nothing waits for a load before that.
template <class T, int width>
struct LoadedPack {
  using Unit = typename detail::Unit<T, (sizeof(T) < 4 && sizeof(T) * width >= 4)>::type;
  static constexpr int of_unit = sizeof(Unit) / sizeof(T);

  Unit units[width / of_unit];

  OPWRIGHT_INLINE T operator[](int k) const {
    if constexpr (of_unit == 1) {
      return units[k];
    } else {
      const Unit bits = units[k / of_unit] >> (k % of_unit * 8 * static_cast<int>(sizeof(T)));
      T value;
      memcpy(&value, &bits, sizeof(T));
      return value;
    }
  }
};

// One value for all neighbours.
template <class T>
struct Repeated {
  T value;

  OPWRIGHT_INLINE T operator[](int) const { return value; }
};

namespace detail {

// Kernels never write what they read, so loads may use the read-only cache.
template <class T, int width>
OPWRIGHT_INLINE LoadedPack<T, width> load_words(const T* from) {
  using Word = typename Pack<T, width>::Word;
  LoadedPack<T, width> pack;
#pragma unroll
  for (int word = 0; word < Pack<T, width>::words; ++word) {
    const Word loaded = __ldg(reinterpret_cast<const Word*>(from) + word);
    memcpy(reinterpret_cast<char*>(pack.units) + word * sizeof(Word), &loaded, sizeof(Word));
  }
  return pack;
}

template <class T, int width>
OPWRIGHT_INLINE void store_words(T* into, const Pack<T, width>& pack) {
  using Word = typename Pack<T, width>::Word;
#pragma unroll
  for (int word = 0; word < Pack<T, width>::words; ++word) {
    Word stored;
    memcpy(&stored, reinterpret_cast<const char*>(pack.values) + word * sizeof(Word), sizeof(Word));
    reinterpret_cast<Word*>(into)[word] = stored;
  }
}

}  // namespace detail

template <int width, class T, int axes, class At>
OPWRIGHT_INLINE LoadedPack<typename detail::Plain<T>::type, width> load(const Elements<T, axes>& from, const At& at) {
  using Value = typename detail::Plain<T>::type;
  const Value* first = element_at<width>(from, at);
  if constexpr (At::outer > 0) {
    return detail::load_words<Value, width>(first);  // no branch, so that many loads are in flight
  } else {
    const bool is_one_value = width > 1 && from.strides[axes - 1] == 0;
    if (!is_one_value && at.count == width) return detail::load_words<Value, width>(first);
    Pack<Value, width> pack;
    pack[0] = detail::load_words<Value, 1>(first)[0];
#pragma unroll
    for (int k = 1; k < width; ++k)
      pack[k] = is_one_value || k >= at.count ? pack[0] : detail::load_words<Value, 1>(first + k)[0];
    LoadedPack<Value, width> loaded;
    memcpy(loaded.units, pack.values, sizeof(loaded));
    return loaded;
  }
}

// One value for all points.
template <class T, int axes, class At>
OPWRIGHT_INLINE typename detail::Plain<T>::type load_one(const Elements<T, axes>& from, const At& at) {
  return detail::load_words<typename detail::Plain<T>::type, 1>(element_at(from, at))[0];
}

// One value for a pack.
template <class T, int axes, class At>
OPWRIGHT_INLINE Repeated<typename detail::Plain<T>::type> repeat(const Elements<T, axes>& from, const At& at) {
  return {load_one(from, at)};
}

template <int width, class T, int axes, class At>
OPWRIGHT_INLINE void store(const Elements<T, axes>& into, const At& at, const Pack<T, width>& pack) {
  T* first = element_at<width>(into, at);
  if (at.count == width) return detail::store_words<T, width>(first, pack);
#pragma unroll
  for (int k = 0; k < width; ++k)
    if (k < at.count) first[k] = pack[k];
}

template <class T, int axes, class At>
OPWRIGHT_INLINE void store_one(const Elements<T, axes>& into, const At& at, T value) {
  *element_at(into, at) = value;
}

// In 64 bits, whatever the index type: values of an iota may be far larger than an index.
template <int axes, class At>
OPWRIGHT_INLINE int64_t count_one(const Counter<axes>& counter, const At& at) {
  int64_t value = counter.first;
#pragma unroll
  for (int axis = 0; axis < axes; ++axis)
    value += counter.strides[axis] * (axis < At::outer ? at.outer_index[axis] : at.inner_index[axis - At::outer]);
  return value;
}

template <int width, int axes, class At>
OPWRIGHT_INLINE Pack<int64_t, width> count(const Counter<axes>& counter, const At& at) {
  Pack<int64_t, width> pack;
#pragma unroll
  for (int k = 0; k < width; ++k) pack[k] = count_one(counter, at) + k * counter.strides[axes - 1];
  return pack;
}

}  // namespace opwright
