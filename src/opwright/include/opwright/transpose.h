// Matrices transposed in memory: rows that lie across the lines of the caches are read, and written, line by line.
#pragma once

#include "opwright/once.h"
#include "opwright/shim.h"

namespace opwright::detail {

#ifdef OPWRIGHT_WALKS_APART
// into[c][r] = from[r][c], for rows that are so many bytes apart, of items with 1, 2, 4 or 8 bytes.
void transpose(int64_t item_bytes, const char* from, int64_t from_apart, char* into, int64_t into_apart, int64_t rows,
               int64_t columns);
#else
template <class T>
inline void transpose_one_by_one(const char* from, int64_t from_apart, char* into, int64_t into_apart, int64_t rows,
                                 int64_t columns) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      *reinterpret_cast<T*>(into + c * into_apart + r * sizeof(T)) =
          *reinterpret_cast<const T*>(from + r * from_apart + c * sizeof(T));
}

#if defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
typedef uint16_t Eight __attribute__((vector_size(16)));
typedef uint32_t Four __attribute__((vector_size(16)));
typedef uint64_t Two __attribute__((vector_size(16)));

// The elements of two vectors in turns: of their first halves, and of their second ones.
inline Eight first_halves(Eight x, Eight y) { return __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11); }
inline Eight second_halves(Eight x, Eight y) { return __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15); }
inline Four first_halves(Four x, Four y) { return __builtin_shufflevector(x, y, 0, 4, 1, 5); }
inline Four second_halves(Four x, Four y) { return __builtin_shufflevector(x, y, 2, 6, 3, 7); }
inline Two first_halves(Two x, Two y) { return __builtin_shufflevector(x, y, 0, 2); }
inline Two second_halves(Two x, Two y) { return __builtin_shufflevector(x, y, 1, 3); }

// A square of as many rows as a vector has elements.
template <class Vector, int side>
inline void transpose_square(const char* from, int64_t from_apart, char* into, int64_t into_apart) {
  Vector rows[side], turned[side];
#pragma GCC unroll 8
  for (int r = 0; r < side; ++r) __builtin_memcpy(&rows[r], from + r * from_apart, sizeof(Vector));
#pragma GCC unroll 3
  for (int step = 1; step < side; step *= 2) {
#pragma GCC unroll 4
    for (int r = 0; r < side / 2; ++r) {
      turned[2 * r] = first_halves(rows[r], rows[r + side / 2]);
      turned[2 * r + 1] = second_halves(rows[r], rows[r + side / 2]);
    }
#pragma GCC unroll 8
    for (int r = 0; r < side; ++r) rows[r] = turned[r];
  }
#pragma GCC unroll 8
  for (int c = 0; c < side; ++c) __builtin_memcpy(into + c * into_apart, &rows[c], sizeof(Vector));
}

#if defined(__AVX512F__)
// Long vectors are turned within their quarters first, then quarter by quarter: each step is one quick instruction.
typedef uint32_t Sixteen __attribute__((vector_size(64)));
typedef uint64_t Quarters __attribute__((vector_size(64)));

inline Sixteen first_halves(Sixteen x, Sixteen y) {
  return __builtin_shufflevector(x, y, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
}
inline Sixteen second_halves(Sixteen x, Sixteen y) {
  return __builtin_shufflevector(x, y, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
}
inline Quarters first_halves(Quarters x, Quarters y) {
  return __builtin_shufflevector(x, y, 0, 8, 2, 10, 4, 12, 6, 14);
}
inline Quarters second_halves(Quarters x, Quarters y) {
  return __builtin_shufflevector(x, y, 1, 9, 3, 11, 5, 13, 7, 15);
}
inline Quarters even_quarters(Quarters x, Quarters y) {
  return __builtin_shufflevector(x, y, 0, 1, 4, 5, 8, 9, 12, 13);
}
inline Quarters odd_quarters(Quarters x, Quarters y) {
  return __builtin_shufflevector(x, y, 2, 3, 6, 7, 10, 11, 14, 15);
}

// Rows of which quarter q has the elements that belong to column q · side/4 + c; c is their number modulo side/4.
template <int side>
inline void put_quarters(const Quarters* rows, char* into, int64_t into_apart) {
#pragma GCC unroll 4
  for (int c = 0; c < side / 4; ++c) {
    const Quarters x = rows[c], y = rows[side / 4 + c], z = rows[side / 2 + c], w = rows[side * 3 / 4 + c];
    const Quarters even[] = {even_quarters(x, y), even_quarters(z, w)}, odd[] = {odd_quarters(x, y), odd_quarters(z, w)};
    const Quarters columns[] = {even_quarters(even[0], even[1]), even_quarters(odd[0], odd[1]),
                                odd_quarters(even[0], even[1]), odd_quarters(odd[0], odd[1])};
#pragma GCC unroll 4
    for (int q = 0; q < 4; ++q) __builtin_memcpy(into + (q * side / 4 + c) * into_apart, &columns[q], 64);
  }
}

template <>
inline void transpose_square<Quarters, 8>(const char* from, int64_t from_apart, char* into, int64_t into_apart) {
  Quarters rows[8];
#pragma GCC unroll 4
  for (int r = 0; r < 8; r += 2) {
    Quarters x, y;
    __builtin_memcpy(&x, from + r * from_apart, 64);
    __builtin_memcpy(&y, from + (r + 1) * from_apart, 64);
    rows[r] = first_halves(x, y), rows[r + 1] = second_halves(x, y);
  }
  put_quarters<8>(rows, into, into_apart);
}

template <>
inline void transpose_square<Sixteen, 16>(const char* from, int64_t from_apart, char* into, int64_t into_apart) {
  Quarters rows[16];
#pragma GCC unroll 4
  for (int r = 0; r < 16; r += 4) {
    Sixteen some[4];
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) __builtin_memcpy(&some[k], from + (r + k) * from_apart, 64);
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
      const Quarters x = Quarters(half ? second_halves(some[0], some[1]) : first_halves(some[0], some[1]));
      const Quarters y = Quarters(half ? second_halves(some[2], some[3]) : first_halves(some[2], some[3]));
      rows[r + 2 * half] = first_halves(x, y), rows[r + 2 * half + 1] = second_halves(x, y);
    }
  }
  put_quarters<16>(rows, into, into_apart);
}
#endif

// In squares; the last ones overlap those before them. Returns false if one is too large.
template <class T, class Vector>
inline bool transpose(const char* from, int64_t from_apart, char* into, int64_t into_apart, int64_t rows,
                      int64_t columns) {
  constexpr int side = sizeof(Vector) / sizeof(T);
  if (rows < side || columns < side) return false;
  constexpr int line = 64 / sizeof(T);  // written as a whole: columns a power of two apart share a place in the cache
  for (int64_t begin = 0; begin < rows; begin += line)
    for (int64_t column = 0; column < columns; column += side)
      for (int64_t row = begin; row < rows && row < begin + line; row += side) {
        const int64_t r = row < rows - side ? row : rows - side, c = column < columns - side ? column : columns - side;
        transpose_square<Vector, side>(from + r * from_apart + c * sizeof(T), from_apart,
                                       into + c * into_apart + r * sizeof(T), into_apart);
      }
  return true;
}
#else
typedef uint16_t Eight;
typedef uint32_t Four;
typedef uint64_t Two;

template <class, class>
inline bool transpose(const char*, int64_t, char*, int64_t, int64_t, int64_t) {
  return false;
}
#endif

OPWRIGHT_ONCE void transpose(int64_t item_bytes, const char* from, int64_t from_apart, char* into, int64_t into_apart,
                             int64_t rows, int64_t columns) {
#if defined(__AVX512F__) && defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
  if (item_bytes == 4 && transpose<uint32_t, Sixteen>(from, from_apart, into, into_apart, rows, columns)) return;
  if (item_bytes == 8 && transpose<uint64_t, Quarters>(from, from_apart, into, into_apart, rows, columns)) return;
#endif
  if (item_bytes == 4 && transpose<uint32_t, Four>(from, from_apart, into, into_apart, rows, columns)) return;
  if (item_bytes == 8 && transpose<uint64_t, Two>(from, from_apart, into, into_apart, rows, columns)) return;
  if (item_bytes == 2 && transpose<uint16_t, Eight>(from, from_apart, into, into_apart, rows, columns)) return;
  if (item_bytes == 4) return transpose_one_by_one<uint32_t>(from, from_apart, into, into_apart, rows, columns);
  if (item_bytes == 8) return transpose_one_by_one<uint64_t>(from, from_apart, into, into_apart, rows, columns);
  if (item_bytes == 2) return transpose_one_by_one<uint16_t>(from, from_apart, into, into_apart, rows, columns);
  transpose_one_by_one<uint8_t>(from, from_apart, into, into_apart, rows, columns);
}
#endif

}  // namespace opwright::detail
