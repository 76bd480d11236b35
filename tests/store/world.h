// A fabricated agent: the tables the writer reads, and threads that push records.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "agent/store/writer.h"

namespace classaccess {

constexpr uint64_t kHeap = 0x700000000;

class World {
 public:
  World();

  // A site with such a bci makes the writer throw when it writes the site's row.
  static constexpr int32_t kBciOutOfMemory = 60001, kBciUnknownThrow = 60002;

  WriterSources sources();
  RunInfo run();

  // `name` as in the VM; arrays by their name: element size from the descriptor.
  ClassInfo* add_class(const char* name, uint32_t instance_size = 16, ClassInfo* super = nullptr);
  // Publishes `klass`'s fields: added ones and its super classes'.
  FieldInfo* add_field(ClassInfo* klass, const char* name, const char* descriptor, uint32_t offset, uint8_t size,
                       bool is_static = false);
  void publish_fields(ClassInfo* klass);
  uint32_t add_method(ClassInfo* holder, const char* name, const char* signature);
  uint32_t add_site(SiteKind kind, uint64_t pc, uint32_t method_id = 0, int32_t bci = -1, uint8_t bytecode = 0,
                    uint64_t caller_pc = 0);
  uint32_t add_gc(uint64_t start_ns, uint64_t end_ns, const char* cause);

  ThreadState* add_thread(const char* name, ThreadChoice choice = ThreadChoice::kRecorded);
  static void name_thread(ThreadState* thread, const char* name);
  static void end_thread(ThreadState* thread);

  // An access of `size` bytes at object + offset by a thread.
  AccessRecord access(const ClassInfo* klass, uint64_t object, uint32_t offset, uint32_t size, Op op, uint32_t site = 0,
                      uint32_t extent = 0);
  // Waits while the ring is full, as the handler does.
  static void push(ThreadState* thread, const AccessRecord& record);

  ThreadPool threads;
  ClassTable classes;
  MethodTable methods;
  SiteTable sites;
  GcLog collections;
  VmLayout layout;
  uint64_t started_ns = 1000000;
  uint64_t now_ns = 1000000;  // of the next access(); moves by 100

 private:
  std::deque<FieldInfo> fields_;
  std::deque<FieldSet> sets_;
  std::deque<std::vector<const FieldInfo*>> lists_;
  uint64_t next_klass_ = 0x800000000;
};

}  // namespace classaccess
