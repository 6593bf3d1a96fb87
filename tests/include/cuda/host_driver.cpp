// Runs one case of the tests of host execution and prints what it gives, one number a line.
#include <cstdio>
#include <functional>
#include <map>
#include <vector>

#include "opwright/cuda/host_execution.h"

#include "host_kernels.cu"  // after what makes C++ of it

using opwright::cuda::host::run;

#define RUN(kernel, ...) run(#kernel, kernel, __VA_ARGS__)

template <class T>
static std::vector<T> counted_up(std::size_t count) {
  std::vector<T> values(count);
  for (std::size_t k = 0; k < count; ++k) values[k] = T(k % 7) + 1;
  return values;
}

template <class T>
static void print(const std::vector<T>& values) {
  for (T value : values) std::printf("%.17g\n", double(value));
}

template <class T>
static std::function<void()> giving(const char* name, void (*kernel)(T*), dim3 grid, dim3 block, std::size_t results) {
  return [=] {
    std::vector<T> y(results);
    run(name, kernel, grid, block, 0, y.data());
    print(y);
  };
}
#define GIVING(kernel, grid, block, results) giving(#kernel, kernel, grid, block, results)

static const std::map<std::string, std::function<void()>> cases = {
    {"scale",
     [] {
       const auto x = counted_up<float>(1003);
       std::vector<float> y(x.size());
       RUN(scale, 3, 128, 0, scale_arguments{x.data(), y.data(), (long long)(x.size())});
       print(y);
     }},
    {"row_sums",
     [] {
       const auto x = counted_up<float>(5 * 300);
       std::vector<float> y(5);
       RUN(row_sums, 5, 256, 0, x.data(), y.data(), 300);
       print(y);
     }},
    {"column_sums",
     [] {
       const auto x = counted_up<float>(70 * 45);
       std::vector<float> y(45);
       RUN(column_sums, 2, dim3(32, 32), 0, x.data(), y.data(), 70, 45);
       print(y);
     }},
    {"reversed",
     [] {
       const auto x = counted_up<double>(96);
       std::vector<double> y(x.size());
       RUN(reversed, 2, 48, 48 * sizeof(double), x.data(), y.data());
       print(y);
     }},
    {"reversed with too little shared memory",
     [] {
       const auto x = counted_up<double>(96);
       std::vector<double> y(x.size());
       RUN(reversed, 2, 48, 47 * sizeof(double), x.data(), y.data());
     }},
    {"functions",
     [] {
       const auto x = counted_up<double>(7);
       std::vector<double> y(4 * x.size());
       RUN(functions, 1, 7, 0, x.data(), y.data());
       print(y);
     }},
    {"counted",
     [] {
       float total = 0;
       int most = -1;
       unsigned bits = 0;
       RUN(counted, 3, 64, 0, &total, &most, &bits);
       print(std::vector<double>{total, double(most), double(bits)});
     }},
    {"neighbour",
     [] {
       const auto x = counted_up<float>(128);
       std::vector<float> y(x.size());
       RUN(neighbour, 2, 64, 0, x.data(), y.data());
       print(y);
     }},
    {"exchanges", GIVING(exchanges, 1, 64, 64 * 8)},
    {"votes", GIVING(votes, 1, 65, 65)},
    {"places", GIVING(places, dim3(2, 1, 3), dim3(3, 2, 2), 72)},
    {"unwritten", GIVING(unwritten, 2, 64, 64)},
    {"too few at the barrier", GIVING(too_few_at_the_barrier, 1, 64, 64)},
    {"at different barriers", GIVING(at_different_barriers, 1, 64, 64)},
    {"half a warp", GIVING(half_a_warp, 1, 64, 64)},
    {"not in its mask", GIVING(not_in_its_mask, 1, 64, 64)},
    {"past shared memory", GIVING(past_shared_memory, 1, 32, 32)},
    {"past global memory", GIVING(past_global_memory, 1, 64, 64)},
    {"too many threads", GIVING(votes, 1, 1025, 1025)},
    {"no blocks", GIVING(votes, 0, 64, 64)},
};

int main(int, char** words) {
  try {
    cases.at(words[1])();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
