// Memory for large new tensors, kept for the next one when a tensor is freed.
//
// The C library hands large blocks straight back to the system, and the first touch of fresh memory (a page fault and a
// page of zeros, every 4 KiB) costs more than a fused kernel does. A block that is kept is marked as free for the system
// to take whenever it runs short (MADV_FREE), so keeping it costs nobody anything.
#pragma once
#ifdef __linux__

#include <cstddef>
#include <cstdint>

extern "C" {
void* mmap(void* address, std::size_t length, int protection, int flags, int file, long offset) noexcept;
int munmap(void* address, std::size_t length) noexcept;
int madvise(void* address, std::size_t length, int advice) noexcept;
}

namespace opwright {

class Pool {
 public:
  static constexpr std::size_t least_bytes = 8u << 20;  // below, the C library keeps memory by itself
  static constexpr std::size_t kept_bytes = 1024u << 20;  // in each library

  struct Block {
    char* data;
    std::size_t bytes;
  };

  // A block of at least that many bytes, beginning at a huge page; no data if the system has none.
  Block take(std::size_t bytes) {
    bytes = (bytes + huge - 1) / huge * huge;
    lock();
    for (int k = 0; k < count_; ++k) {
      if (blocks_[k].bytes != bytes) continue;
      const Block found = blocks_[k];
      blocks_[k] = blocks_[--count_];
      total_ -= bytes;
      unlock();
      return found;
    }
    unlock();
    return map(bytes);
  }

  void give(Block block) {
    lock();
    const bool room = count_ < most_blocks && total_ + block.bytes <= kept_bytes;
    if (room) {
      madvise(block.data, block.bytes, advise_free);
      blocks_[count_++] = block;
      total_ += block.bytes;
    }
    unlock();
    if (!room) munmap(block.data, block.bytes);
  }

 private:
  static constexpr std::size_t huge = 2u << 20;
  static constexpr int most_blocks = 16;
  static constexpr int read_write = 3, private_anonymous = 0x22, advise_free = 8, advise_huge_pages = 14;

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

  void lock() {
    while (__atomic_test_and_set(&locked_, __ATOMIC_ACQUIRE)) {
    }
  }
  void unlock() { __atomic_clear(&locked_, __ATOMIC_RELEASE); }

  Block blocks_[most_blocks];
  int count_ = 0;
  std::size_t total_ = 0;
  bool locked_ = false;
};

}  // namespace opwright
#endif  // __linux__
