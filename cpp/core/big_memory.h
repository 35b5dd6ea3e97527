// An allocator for the few large arrays: they are asked for in huge pages where the system has
// them. Touching a hundred megabytes in 4 kB pages costs a tenth of a second in page faults alone,
// and random look-ups miss the TLB.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace vocabshift {

template <class T>
struct BigAllocator {
  using value_type = T;
  BigAllocator() = default;
  template <class U>
  BigAllocator(const BigAllocator<U>&) {}  // NOLINT: allocators convert

  static constexpr std::size_t kHugePage = std::size_t{1} << 21;

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    void* memory = nullptr;
    if (bytes < 2 * kHugePage) {
      memory = std::malloc(bytes);
    } else {
      memory = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
#if defined(__linux__) && defined(MADV_HUGEPAGE)
      if (memory) madvise(memory, bytes, MADV_HUGEPAGE);  // advice: a refusal changes nothing
#endif
    }
    if (!memory) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }

  friend bool operator==(const BigAllocator&, const BigAllocator&) { return true; }
};

template <class T>
using BigVector = std::vector<T, BigAllocator<T>>;

}  // namespace vocabshift
