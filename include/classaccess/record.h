// The record of one access, as it travels from the trap handler to the drain.
//
// Written by the faulting thread (signal context) into its own ring, read by
// the writer thread. A record holds numbers only; names live in the tables that
// its ids point to. Everything the drain can work out later (field, element
// index, part) is left to it.
#pragma once

#include <cstdint>

namespace classaccess {

enum class Op : uint8_t { kLoad = 0, kStore = 1, kRmw = 2 };

// What the access touched; the `part` column. Decided by the drain.
enum class Part : uint8_t {
  kField = 0,
  kStatic,
  kElement,
  kLength,
  kMark,
  kKlass,
  kNullCheck,
  kInit,
  kPadding,
  kUnknown,  // object not resolved: class_id NULL
};

enum class SiteKind : uint8_t { kInterpreted = 0, kC1, kC2, kStub, kVm, kGc, kNative };

enum class RecordKind : uint8_t {
  kAccess = 0,
  // The store that writes an object's Klass word: `object`, `class_id` and
  // `extent` describe the new object. It is an access of part `init` and
  // resolves this thread's earlier kPending records inside [object, object+extent).
  kKlassStore,
  // A store into memory that no object covers yet (zeroing before the header is
  // written). The drain keeps it until a kKlassStore of the same thread covers it.
  kPending,
  // mode=pages: a page was counted. `address` is its number, `object` that of the page
  // counted before it (UINT32_MAX: none), `op` the touch; only t_ns and virtual_id beside them.
  kPage,
  // calls=: `site_id` is the number of the call context (calls/call_sink.h) that the records of this
  // stream behind it are made in. No access.
  kCallContext,
};

enum RecordFlag : uint8_t {
  kFlagNullCheck = 1,  // cmp/test [obj],reg whose flags nobody reads
  kFlagMirror = 2,     // the object is the java.lang.Class mirror of class_id: a static
  kFlagValue = 4,      // `value` is valid
  kFlagSelected = 8,   // the class matches `classes=` (kPending: not known yet, clear)
  kFlagRepeat = 16,    // stands for `value` accesses that differ in the address at most
};

struct AccessRecord {
  uint64_t t_ns;      // CLOCK_MONOTONIC
  uint64_t address;   // first byte touched
  uint64_t object;    // object start, 0 if not resolved
  uint64_t extent;    // size of the object in bytes, 0 if not resolved
  uint64_t value;     // loaded or stored bits, zero-extended, up to 8 bytes (values=on)
  uint32_t site_id;   // SiteTable
  uint32_t class_id;  // ClassTable, 0 = unknown
  uint32_t size;      // bytes touched
  uint32_t gc_id;     // number of collections that had started
  Op op;
  RecordKind kind;
  uint8_t flags;  // RecordFlag
  uint8_t reserved;
  uint32_t virtual_id;  // VirtualThreads: whose access it is; 0: of the ring's own thread
};
static_assert(sizeof(AccessRecord) == 64, "one cache line");

}  // namespace classaccess
