// A function on a stack of its own, which can be suspended and resumed.
//
// To the thread sanitizer, each fiber is a thread, and a switch orders nothing; the address sanitizer is told which
// stack is in use.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

#if !defined(__x86_64__) || defined(OPWRIGHT_UCONTEXT)
#include <ucontext.h>
#endif

#if defined(__has_feature)
#if __has_feature(address_sanitizer) && !defined(__SANITIZE_ADDRESS__)
#define __SANITIZE_ADDRESS__
#endif
#if __has_feature(thread_sanitizer) && !defined(__SANITIZE_THREAD__)
#define __SANITIZE_THREAD__
#endif
#endif

extern "C" {
#ifdef __SANITIZE_ADDRESS__
void __sanitizer_start_switch_fiber(void** left, const void* bottom, std::size_t size);
void __sanitizer_finish_switch_fiber(void* left, const void** old_bottom, std::size_t* old_size);
void __asan_unpoison_memory_region(const volatile void* begin, std::size_t size);
#endif
#ifdef __SANITIZE_THREAD__
void* __tsan_create_fiber(unsigned flags);
void* __tsan_get_current_fiber();
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void __tsan_acquire(void* place);
void __tsan_release(void* place);
#endif
}

// Accesses of the machinery itself are not those of a kernel.
#define OPWRIGHT_UNSEEN __attribute__((no_sanitize("thread", "address")))

namespace opwright::cuda::host {

// Everything before `happens_before(p)` in one thread precedes everything after `happens_after(p)` in another.
OPWRIGHT_UNSEEN inline void happens_before([[maybe_unused]] void* place) {
#ifdef __SANITIZE_THREAD__
  __tsan_release(place);
#endif
}
OPWRIGHT_UNSEEN inline void happens_after([[maybe_unused]] void* place) {
#ifdef __SANITIZE_THREAD__
  __tsan_acquire(place);
#endif
}

#if defined(__x86_64__) && !defined(OPWRIGHT_UCONTEXT)
// A suspended context: a switch takes 20 ns, as swapcontext's system call is avoided.
struct Context {
  void* stack;
  void* code;
  void* frame;

  OPWRIGHT_UNSEEN void begin(char* bottom, std::size_t size, void (*function)()) {
    stack = bottom + size - 8;  // as if it had been called
    code = reinterpret_cast<void*>(function);
    frame = nullptr;
  }
};

// Switch contexts; returns when switched back. Saves the callee-saved registers.
__attribute__((noinline)) OPWRIGHT_UNSEEN inline void go(Context* here, const Context* there) {
  asm volatile(
      "leaq 1f(%%rip), %%rax\n\t"
      "movq %%rsp, 0(%0)\n\t"
      "movq %%rax, 8(%0)\n\t"
      "movq %%rbp, 16(%0)\n\t"
      "movq 0(%1), %%rsp\n\t"
      "movq 16(%1), %%rbp\n\t"
      "jmp *8(%1)\n\t"
      "1:\n\t"
      : "+D"(here), "+S"(there)
      :
      : "rax", "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "cc", "memory");
}
#else
struct Context {
  ucontext_t state;

  void begin(char* bottom, std::size_t size, void (*function)()) {
    getcontext(&state);
    state.uc_stack.ss_sp = bottom;
    state.uc_stack.ss_size = size;
    state.uc_link = nullptr;
    makecontext(&state, function, 0);
  }
};
inline void go(Context* here, const Context* there) { swapcontext(&here->state, &there->state); }
#endif

class Fiber {
 public:
  Fiber() = default;
  Fiber(const Fiber&) = delete;

  // Restart with a function that ends in `leave` and is then not resumed.
  void start(void (*function)()) {
    if (!stack_) create();
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(stack_, stack_bytes);  // of a run that was suspended
#endif
    context_.begin(stack_, stack_bytes, function);
  }

  // Resume it until it leaves.
  OPWRIGHT_UNSEEN void enter() {
#ifdef __SANITIZE_THREAD__
    outside_thread_ = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(thread_, no_order);
#endif
#ifdef __SANITIZE_ADDRESS__
    void* left = nullptr;
    __sanitizer_start_switch_fiber(&left, stack_, stack_bytes);
#endif
    go(&outside_, &context_);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(left, nullptr, nullptr);
#endif
  }

  // Called first by its function.
  OPWRIGHT_UNSEEN void arrive() {
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(nullptr, &outside_bottom_, &outside_bytes_);
#endif
  }

  // Its accesses precede those of others that synchronise on the same place.
  OPWRIGHT_UNSEEN void tell(void* place) { as_itself(happens_before, place); }
  OPWRIGHT_UNSEEN void learn(void* place) { as_itself(happens_after, place); }

  // Switch back to the caller.
  OPWRIGHT_UNSEEN void leave() {
#ifdef __SANITIZE_THREAD__
    __tsan_switch_to_fiber(outside_thread_, no_order);
#endif
#ifdef __SANITIZE_ADDRESS__
    void* left = nullptr;
    __sanitizer_start_switch_fiber(&left, outside_bottom_, outside_bytes_);
#endif
    go(&context_, &outside_);
#ifdef __SANITIZE_ADDRESS__
    __sanitizer_finish_switch_fiber(left, &outside_bottom_, &outside_bytes_);
#endif
  }

 private:
  OPWRIGHT_UNSEEN void as_itself([[maybe_unused]] void (*action)(void*), [[maybe_unused]] void* place) {
#ifdef __SANITIZE_THREAD__
    void* const other = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(thread_, no_order);
    action(place);
    __tsan_switch_to_fiber(other, no_order);
#endif
  }

  static constexpr std::size_t stack_bytes = 256u << 10, guard_bytes = 64u << 10;
  static constexpr unsigned no_order = 1;

  // Kept for the life of the process, as the threads of a block are.
  void create() {
    const std::size_t bytes = guard_bytes + stack_bytes;
    void* const whole =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (whole == MAP_FAILED) throw std::bad_alloc();
    mprotect(whole, guard_bytes, PROT_NONE);
    stack_ = static_cast<char*>(whole) + guard_bytes;
#ifdef __SANITIZE_THREAD__
    thread_ = __tsan_create_fiber(0);
#endif
  }

  char* stack_ = nullptr;
  Context context_, outside_;
#ifdef __SANITIZE_THREAD__
  void *thread_ = nullptr, *outside_thread_ = nullptr;
#endif
#ifdef __SANITIZE_ADDRESS__
  const void* outside_bottom_ = nullptr;
  std::size_t outside_bytes_ = 0;
#endif
};

}  // namespace opwright::cuda::host
