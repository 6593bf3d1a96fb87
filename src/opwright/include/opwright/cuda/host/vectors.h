// CUDA's built-in vector types, for kernels that run on the host.
#pragma once

#define OPWRIGHT_VECTORS(T, name, alignment_of_2, alignment_of_4)       \
  struct name##1 { T x; };                                              \
  struct alignas(alignment_of_2) name##2 { T x, y; };                   \
  struct name##3 { T x, y, z; };                                        \
  struct alignas(alignment_of_4) name##4 { T x, y, z, w; };             \
  constexpr name##2 make_##name##2(T x, T y) { return {x, y}; }         \
  constexpr name##3 make_##name##3(T x, T y, T z) { return {x, y, z}; } \
  constexpr name##4 make_##name##4(T x, T y, T z, T w) { return {x, y, z, w}; }

OPWRIGHT_VECTORS(signed char, char, 2, 4)
OPWRIGHT_VECTORS(unsigned char, uchar, 2, 4)
OPWRIGHT_VECTORS(short, short, 4, 8)
OPWRIGHT_VECTORS(unsigned short, ushort, 4, 8)
OPWRIGHT_VECTORS(unsigned, uint, 8, 16)
OPWRIGHT_VECTORS(int, int, 8, 16)
OPWRIGHT_VECTORS(long long, longlong, 16, 16)
OPWRIGHT_VECTORS(unsigned long long, ulonglong, 16, 16)
OPWRIGHT_VECTORS(float, float, 8, 16)
OPWRIGHT_VECTORS(double, double, 16, 16)
#undef OPWRIGHT_VECTORS

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
};
