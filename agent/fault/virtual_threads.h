// Virtual threads (21 and later): which one this carrier is running now, and what is
// known of it.
//
// Nothing is asked of the VM and no event is needed: JavaThread::_vthread holds the thread
// that runs on the carrier, the VM sets it at each mount and unmount, and Thread.tid tells
// threads apart for good while collections move the objects. A virtual thread gets its row
// at its first recorded access.
// Context: current(): the carrier's signal handler or callback, or whoever holds its drain lock
// while it is mounted; rows: writer thread.
// Source: share/runtime/javaThread.hpp, java.base/java/lang/Thread.java, String.java.
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "agent/base/append_table.h"
#include "agent/fault/thread_pool.h"
#include "agent/heap/vm_layout.h"

namespace classaccess {

struct VirtualThread {
  uint32_t thread_id = 0;               // process-wide like ThreadState's
  bool recorded = true;                 // as `threads=` says of its name at first sight
  int64_t java_tid = 0;                 // Thread.threadId()
  uint64_t started_ns = 0;              // its first recorded access
  std::atomic<uint32_t> carrier_id{0};  // thread_id of the carrier that ran it last
  // As in ThreadState: odd while its carrier writes it.
  std::atomic<uint32_t> name_version{0};
  char name[kThreadNameBytes] = {};
};

class VirtualThreads {
 public:
  static constexpr uint32_t kCapacity = 1u << 20;

  // All outlive it. `globs` are those of `threads=`, none: all are recorded. Not in a
  // signal handler. False if the kernel refuses the memory.
  bool create(const VmLayout* layout, ThreadPool* threads, const std::string_view* globs, size_t glob_count);

  // Row of the virtual thread that `thread` runs; 0: none, it is itself.
  // Also 0, counted, if there is no room for another.
  uint32_t current(ThreadState* thread);

  const VirtualThread& row(uint32_t id) const { return rows_.row(id); }
  VirtualThread& row(uint32_t id) { return rows_.row(id); }
  // 1 to end() - 1 have been handed out.
  uint32_t end() const { return rows_.end(); }

 private:
  static constexpr uint32_t kSlots = 1u << 21;

  bool load_oop(uint64_t address, uint64_t* oop, uint64_t* bits) const;
  uint32_t mounted(ThreadState* thread);
  uint32_t find_or_add(int64_t java_tid, uint64_t oop);
  void read_name(uint64_t oop, VirtualThread* to) const;
  bool wants(std::string_view name) const;

  const VmLayout* layout_ = nullptr;
  ThreadPool* threads_ = nullptr;
  const std::string_view* globs_ = nullptr;
  size_t glob_count_ = 0;
  AppendTable<VirtualThread> rows_;
  std::atomic<uint32_t>* slots_ = nullptr;  // row ids by java_tid, open addressing
};

}  // namespace classaccess
