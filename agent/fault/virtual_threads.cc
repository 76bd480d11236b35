#include "agent/fault/virtual_threads.h"

#include <string.h>

#include <new>

#include "agent/base/clock.h"
#include "agent/base/counters.h"
#include "agent/base/reserve.h"
#include "agent/base/safe_load.h"
#include "agent/base/wake.h"
#include "agent/heap/class_pattern.h"
#include "agent/heap/object_header.h"

namespace classaccess {
namespace {

constexpr int kPauseRounds = 10000;  // of 0.1 ms
constexpr uint32_t kMaxNameChars = 4 * kThreadNameBytes;

uint32_t slot_of(int64_t java_tid, uint32_t slots) {
  return static_cast<uint32_t>(static_cast<uint64_t>(java_tid) * 0x9e3779b97f4a7c15ull >> 32) % slots;
}

// Modified UTF-8 (JVM specification 4.4.7), whole characters only.
class NameWriter {
 public:
  NameWriter(char* to, size_t bytes) : to_(to), left_(bytes - 1) {}
  ~NameWriter() { *to_ = '\0'; }

  bool put(uint16_t c) {
    if (c != 0 && c < 0x80) {
      if (!room(1)) return false;
      *to_++ = static_cast<char>(c);
    } else if (c < 0x800) {
      if (!room(2)) return false;
      *to_++ = static_cast<char>(0xc0 | c >> 6);
      *to_++ = static_cast<char>(0x80 | (c & 0x3f));
    } else {
      // Both halves of a surrogate pair or none.
      bool first_half = c >= 0xd800 && c < 0xdc00;
      if (!room(first_half ? 6 : 3)) return false;
      if (first_half) left_ += 3;
      *to_++ = static_cast<char>(0xe0 | c >> 12);
      *to_++ = static_cast<char>(0x80 | (c >> 6 & 0x3f));
      *to_++ = static_cast<char>(0x80 | (c & 0x3f));
    }
    return true;
  }

 private:
  bool room(size_t bytes) {
    if (left_ < bytes) return false;
    left_ -= bytes;
    return true;
  }
  char* to_;
  size_t left_;
};

}  // namespace

bool VirtualThreads::create(const VmLayout* layout, ThreadPool* threads, const std::string_view* globs,
                            size_t glob_count) {
  layout_ = layout;
  threads_ = threads;
  globs_ = globs;
  glob_count_ = glob_count;
  slots_ = reserve_array<std::atomic<uint32_t>>(kSlots);
  return slots_ != nullptr && rows_.create(kCapacity);
}

bool VirtualThreads::wants(std::string_view name) const {
  if (glob_count_ == 0) return true;
  for (size_t i = 0; i < glob_count_; ++i) {
    if (glob_matches(globs_[i], name, true)) return true;
  }
  return false;
}

// A reference field of a heap object; *bits as it lies in memory.
bool VirtualThreads::load_oop(uint64_t address, uint64_t* oop, uint64_t* bits) const {
  uint64_t at = twin_address(*layout_, address);
  if (layout_->compressed_oops) {
    uint32_t narrow;
    if (!safe_load(at, &narrow)) return false;
    *bits = narrow;
    *oop = narrow == 0 ? 0 : layout_->narrow_oop_base + (static_cast<uint64_t>(narrow) << layout_->narrow_oop_shift);
  } else {
    if (!safe_load(at, bits)) return false;
    *oop = *bits;
  }
  return *oop == 0 || (*oop >= layout_->heap_low && *oop < layout_->heap_high);
}

// The name of the Thread at `oop`, as it is now.
void VirtualThreads::read_name(uint64_t oop, VirtualThread* to) const {
  uint64_t string = 0, value = 0, bits;
  uint8_t coder = 0;
  int32_t length = 0;
  if (!load_oop(oop + layout_->thread_name, &string, &bits)) return;
  if (string != 0 && (!load_oop(string + layout_->string_value, &value, &bits) || value == 0 ||
                      !safe_load(twin_address(*layout_, string + layout_->string_coder), &coder) ||
                      !safe_load(twin_address(*layout_, value + layout_->array_length_offset), &length))) {
    return;
  }
  uint32_t version = to->name_version.load(std::memory_order_relaxed);
  to->name_version.store(version + 1, std::memory_order_relaxed);
  std::atomic_thread_fence(std::memory_order_release);
  {
    NameWriter name(to->name, sizeof(to->name));
    // byte[]: elements start where the VM's own reader finds them (share/oops/arrayOop.hpp).
    uint64_t at = twin_address(*layout_, value + layout_->byte_array_base);
    uint32_t chars = static_cast<uint32_t>(length < 0 ? 0 : length) >> coder;
    for (uint32_t i = 0; i < chars && i < kMaxNameChars; ++i) {
      uint8_t low = 0, high = 0;
      if (!safe_load(at + (static_cast<uint64_t>(i) << coder), &low)) break;
      if (coder != 0 && !safe_load(at + 2 * static_cast<uint64_t>(i) + 1, &high)) break;
      if (!name.put(static_cast<uint16_t>(low | high << 8))) break;
    }
  }
  to->name_version.store(version + 2, std::memory_order_release);
}

uint32_t VirtualThreads::find_or_add(int64_t java_tid, uint64_t oop) {
  uint32_t start = slot_of(java_tid, kSlots), made = 0;
  for (uint32_t i = 0; i < kSlots; ++i) {
    std::atomic<uint32_t>& slot = slots_[(start + i) % kSlots];
    uint32_t id = slot.load(std::memory_order_acquire);
    if (id == 0) {
      // One carrier runs it at a time, so nobody else is making its row.
      if (made == 0) {
        made = rows_.claim();
        if (made == 0) {
          count(g_counters.virtual_threads_full);
          return 0;
        }
        VirtualThread& row = *new (&rows_.row(made)) VirtualThread;
        row.thread_id = threads_->next_thread_id();
        row.java_tid = java_tid;
        row.started_ns = monotonic_ns();
        read_name(oop, &row);
        row.recorded = wants({row.name, strlen(row.name)});
      }
      if (slot.compare_exchange_strong(id, made, std::memory_order_acq_rel)) return made;
    }
    if (rows_.row(id).java_tid == java_tid) return id;
  }
  return 0;
}

uint32_t VirtualThreads::mounted(ThreadState* thread) {
  uint64_t handle, own_handle, oop, own;
  int64_t java_tid, own_tid;
  uint64_t java_thread = thread->hints.java_thread;
  if (!safe_load(java_thread + layout_->java_thread_vthread, &handle) || handle == 0 ||
      !safe_load(java_thread + layout_->java_thread_object, &own_handle) || own_handle == 0 ||
      !safe_load(handle, &oop) || !safe_load(own_handle, &own) || oop == own || oop == 0) {
    return 0;
  }
  if (oop < layout_->heap_low || oop >= layout_->heap_high ||
      !safe_load(twin_address(*layout_, oop + layout_->thread_tid), &java_tid)) {
    return 0;
  }
  MountedThread& last = thread->mounted;
  if (java_tid != last.java_tid) {
    // Shenandoah: the same object by its old and its new address.
    if (own != 0 && safe_load(twin_address(*layout_, own + layout_->thread_tid), &own_tid) && own_tid == java_tid) {
      return 0;
    }
    uint32_t id = find_or_add(java_tid, oop);
    if (id == 0) return 0;
    last.java_tid = java_tid;
    last.id = id;
    last.name_bits = 0;
  }
  std::atomic<uint32_t>& carrier = rows_.row(last.id).carrier_id;
  if (carrier.load(std::memory_order_relaxed) != thread->thread_id) {
    carrier.store(thread->thread_id, std::memory_order_relaxed);
  }
  // Another String: setName, or a collection moved it.
  uint64_t name, bits;
  if (load_oop(oop + layout_->thread_name, &name, &bits) && bits != last.name_bits) {
    read_name(oop, &rows_.row(last.id));
    last.name_bits = bits;
  }
  return last.id;
}

uint32_t VirtualThreads::current(ThreadState* thread) {
  if (layout_->java_thread_vthread == 0 || layout_->thread_tid == 0 || thread->hints.java_thread == 0) return 0;
  // In native code (JNI) a pause may be moving the objects: it does not wait for us, so we can.
  for (int round = 0; round < kPauseRounds; ++round) {
    uint32_t epoch = g_gc_id.load(std::memory_order_acquire);
    if (g_gc_finished.load(std::memory_order_acquire) == epoch) {
      uint32_t id = mounted(thread);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (g_gc_id.load(std::memory_order_relaxed) == epoch) return id;
    }
    raw_sleep(100000);
  }
  return 0;
}

}  // namespace classaccess
