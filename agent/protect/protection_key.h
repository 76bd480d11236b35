// The protection key that closes the heap, and this thread's right to it (PKRU).
//
// Rights are per thread: a recorded Java thread is denied, everyone else allowed.
// The kernel puts PKRU at its default (our key denied) inside every signal handler
// and restores it from the frame at sigreturn, so a handler that wants to change
// its thread's right edits the frame.
// Context: alloc: start only; the rest: signal handler and any thread.
#pragma once

#include <cstdint>

namespace classaccess {

class ProtectionKey {
 public:
  // Empty string, or why there is no key: no CPU support, ENOSYS, EPERM, ENOSPC.
  const char* alloc();
  void release();

  // Keys for single pages (mode=pages): whoever is denied the heap's key is denied these, until given one of them.
  static constexpr uint32_t kMaxPageKeys = 13;  // one of the 15 is left to others
  // Start only. How many there are now.
  uint32_t alloc_page_keys();
  uint32_t page_keys() const { return page_key_count_; }
  int page_key(uint32_t slot) const { return page_key_[slot]; }
  // Also one of the page keys.
  bool owns(int key) const;

  bool allocated() const { return key_ >= 0; }
  int key() const { return key_; }

  // This thread, now.
  void allow_here() const;
  void deny_here() const;
  bool denied_here() const;

  // The interrupted thread, from its signal frame on. False if the frame has no
  // PKRU state (then the caller must not return expecting the change).
  bool allow_in_frame(void* ucontext) const { return set_in_frame(ucontext, false); }
  bool deny_in_frame(void* ucontext) const { return set_in_frame(ucontext, true); }
  // False also if the frame has no PKRU state.
  bool denied_in_frame(void* ucontext) const;

  // The interrupted thread's rights to the page keys, a bit each; none if the frame has no PKRU state.
  uint32_t page_rights_in_frame(void* ucontext) const;
  void set_page_rights_in_frame(void* ucontext, uint32_t rights) const;
  // Since the last call this thread has been denied all page keys, by deny_here() or deny_in_frame().
  bool take_dropped() const;

  // pkey_mprotect(2) with this key, PROT_READ|PROT_WRITE. 0 or errno.
  int tag(uint64_t address, uint64_t bytes) const;

 private:
  bool set_in_frame(void* ucontext, bool deny) const;
  char* xsave_image(void* ucontext) const;
  static uint32_t mask_of(int key) { return 3u << (2 * key); }
  uint32_t mask() const { return mask_of(key_); }
  uint32_t all() const { return mask() | page_masks_; }

  int key_ = -1;
  uint32_t page_key_count_ = 0;
  int page_key_[kMaxPageKeys] = {};
  uint32_t page_masks_ = 0;
  uint32_t frame_offset_ = 0;  // of PKRU in the XSAVE image: CPUID 0xD, sub-leaf 9
};

extern ProtectionKey g_key;

}  // namespace classaccess
