// Matrices transposed in memory: rows that lie across the lines of the caches are read, and written, line by line.
#pragma once

#include "opwright/shim.h"

namespace opwright::detail {

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

#if defined(__AVX512F__)
typedef uint32_t Sixteen __attribute__((vector_size(64)));

inline Sixteen first_halves(Sixteen x, Sixteen y) {
  return __builtin_shufflevector(x, y, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
inline Sixteen second_halves(Sixteen x, Sixteen y) {
  return __builtin_shufflevector(x, y, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
#endif

// A square of as many rows as a vector has elements.
template <class Vector, int side>
inline void transpose_square(const char* from, int64_t from_apart, char* into, int64_t into_apart) {
  Vector rows[side], turned[side];
#pragma GCC unroll 16
  for (int r = 0; r < side; ++r) __builtin_memcpy(&rows[r], from + r * from_apart, sizeof(Vector));
#pragma GCC unroll 4
  for (int step = 1; step < side; step *= 2) {
#pragma GCC unroll 8
    for (int r = 0; r < side / 2; ++r) {
      turned[2 * r] = first_halves(rows[r], rows[r + side / 2]);
      turned[2 * r + 1] = second_halves(rows[r], rows[r + side / 2]);
    }
#pragma GCC unroll 16
    for (int r = 0; r < side; ++r) rows[r] = turned[r];
  }
#pragma GCC unroll 16
  for (int c = 0; c < side; ++c) __builtin_memcpy(into + c * into_apart, &rows[c], sizeof(Vector));
}

template <class T, class Vector>
inline void transpose(const char* from, int64_t from_apart, char* into, int64_t into_apart, int64_t rows,
                      int64_t columns) {
  constexpr int side = sizeof(Vector) / sizeof(T);
  const int64_t whole_rows = rows / side * side, whole_columns = columns / side * side;
  constexpr int line = 64 / sizeof(T);  // written as a whole: columns a power of two apart share a place in the cache
  for (int64_t begin = 0; begin < whole_rows; begin += line)
    for (int64_t c = 0; c < whole_columns; c += side)
      for (int64_t r = begin; r < whole_rows && r < begin + line; r += side)
        transpose_square<Vector, side>(from + r * from_apart + c * sizeof(T), from_apart,
                                       into + c * into_apart + r * sizeof(T), into_apart);
  transpose_one_by_one<T>(from + whole_columns * sizeof(T), from_apart, into + whole_columns * into_apart, into_apart,
                          whole_rows, columns - whole_columns);
  transpose_one_by_one<T>(from + whole_rows * from_apart, from_apart, into + whole_rows * sizeof(T), into_apart,
                          rows - whole_rows, columns);
}

#if defined(__AVX512F__)
inline void transpose_four_bytes(const char* from, int64_t from_apart, char* into, int64_t into_apart, int64_t rows,
                                 int64_t columns) {
  const int64_t whole_rows = rows / 16 * 16, whole_columns = columns / 16 * 16;
  transpose<uint32_t, Sixteen>(from, from_apart, into, into_apart, whole_rows, whole_columns);
  transpose<uint32_t, Four>(from + whole_columns * 4, from_apart, into + whole_columns * into_apart, into_apart, rows,
                            columns - whole_columns);
  transpose<uint32_t, Four>(from + whole_rows * from_apart, from_apart, into + whole_rows * 4, into_apart,
                            rows - whole_rows, whole_columns);
}
#else
inline void transpose_four_bytes(const char* from, int64_t from_apart, char* into, int64_t into_apart, int64_t rows,
                                 int64_t columns) {
  transpose<uint32_t, Four>(from, from_apart, into, into_apart, rows, columns);
}
#endif
#else
typedef uint16_t Eight;
typedef uint64_t Two;

template <class T, class>
inline void transpose(const char* from, int64_t from_apart, char* into, int64_t into_apart, int64_t rows,
                      int64_t columns) {
  transpose_one_by_one<T>(from, from_apart, into, into_apart, rows, columns);
}

inline void transpose_four_bytes(const char* from, int64_t from_apart, char* into, int64_t into_apart, int64_t rows,
                                 int64_t columns) {
  transpose_one_by_one<uint32_t>(from, from_apart, into, into_apart, rows, columns);
}
#endif

// into[c][r] = from[r][c], for rows that are so many bytes apart, of items with 1, 2, 4 or 8 bytes.
__attribute__((noinline)) inline void transpose(int64_t item_bytes, const char* from, int64_t from_apart, char* into,
                                                int64_t into_apart, int64_t rows, int64_t columns) {
  if (item_bytes == 4) return transpose_four_bytes(from, from_apart, into, into_apart, rows, columns);
  if (item_bytes == 8) return transpose<uint64_t, Two>(from, from_apart, into, into_apart, rows, columns);
  if (item_bytes == 2) return transpose<uint16_t, Eight>(from, from_apart, into, into_apart, rows, columns);
  transpose_one_by_one<uint8_t>(from, from_apart, into, into_apart, rows, columns);
}

}  // namespace opwright::detail
