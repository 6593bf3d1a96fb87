// A block of threads on one processor: each thread runs until it waits for others or ends.
//
// The order is fixed: blocks one after another; threads in ascending order in blocks with an even number, descending in
// the others, so that a missing barrier shows. Shared memory is filled with NaN before each block. A deadlock is an
// error.
#pragma once

#include <cstdint>
#include <mutex>
#include <stdexcept>
#include <string>

#include "opwright/cuda/host/fiber.h"
#include "opwright/cuda/host/vectors.h"

constexpr int warpSize = 32;
inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;

// Shared variables of kernels lie between these two; there may be none.
extern "C" __attribute__((weak, visibility("hidden"))) unsigned char __start_opwright_shared[],
    __stop_opwright_shared[];

namespace opwright::cuda::host {

constexpr unsigned most_threads = 1024, most_warps = most_threads / warpSize;
constexpr std::uint64_t poison = ~std::uint64_t{0};  // NaN as a float, a double or a half

// What one thread passes to the others of its warp.
struct Value {
  std::uint64_t words[2];
};

// Where a thread waits, and for whom.
struct Meeting {
  enum Kind { none, barrier, warp } kind;
  unsigned mask;  // the lanes that take part in a warp's exchange
  int source;     // the lane whose value is wanted; negative for a vote
  const char* file;
  int line;
};

struct Thread {
  enum State { ready, waiting, ended } state;
  uint3 index;
  Meeting meeting;
  Value brought, found;
  Fiber fiber;
};

class Block {
 public:
  // Run a kernel for all blocks of a grid.
  //   name          what error messages call it
  //   shared_bytes  its dynamic shared memory
  //   body          calls it once, with its arguments
  void run(const char* name, dim3 grid, dim3 block, std::size_t shared_bytes, void (*body)(const void*),
           const void* context) {
    const std::lock_guard<std::mutex> alone(mutex_);
    const std::uint64_t threads = std::uint64_t{block.x} * block.y * block.z;
    if (threads == 0 || threads > most_threads || std::uint64_t{grid.x} * grid.y * grid.z == 0)
      throw std::runtime_error(std::string("kernel ") + name + " is launched with blocks of " +
                               std::to_string(threads) + " threads; there are 1 to 1024, in at least one block");
    name_ = name, body_ = body, context_ = context, shared_bytes_ = shared_bytes, count_ = unsigned(threads);
    dynamic_ = new unsigned char[shared_bytes];
    gridDim = grid, blockDim = block;
    std::string failure;
    bool upwards = true;
    for (unsigned z = 0; z < grid.z && failure.empty(); ++z)
      for (unsigned y = 0; y < grid.y && failure.empty(); ++y)
        for (unsigned x = 0; x < grid.x && failure.empty(); ++x, upwards = !upwards)
          failure = run_block({x, y, z}, upwards);
    delete[] dynamic_;
    if (!failure.empty()) throw std::runtime_error(failure);
  }

  unsigned char* dynamic_shared() const { return dynamic_; }

  // Wait at a barrier; return how many threads passed a nonzero value.
  OPWRIGHT_UNSEEN unsigned meet_block(bool brought, const char* file, int line) {
    Thread& self = *current_;
    self.brought = {{brought, 0}};
    wait(self, {Meeting::barrier, 0, -1, file, line});
    return unsigned(self.found.words[0]);
  }

  // Wait for other lanes of the warp, and return the value of one of them, or the votes.
  OPWRIGHT_UNSEEN Value meet_warp(unsigned mask, int source, Value brought, const char* file, int line) {
    Thread& self = *current_;
    self.brought = brought;
    wait(self, {Meeting::warp, mask, source, file, line});
    return self.found;
  }

  // The thread's lane in its warp.
  OPWRIGHT_UNSEEN int lane() const { return int((current_ - threads_) % warpSize); }

 private:
  OPWRIGHT_UNSEEN std::string run_block(uint3 index, bool upwards) {
    blockIdx.x = index.x, blockIdx.y = index.y, blockIdx.z = index.z;
    for (unsigned char* place = __start_opwright_shared; place < __stop_opwright_shared; ++place) *place = 0xff;
    for (std::size_t k = 0; k < shared_bytes_; ++k) dynamic_[k] = 0xff;
    happens_before(&begin_);
    ended_ = 0;
    for (unsigned k = 0; k < count_; ++k) {
      threads_[k].state = Thread::ready;
      threads_[k].index = {k % blockDim.x, k / blockDim.x % blockDim.y, k / blockDim.x / blockDim.y};
      threads_[k].fiber.start(&Block::run_thread);
    }
    while (true) {
      for (unsigned k = 0; k < count_; ++k) go_on(threads_[upwards ? k : count_ - 1 - k]);
      if (ended_ < count_ && settle()) continue;
      for (unsigned k = 0; k < count_; ++k) threads_[k].fiber.tell(&end_);
      happens_after(&end_);
      return ended_ == count_ ? "" : failure();
    }
  }

  OPWRIGHT_UNSEEN void go_on(Thread& thread) {
    if (thread.state != Thread::ready) return;
    current_ = &thread;
    threadIdx.x = thread.index.x, threadIdx.y = thread.index.y, threadIdx.z = thread.index.z;
    thread.fiber.enter();
  }

  static void run_thread();

  OPWRIGHT_UNSEEN void wait(Thread& self, const Meeting& meeting) {
    self.meeting.kind = meeting.kind, self.meeting.mask = meeting.mask, self.meeting.source = meeting.source;
    self.meeting.file = meeting.file, self.meeting.line = meeting.line;
    self.state = Thread::waiting;
    self.fiber.leave();
  }

  // Complete the exchanges that all lanes have reached; false if there is none.
  OPWRIGHT_UNSEEN bool settle() {
    bool some = settle_barrier();
    for (unsigned first = 0; first < count_; first += warpSize) some |= settle_warp(first);
    return some;
  }

  OPWRIGHT_UNSEEN bool settle_barrier() {
    std::uint64_t total = 0;
    for (unsigned k = 0; k < count_; ++k) {
      if (!waits_where(threads_[k], threads_[0])) return false;
      if (threads_[k].meeting.kind != Meeting::barrier) return false;
      total += threads_[k].brought.words[0] != 0;
    }
    for (unsigned k = 0; k < count_; ++k) threads_[k].fiber.tell(&barrier_);
    for (unsigned k = 0; k < count_; ++k) {
      threads_[k].fiber.learn(&barrier_);
      threads_[k].found.words[0] = total;
      threads_[k].state = Thread::ready;
    }
    return true;
  }

  OPWRIGHT_UNSEEN bool settle_warp(unsigned first) {
    bool some = false;
    for (unsigned k = first; k < first + warpSize && k < count_; ++k) {
      if (threads_[k].state != Thread::waiting || threads_[k].meeting.kind != Meeting::warp) continue;
      if (!have_come(threads_[k], k - first, first)) continue;
      exchange(threads_[k].meeting.mask, first);
      some = true;
    }
    return some;
  }

  // Whether all lanes of an exchange, except those that have ended, have reached it.
  OPWRIGHT_UNSEEN bool have_come(const Thread& thread, unsigned lane, unsigned first) const {
    if (!(thread.meeting.mask >> lane & 1)) return false;
    for (unsigned other = 0; other < unsigned(warpSize) && first + other < count_; ++other) {
      if (!(thread.meeting.mask >> other & 1) || threads_[first + other].state == Thread::ended) continue;
      if (!waits_where(threads_[first + other], thread)) return false;
    }
    return true;
  }

  OPWRIGHT_UNSEEN void exchange(unsigned mask, unsigned first) {
    std::uint64_t brought = 0;
    for (unsigned lane = 0; lane < unsigned(warpSize); ++lane)
      if (takes_part(mask, first, lane)) {
        threads_[first + lane].fiber.tell(&warps_[first / warpSize]);
        if (threads_[first + lane].brought.words[0] != 0) brought |= 1u << lane;
      }
    for (unsigned lane = 0; lane < unsigned(warpSize); ++lane) {
      if (!takes_part(mask, first, lane)) continue;
      Thread& thread = threads_[first + lane];
      const int source = thread.meeting.source;
      const bool known = source < 0 || takes_part(mask, first, unsigned(source));
      const Thread& giver = threads_[first + (source < 0 || !known ? lane : unsigned(source))];
      thread.found.words[0] = source < 0 ? brought : known ? giver.brought.words[0] : poison;
      thread.found.words[1] = known ? giver.brought.words[1] : poison;
    }
    for (unsigned lane = 0; lane < unsigned(warpSize); ++lane)
      if (takes_part(mask, first, lane)) {
        threads_[first + lane].fiber.learn(&warps_[first / warpSize]);
        threads_[first + lane].state = Thread::ready;
      }
  }

  OPWRIGHT_UNSEEN bool takes_part(unsigned mask, unsigned first, unsigned lane) const {
    return (mask >> lane & 1) && first + lane < count_ && threads_[first + lane].state == Thread::waiting;
  }

  OPWRIGHT_UNSEEN static bool waits_where(const Thread& one, const Thread& other) {
    return one.state == Thread::waiting && other.state == Thread::waiting && one.meeting.kind == other.meeting.kind &&
           one.meeting.mask == other.meeting.mask && one.meeting.line == other.meeting.line;
  }

  // The reason for a deadlock.
  std::string failure() const {
    const Thread* waiting = nullptr;
    for (unsigned k = 0; k < count_ && !waiting; ++k)
      if (threads_[k].state == Thread::waiting) waiting = &threads_[k];
    const Thread* missing = nullptr;
    const unsigned own = unsigned(waiting - threads_) / warpSize;
    for (unsigned k = 0; k < count_ && !missing; ++k) {
      const bool called = waiting->meeting.kind == Meeting::barrier ||
                          (k / warpSize == own && waiting->meeting.mask >> k % warpSize & 1);
      if (called && !waits_where(threads_[k], *waiting)) missing = &threads_[k];
    }
    std::string text = std::string("kernel ") + name_ + ", block " + spell(blockIdx) + ": thread " +
                       spell(waiting->index) + " waits at " + spell(waiting->meeting);
    if (!missing) return text + ", whose mask does not name it";
    text += ", which thread " + spell(missing->index) + " does not come to: it ";
    return text + (missing->state == Thread::ended ? "has ended" : "waits at " + spell(missing->meeting));
  }

  static std::string spell(uint3 index) {
    return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " + std::to_string(index.z) + ")";
  }
  static std::string spell(const Meeting& meeting) {
    return std::string(meeting.kind == Meeting::barrier ? "the barrier" : "the exchange within a warp") + " of " +
           meeting.file + ":" + std::to_string(meeting.line);
  }

  std::mutex mutex_;
  const char* name_ = nullptr;
  void (*body_)(const void*) = nullptr;
  const void* context_ = nullptr;
  std::size_t shared_bytes_ = 0;
  unsigned char* dynamic_ = nullptr;
  unsigned count_ = 0, ended_ = 0;
  Thread* current_ = nullptr;
  Thread threads_[most_threads];
  char begin_ = 0, end_ = 0, barrier_ = 0, warps_[most_warps] = {};  // where the thread sanitizer learns of an order
};

// Visible, so that the libraries of a process share one, and with it the stacks of its threads.
__attribute__((visibility("default"))) inline Block block;

OPWRIGHT_UNSEEN inline void Block::run_thread() {
  Thread& self = *block.current_;
  self.fiber.arrive();
  happens_after(&block.begin_);
  block.body_(block.context_);
  self.state = Thread::ended;
  ++block.ended_;
  self.fiber.leave();
}

}  // namespace opwright::cuda::host
