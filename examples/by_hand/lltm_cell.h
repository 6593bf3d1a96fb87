// The element-wise part of LLTM for one element, forward and backward.
//     c = c₀ + elu(g)·σ(i)        h = tanh(c)·σ(o)
#pragma once

#include "opwright/vmath.h"

template <class T>
OPWRIGHT_INLINE T elu(T x) {
  return x > 0 ? x : opwright::expm1(x);
}

template <class T>
OPWRIGHT_INLINE void cell_forward(T i, T o, T g, T old_cell, T& hidden, T& cell) {
  cell = old_cell + elu(g) * opwright::sigmoid(i);
  hidden = opwright::tanh(cell) * opwright::sigmoid(o);
}

template <class T>
OPWRIGHT_INLINE void cell_backward(T i, T o, T g, T cell, T grad_hidden, T grad_cell, T& grad_i, T& grad_o, T& grad_g,
                          T& grad_old_cell) {
  const T in = opwright::sigmoid(i), out = opwright::sigmoid(o), candidate = elu(g), bent = opwright::tanh(cell);
  const T moved = grad_cell + grad_hidden * out * (1 - bent * bent);
  grad_o = grad_hidden * bent * out * (1 - out);
  grad_i = moved * candidate * in * (1 - in);
  grad_g = moved * in * (g > 0 ? T(1) : candidate + 1);
  grad_old_cell = moved;
}
