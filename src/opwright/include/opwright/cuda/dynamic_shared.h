// The shared memory that a launch asks for, as an array of any type.
#pragma once

namespace opwright {

#ifdef __CUDACC__
template <class T>
__device__ inline T* dynamic_shared() {
  extern __shared__ __align__(16) unsigned char opwright_dynamic_shared[];
  return reinterpret_cast<T*>(opwright_dynamic_shared);
}
#else
template <class T>
inline T* dynamic_shared() {
  return reinterpret_cast<T*>(cuda::host::block.dynamic_shared());
}
#endif

}  // namespace opwright
