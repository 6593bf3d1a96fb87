// Memory for large new tensors, kept for the next one when a tensor is freed; one pool for all libraries of a process.
//
// The C library returns large blocks to the system at once, and smaller ones if they are at the end of its heap; the
// first touch of fresh memory (a page fault and a page of zeros, every 4 KiB) costs more than a fused kernel. A large
// block in the pool is marked as free for the system to take when memory runs short (MADV_FREE), so keeping it costs
// nothing; for smaller blocks that would take longer than their kernels, so only a few are kept.  Under the address
// sanitizer there is no pool: it detects overruns only in blocks of the C library.
#pragma once
#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
#define OPWRIGHT_POOL

#include <cstddef>
#include <cstdint>

#include "opwright/forks.h"

extern "C" {
void* mmap(void* address, std::size_t length, int protection, int flags, int file, long offset) noexcept;
int munmap(void* address, std::size_t length) noexcept;
int madvise(void* address, std::size_t length, int advice) noexcept;
}

namespace opwright {

class Pool {
 public:
  static constexpr std::size_t least_bytes = 1u << 20;

  struct Block {
    char* data;
    std::size_t bytes;
  };

  // A block of at least that many bytes, beginning at a huge page; no data if the system has none.
  Block take(std::size_t bytes) {
    const std::size_t step = bytes < marked_bytes ? least_bytes / 8 : huge;
    bytes = (bytes + step - 1) / step * step;
    lock();
    for (int k = count_ - 1; k >= 0; --k) {  // the one freed last is in the caches
      if (blocks_[k].bytes != bytes) continue;
      const Block found = remove(k);
      unlock();
      return found;
    }
    unlock();
    return map(bytes);
  }

  // Keep a block, and return the oldest to the system if there are too many.
  void give(Block block) {
    const bool marked = is_marked(block);
    if (marked) madvise(block.data, block.bytes, advise_free);
    Block gone[most_blocks + 1];
    int gone_count = 0;
    lock();
    blocks_[count_++] = block;
    totals_[marked] += block.bytes;
    for (int k = 0; k < count_ && (count_ > most_blocks || totals_[marked] > most_bytes(marked));) {
      if (is_marked(blocks_[k]) == marked || count_ > most_blocks) {
        gone[gone_count++] = remove(k);
      } else {
        ++k;
      }
    }
    unlock();
    for (int k = 0; k < gone_count; ++k) munmap(gone[k].data, gone[k].bytes);
  }

  // Lock the pool around a fork, so that the child finds it consistent and unlocked.
  void lock() {
    while (__atomic_test_and_set(&locked_, __ATOMIC_ACQUIRE)) {
    }
  }
  void unlock() { __atomic_clear(&locked_, __ATOMIC_RELEASE); }

 private:
  static constexpr std::size_t huge = 2u << 20;
  static constexpr std::size_t marked_bytes = 8u << 20;
  static constexpr int most_blocks = 48;
  static constexpr int read_write = 3, private_anonymous = 0x22, advise_free = 8, advise_huge_pages = 14;

  static bool is_marked(Block block) { return block.bytes >= marked_bytes; }
  static std::size_t most_bytes(bool marked) { return marked ? 1024u << 20 : 64u << 20; }

  Block remove(int k) {
    const Block found = blocks_[k];
    totals_[is_marked(found)] -= found.bytes;
    for (--count_; k < count_; ++k) blocks_[k] = blocks_[k + 1];
    return found;
  }

  static Block map(std::size_t bytes) {
    void* const whole = mmap(nullptr, bytes + huge, read_write, private_anonymous, -1, 0);
    if (whole == reinterpret_cast<void*>(-1)) return {nullptr, 0};
    char* const begin = static_cast<char*>(whole);
    char* const data = reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(begin) + huge - 1) / huge * huge);
    if (data > begin) munmap(begin, data - begin);
    if (begin + huge > data) munmap(data + bytes, begin + huge - data);
    madvise(data, bytes, advise_huge_pages);
    return {data, bytes};
  }

  Block blocks_[most_blocks + 1];  // the oldest first
  int count_ = 0;
  std::size_t totals_[2] = {};  // of blocks that are not marked as free, and of those that are
  bool locked_ = false;
};

}  // namespace opwright
#endif
