// Fabricated VM memory: Klasses, Symbols, loader data, mirrors, objects, laid out as a VmLayout
// of our own says. The heap is readable only on its twin, so a read of the plain view faults
// (and then fails, by the handler installed here).
#pragma once

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#include <cstdint>
#include <cstring>
#include <string>

#include "agent/base/safe_load.h"
#include "agent/heap/vm_layout.h"

namespace classaccess {

inline void recover_safe_loads() {
  struct sigaction action {};
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  action.sa_sigaction = [](int, siginfo_t*, void* context) {
    auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
    uint64_t resume = safe_load_recover(static_cast<uint64_t>(registers[REG_RIP]));
    if (resume == 0) abort();
    registers[REG_RIP] = static_cast<greg_t>(resume);
  };
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

class FakeVm {
 public:
  static constexpr uint64_t kHeap = 0x700000000;  // not mapped
  static constexpr size_t kBytes = 1 << 20;

  FakeVm() : twin_(map()) {
    recover_safe_loads();
    lay_out(kHeap, kHeap + kBytes, static_cast<int64_t>(twin_ - kHeap));
  }
  // On a heap that is there already, writable at its twin. Safe loads are the caller's.
  FakeVm(uint64_t heap_low, uint64_t heap_high, int64_t twin_distance) { lay_out(heap_low, heap_high, twin_distance); }
  ~FakeVm() {
    munmap(reinterpret_cast<void*>(metadata_), kBytes);
    if (twin_ != 0) munmap(reinterpret_cast<void*>(twin_), kBytes);
  }
  FakeVm(const FakeVm&) = delete;
  FakeVm& operator=(const FakeVm&) = delete;

  template <typename T>
  void put(uint64_t address, T value) {
    std::memcpy(reinterpret_cast<void*>(address), &value, sizeof value);
  }
  template <typename T>
  void put_heap(uint64_t object, uint64_t offset, T value) {
    put(object + static_cast<uint64_t>(layout.twin_distance) + offset, value);
  }
  uint64_t take(size_t bytes) {
    uint64_t at = metadata_ + used_;
    used_ += (bytes + 15) & ~size_t{7};
    return at;
  }
  uint64_t take_heap(size_t bytes) {
    uint64_t at = layout.heap_low + heap_used_;
    heap_used_ += (bytes + 7) & ~size_t{7};
    return at;
  }
  uint64_t symbol(const std::string& text) {
    uint64_t at = take(6 + text.size());
    put(at + 4, static_cast<uint16_t>(text.size()));
    std::memcpy(reinterpret_cast<void*>(at + 6), text.data(), text.size());
    return at;
  }
  // A Klass with its mirror.
  uint64_t make_klass(const std::string& name, int32_t layout_helper, uint64_t super, uint64_t loader_data = 0) {
    uint64_t klass = take(208);
    put(klass + 8, layout_helper);
    put(klass + 24, symbol(name));
    put(klass + 120, super);
    put(klass + 152, loader_data != 0 ? loader_data : boot_loader);
    uint64_t mirror = take_heap(128), handle = take(8);
    put(handle, mirror);
    put(klass + 112, handle);
    if (class_klass != 0) put_header(mirror, class_klass);
    put_heap(mirror, 16, klass);
    put_heap(mirror, 24, int32_t{16});
    return klass;
  }
  void put_header(uint64_t object, uint64_t klass) {
    put_heap(object, 0, uint64_t{1});
    put_heap(object, 8, static_cast<uint32_t>(klass - layout.narrow_klass_base));
  }
  // Loader data of a loader object of this class.
  uint64_t make_loader(uint64_t loader_klass) {
    uint64_t object = take_heap(32), handle = take(8), data = take(64);
    put_header(object, loader_klass);
    put(handle, object);
    put(data + 8, handle);
    return data;
  }
  uint64_t mirror_of(uint64_t klass) {
    uint64_t handle, mirror;
    std::memcpy(&handle, reinterpret_cast<void*>(klass + 112), 8);
    std::memcpy(&mirror, reinterpret_cast<void*>(handle), 8);
    return mirror;
  }

  VmLayout layout;
  uint64_t boot_loader = 0, class_klass = 0;

 private:
  void lay_out(uint64_t heap_low, uint64_t heap_high, int64_t twin_distance) {
    metadata_ = map();
    VmLayout& l = layout;
    l.jdk_major = 25;
    l.collector = Collector::kSerial;
    l.compressed_class_pointers = true;
    l.narrow_klass_base = metadata_;
    l.klass_layout_helper = 8;
    l.klass_name = 24;
    l.klass_secondary_supers = 40;
    l.klass_java_mirror = 112;
    l.klass_super = 120;
    l.klass_class_loader_data = 152;
    l.cld_class_loader = 8;
    l.symbol_length = 4;
    l.symbol_body = 6;
    l.mirror_klass = 16;
    l.mirror_oop_size = 24;
    l.method_const_method = 8;
    l.method_bytes = 88;
    l.const_method_constants = 8;
    l.const_method_flags = 28;
    l.const_method_code_size = 34;
    l.const_method_name_index = 36;
    l.const_method_signature_index = 38;
    l.const_method_bytes = 56;
    l.pool_holder = 24;
    l.pool_length = 60;
    l.pool_bytes = 72;
    l.heap_low = heap_low;
    l.heap_high = heap_high;
    l.twin_distance = twin_distance;
    boot_loader = take(16);
    class_klass = make_klass("java/lang/Class", 0x79, 0);
  }

  static uint64_t map() {
    return reinterpret_cast<uint64_t>(
        mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  }
  uint64_t metadata_ = 0, twin_ = 0;
  size_t used_ = 16, heap_used_ = 0;  // the first word is nobody's: narrow klass 0 is null
};

// Layout helpers.
constexpr int32_t kIntArray = static_cast<int32_t>(0xc0100a02);     // 16-byte header, T_INT, 4-byte elements
constexpr int32_t kObjectArray = static_cast<int32_t>(0x80100c02);  // narrow oops

}  // namespace classaccess
