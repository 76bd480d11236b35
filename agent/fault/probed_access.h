// Accesses made by probes: from a site that traps often to a probe, from the records of a
// probe to the ring.
//
// A probe's record says address and site only. It is resolved when the buffer is drained:
// when it is full, when its thread traps (so that a thread's accesses stay in order), in
// GarbageCollectionStart before objects move, by the writer three times a second, and at the
// thread's end. While single rows are wanted each becomes a record of its own; after that
// those of one site, class and field are counted here and handed on as one record
// (kFlagRepeat).
// Context: as said at each function.
#pragma once

#include <atomic>
#include <cstdint>

#include "agent/fault/access_path.h"
#include "agent/fault/call_marks.h"
#include "agent/fault/thread_pool.h"
#include "agent/heap/object_starts.h"
#include "agent/probe/probe_sites.h"

namespace classaccess {

class ProbedAccess {
 public:
  // Before recording. False: no memory. Without it no site is probed.
  bool create(AccessPath* path, ObjectStarts* starts);
  bool enabled() const { return discard_ != 0 && !ended_.load(std::memory_order_relaxed); }
  // No site is probed while held: a late start, until every thread has its buffer.
  void hold(bool held) { held_.store(held, std::memory_order_relaxed); }
  // The recording is over and every thread has settled: the next one has no probes unless it
  // creates this anew.
  void end() { ended_.store(true, std::memory_order_relaxed); }

  // --- the owning thread, in its handler or a callback ---
  // Its cursor points into its own buffer from now on.
  void attach(ThreadState* thread);
  // What it still does goes nowhere; drains what is there.
  void retire(ThreadState* thread);
  static void forget_this_thread();
  // The carrier is about to unmount its virtual thread, or has mounted one (JVMTI event):
  // what is recorded so far was the other's.
  void mounted(ThreadState* thread, bool now);
  // Room for one record: the new cursor. null: the thread is not recorded.
  uint64_t make_room(ThreadState* thread);
  // After an access that trapped: lay a probe there if it is worth it.
  void consider(CachedInstruction* row, const CpuState& cpu);

  // --- whoever holds the thread's DrainScope ---
  // `all` only at a pause or by the owner: the last access may not have happened yet. False: stopped at an object that
  // is not known (UnknownObject::kLeave).
  bool drain(ThreadState* thread, bool all = true);
  // Head of the marks that call_marks.h puts among the records.
  uint64_t mark() const { return mark_; }
  // Hands on the counts.
  void flush(ThreadState* thread);

  // --- any thread ---
  // The recording is over, and the thread waits outside our code (settle.h): what it has of the
  // recording is taken from it, as forget_this_thread does. Its buffer may be another thread's next.
  void let_go(ThreadState* thread);
  // WriterSources::collect_probes: the writer's way to what a thread that does not trap has
  // recorded. Nothing if another thread is draining it.
  static void collect(ThreadState* thread, void (*empty_ring)(void* context, ThreadState*), void* context);
  // At a pause: all records of all threads, and what was counted of them.
  void drain_all(bool with_counts);
  // By the holder of `asker`'s DrainScope: an object is unknown that another thread's probes may
  // have made; looks for it there. True if somebody else was draining one of them: asked again
  // (`times` before), it may be known. Waits a little each time but the first.
  bool ask_others(ThreadState* asker, int times);
  // Those who ask too may be waiting for the asker: worth only so many times. And so many a drain in all, since of
  // many threads one is always draining.
  static constexpr int kAsksOfAskers = 250;
  static constexpr uint32_t kAsksOfDrain = 3000;
  // Whether to ask those once more who may be waiting for us.
  static bool may_ask(const ThreadState& asker, int times) {
    return times < kAsksOfAskers && asker.probes.asks_left + kAsksOfAskers > kAsksOfDrain;
  }
  // How often a drain has begun by taking back what ask_others had found out: then what it found may be unknown again.
  uint32_t times_unmarked() const { return times_unmarked_.load(std::memory_order_acquire); }

 private:
  // A record, with what the CPU's registers were as far as the resolver asks.
  struct Item {
    uint64_t at = 0, next = 0;  // in the buffer
    uint64_t address = 0;
    uint64_t object = 0;  // that the operand names, if it names one
    uint64_t inside = 0;  // the operand without its displacement
    uint64_t bytecode_pointer = 0, method = 0;
    uint64_t base = 0, index = 0;
    uint64_t klass_word = 0;
    uint64_t t_ns = 0;
    uint64_t key = 0;
    uint32_t size = 0;
    int32_t displacement = 0;
    SlotObject named = SlotObject::kSearched;
    bool is_store = false;
    bool countable = false;  // `klass_word` is known, and the access makes no object
  };
  // --- probed_again.cc ---
  // What is behind the record at `at`, and those that belong to it, if they are like ones before and have been
  // counted; else 0.
  uint64_t again(ThreadState* thread, uint64_t at, uint64_t end);
  uint64_t new_object_again(ThreadState* thread, CountSlot* slot, uint64_t at, uint64_t end);
  void learn_new_object(ThreadState* thread, const Item& item, const AccessRecord& record, const ClassInfo* info);
  bool klass_word(uint64_t object, uint64_t* word) const;
  bool fits(const CountSlot& slot, uint64_t object, uint64_t address) const;
  // Behind the last element of the array, from its start.
  uint64_t elements_end(const CountSlot& slot, uint64_t object) const;

  // False: left for later (UnknownObject::kLeave).
  bool take(ThreadState* thread, uint64_t at, uint64_t t_ns);
  bool take_item(ThreadState* thread, const Probe& probe, Item& item);
  static ProbeBuffer::Inside& inside_of(ThreadState* thread, uint64_t base);
  void know_inside(ThreadState* thread, Item& item, uint64_t object);
  bool counted(ThreadState* thread, Item& item, uint64_t object);
  bool count_again(ThreadState* thread, const Item& item);
  bool take_slowly(ThreadState* thread, const Probe& probe, Item& item);
  bool hit(const CountSlot& slot, const Item& item) const;
  CountSlot* install(ThreadState* thread, const Item& item, const AccessRecord& record, const Resolution& found);
  void find_owner(ThreadState* thread);
  static uint64_t end_of(const ProbeBuffer& buffer);
  // Marks the objects whose Klass the thread's records have written, until they are drained.
  void note_headers(ThreadState* thread);
  void forget_noted(ProbeBuffer& buffer);
  void hand_on(ThreadState* thread, CountSlot* slot);

  AccessPath* path_ = nullptr;
  ObjectStarts* starts_ = nullptr;
  uint64_t buffers_ = 0;  // kCapacity of them, each with its closed page
  uint64_t counts_ = 0;   // their slots
  uint64_t discard_ = 0;
  std::atomic<bool> ended_{false}, held_{false};
  std::atomic<uint32_t> times_unmarked_{0};
  uint64_t header_bytes_ = 0;  // mark word and Klass: stores there may make an object
  uint64_t mark_ = 0;
  bool whole_heap_ = true;  // every committed page is closed
};

extern ProbedAccess g_probed;

// While it lives the calling thread may record accesses of its own: the thread's drain lock is
// held, and what its probes recorded came before.
class CaughtUp {
 public:
  explicit CaughtUp(ThreadState* thread) : scope_(&thread->probes, true) {
    if (scope_.first()) g_probed.drain(thread);
    tell_own_context(thread);
  }

 private:
  DrainScope scope_;
};

}  // namespace classaccess
