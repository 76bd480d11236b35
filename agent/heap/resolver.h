// Heap address -> object and class.
//
// The evidence, best first: the object-start bit at or below the address; for a
// store into the thread's own TLAB without such a bit, that the object is still being
// initialised; a register of the instruction that points at a plausible header.
// "Plausible" is Klass known or readable as a Klass, mark word possible, address inside.
// Context: signal handler; reads the twin view and VM metadata.
#pragma once

#include <cstdint>

#include "agent/heap/class_table.h"
#include "agent/heap/object_starts.h"
#include "agent/heap/vm_layout.h"
#include "classaccess/record.h"

namespace classaccess {

struct Resolution {
  enum Kind : uint8_t {
    kUnknown,  // no object can be told
    kObject,
    kPending,  // a store into memory whose object has no Klass word yet
  };
  Kind kind = kUnknown;
  bool mirror = false;  // a static field: class_info is the mirror's class
  bool fresh = false;   // kPending: in the thread's own TLAB, where nothing is initialised yet
  uint64_t object = 0;
  uint64_t extent = 0;  // bytes
  ClassInfo* class_info = nullptr;
};

// What the resolver remembers of a thread: its last object and its TLAB.
struct ResolverHints {
  uint64_t java_thread = 0;  // JavaThread*, 0 if unknown
  uint64_t tlab_floor = 0;   // objects below it in its TLAB were made while its key was open
  uint64_t tlab_start = 0;   // of the TLAB it stored to last
  uint64_t evacuated = 0;    // Shenandoah: the copy it made last; given up, other objects lie there
  uint64_t last_object = 0, last_end = 0, last_klass = 0;
  ClassInfo* last_class = nullptr;
  uint32_t last_epoch = 0;
};

struct ResolveQuery {
  uint64_t address = 0;
  Op op = Op::kLoad;
  bool java_code = false;                // the PC is in the code cache
  const uint64_t* candidates = nullptr;  // possible object starts from registers
  int candidate_count = 0;
  const uint64_t* registers = nullptr;  // all 16, or null: the last resort
};

class Resolver {
 public:
  void create(ClassTable* classes, ObjectStarts* starts, const VmLayout* layout) {
    classes_ = classes;
    starts_ = starts;
    layout_ = layout;
  }

  Resolution resolve(const ResolveQuery& query, ResolverHints* hints);

  // After a store of `size` bytes at `address` that resolve() called kPending or
  // kUnknown: if it wrote the Klass word (or, for an array, the length) of a new
  // object, marks its start and returns it; else kUnknown. `length_valid`: the code
  // is the VM's, which stores an array's length before its Klass.
  Resolution note_header_store(uint64_t address, uint32_t size, bool length_valid);

  // The header of `bytes` bytes at `object` was written by stores that have made such objects before: marks its
  // start. False: there is one already.
  bool note_new_object(uint64_t object, uint64_t bytes, ResolverHints* hints);

  bool is_marked(uint64_t object) const { return starts_->is_set(object); }

  // After a store to the Klass word of `before`: true if `before` was an instance already and still is one of that
  // class. Cloning copies the header too, and with it the field that shares a word with the Klass.
  bool is_rewritten(const Resolution& before) const;

  // True if a store to `address` inside `resolution` is to an array's length word:
  // the last header word that JIT code writes.
  bool is_length_store(const Resolution& resolution, uint64_t address) const;

  // Walks [from, top) object by object and marks the starts; returns where it
  // stopped: top, or the first thing that is no object. `skip` may jump over a
  // thread's open TLAB (returns the next address to parse, or the same).
  uint64_t walk(uint64_t from, uint64_t top, uint64_t (*skip)(uint64_t at, void* context), void* context);

  // The marks of [low, high) are not to be trusted.
  void forget(uint64_t low, uint64_t high) { starts_->clear_range(low, high); }

 private:
  bool accept(uint64_t object, uint64_t address, bool check_mark, Resolution* out);
  void forget_new_tlab(ResolverHints* hints);
  bool accept_below(uint64_t address, Resolution* out);
  bool accept_register(const ResolveQuery& query, Resolution* out);
  Resolution find(const ResolveQuery& query, ResolverHints* hints);
  Resolution finish(Resolution found, uint64_t address, ResolverHints* hints);
  bool in_own_tlab(uint64_t address, const ResolverHints& hints) const;

  ClassTable* classes_ = nullptr;
  ObjectStarts* starts_ = nullptr;
  const VmLayout* layout_ = nullptr;
};

}  // namespace classaccess
