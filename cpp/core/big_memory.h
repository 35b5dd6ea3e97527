// An allocator for the few large arrays: they are asked for in huge pages where the system has
// them. Touching a hundred megabytes in 4 kB pages costs a tenth of a second in page faults alone,
// and random look-ups miss the TLB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace vocabshift {

inline constexpr std::size_t kHugePage = std::size_t{1} << 21;

// Asks for huge pages where whole ones fit; a refusal changes nothing.
inline void advise_huge_pages([[maybe_unused]] void* begin, [[maybe_unused]] std::size_t bytes) {
#if defined(__linux__) && defined(MADV_HUGEPAGE)
  constexpr std::uintptr_t kPage = 4096;
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const std::uintptr_t first = (address + kPage - 1) / kPage * kPage;
  if (first < address + bytes) {
    madvise(reinterpret_cast<void*>(first), (address + bytes - first) / kPage * kPage,
            MADV_HUGEPAGE);
  }
#endif
}

template <class T>
struct BigAllocator {
  using value_type = T;
  BigAllocator() = default;
  template <class U>
  BigAllocator(const BigAllocator<U>&) {}  // NOLINT: allocators convert

  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    void* memory = nullptr;
#if defined(__linux__)
    if (bytes >= kHugePage / 2) {
      memory = std::aligned_alloc(kHugePage, (bytes + kHugePage - 1) / kHugePage * kHugePage);
      if (memory) advise_huge_pages(memory, bytes);
    } else
#endif
      memory = std::malloc(bytes);
    if (!memory) throw std::bad_alloc();
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, std::size_t) { std::free(memory); }

  // Elements that are given no value have none: memory that is written next is not cleared first.
  template <class U>
  void construct(U* at) {
    ::new (static_cast<void*>(at)) U;
  }
  template <class U, class... Args>
  void construct(U* at, Args&&... args) {
    ::new (static_cast<void*>(at)) U(std::forward<Args>(args)...);
  }

  friend bool operator==(const BigAllocator&, const BigAllocator&) { return true; }
};

// The same for what threads allocate and another one frees: a large array is a mapping of its own,
// which goes back to the system at once. The allocator would keep it for the thread that is gone.
template <class T>
struct MappedAllocator : BigAllocator<T> {
  using value_type = T;
  MappedAllocator() = default;
  template <class U>
  MappedAllocator(const MappedAllocator<U>&) {}  // NOLINT: allocators convert

#if defined(__linux__)
  T* allocate(std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kHugePage / 2) return BigAllocator<T>::allocate(count);
    const std::size_t size = whole_huge_pages(bytes);
    void* const mapped =
        mmap(nullptr, size + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    // Begins with a huge page; what is before it and after the end was never touched.
    char* const begin = static_cast<char*>(mapped);
    const std::size_t before = -reinterpret_cast<std::uintptr_t>(mapped) % kHugePage;
    if (before > 0) munmap(begin, before);
    munmap(begin + before + size, kHugePage - before);
    advise_huge_pages(begin + before, bytes);
    return reinterpret_cast<T*>(begin + before);
  }
  void deallocate(T* memory, std::size_t count) {
    const std::size_t bytes = count * sizeof(T);
    if (bytes < kHugePage / 2) return BigAllocator<T>::deallocate(memory, count);
    munmap(memory, whole_huge_pages(bytes));
  }

 private:
  static std::size_t whole_huge_pages(std::size_t bytes) {
    return (bytes + kHugePage - 1) / kHugePage * kHugePage;
  }
#endif
};

// An array of zero bytes that the system hands out as it is touched.
template <class T>
class ZeroedArray {
 public:
  static_assert(std::is_trivially_copyable_v<T>);
  explicit ZeroedArray(std::size_t count) : memory_(std::calloc(count + 1, sizeof(T))) {
    if (!memory_) throw std::bad_alloc();
    const auto address = reinterpret_cast<std::uintptr_t>(memory_.get());
    begin_ = reinterpret_cast<T*>((address + alignof(T) - 1) / alignof(T) * alignof(T));
    advise_huge_pages(memory_.get(), (count + 1) * sizeof(T));
  }
  T& operator[](std::size_t i) { return begin_[i]; }
  const T& operator[](std::size_t i) const { return begin_[i]; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };
  std::unique_ptr<void, Free> memory_;
  T* begin_;
};

template <class T>
using BigVector = std::vector<T, BigAllocator<T>>;
template <class T>
using MappedVector = std::vector<T, MappedAllocator<T>>;

}  // namespace vocabshift
