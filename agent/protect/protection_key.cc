#include "agent/protect/protection_key.h"

#include <cpuid.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

namespace classaccess {

ProtectionKey g_key;

// Initial-exec: no allocation on first use.
static __thread bool t_dropped __attribute__((tls_model("initial-exec")));

namespace {

constexpr uint32_t kXfeaturePkru = 1u << 9;
constexpr uint32_t kXstateMagic1 = 0x46505853;  // FP_XSTATE_MAGIC1, arch/x86/include/uapi/asm/sigcontext.h

uint32_t read_pkru() {
  uint32_t eax, edx;
  asm volatile(".byte 0x0f,0x01,0xee" : "=a"(eax), "=d"(edx) : "c"(0));
  return eax;
}

// The clobber keeps heap accesses from moving across.
void write_pkru(uint32_t value) { asm volatile(".byte 0x0f,0x01,0xef" : : "a"(value), "c"(0), "d"(0) : "memory"); }

}  // namespace

const char* ProtectionKey::alloc() {
  uint32_t a, b, c, d;
  constexpr uint32_t kOspke = 1u << 4;
  if (__get_cpuid_count(7, 0, &a, &b, &c, &d) == 0 || (c & kOspke) == 0) {
    return "this CPU or kernel has no protection keys (no `ospke` in /proc/cpuinfo)";
  }
  if (__get_cpuid_count(0xd, 9, &a, &b, &c, &d) == 0 || b == 0) return "the CPU does not save PKRU by XSAVE";
  frame_offset_ = b;
  long key = syscall(SYS_pkey_alloc, 0ul, 0ul);
  if (key < 0) {
    switch (errno) {
      case ENOSPC: return "all 15 protection keys of this process are taken";
      case EPERM: return "pkey_alloc is not permitted (a seccomp filter?)";
      case ENOSYS: return "this kernel has no pkey_alloc";
      default: return "pkey_alloc failed";
    }
  }
  key_ = static_cast<int>(key);
  return "";
}

void ProtectionKey::release() {
  if (key_ < 0) return;
  syscall(SYS_pkey_free, key_);
  key_ = -1;
  for (uint32_t i = 0; i < page_key_count_; ++i) syscall(SYS_pkey_free, page_key_[i]);
  page_key_count_ = 0;
  page_masks_ = 0;
}

uint32_t ProtectionKey::alloc_page_keys() {
  while (key_ >= 0 && page_key_count_ < kMaxPageKeys) {
    long key = syscall(SYS_pkey_alloc, 0ul, 0ul);
    if (key < 0) break;
    page_key_[page_key_count_++] = static_cast<int>(key);
    page_masks_ |= mask_of(static_cast<int>(key));
  }
  return page_key_count_;
}

bool ProtectionKey::owns(int key) const { return key == key_ || (key > 0 && (page_masks_ & mask_of(key)) != 0); }

void ProtectionKey::allow_here() const { write_pkru(read_pkru() & ~all()); }
void ProtectionKey::deny_here() const {
  write_pkru(read_pkru() | all());
  t_dropped = true;
}
bool ProtectionKey::denied_here() const { return key_ >= 0 && (read_pkru() & mask()) != 0; }

// The frame's XSAVE image; nullptr if it does not hold PKRU.
char* ProtectionKey::xsave_image(void* context) const {
  auto* image = reinterpret_cast<char*>(static_cast<ucontext_t*>(context)->uc_mcontext.fpregs);
  if (key_ < 0 || image == nullptr) return nullptr;
  // Bytes 464..511 of the FXSAVE area are software-reserved: magic1, extended size,
  // xfeatures (arch/x86/include/uapi/asm/sigcontext.h, struct _fpx_sw_bytes).
  if (*reinterpret_cast<uint32_t*>(image + 464) != kXstateMagic1) return nullptr;
  if ((*reinterpret_cast<uint64_t*>(image + 472) & kXfeaturePkru) == 0) return nullptr;
  return image;
}

// A clear bit in xstate_bv means the component is in its init state (0): the bytes are stale.
bool ProtectionKey::set_in_frame(void* context, bool deny) const {
  char* image = xsave_image(context);
  if (image == nullptr) return false;
  auto* xstate_bv = reinterpret_cast<uint64_t*>(image + 512);
  auto* pkru = reinterpret_cast<uint32_t*>(image + frame_offset_);
  uint32_t value = (*xstate_bv & kXfeaturePkru) != 0 ? *pkru : 0;
  *pkru = deny ? (value | all()) : (value & ~all());
  *xstate_bv |= kXfeaturePkru;
  if (deny) t_dropped = true;
  return true;
}

uint32_t ProtectionKey::page_rights_in_frame(void* context) const {
  const char* image = xsave_image(context);
  if (image == nullptr) return 0;
  bool valid = (*reinterpret_cast<const uint64_t*>(image + 512) & kXfeaturePkru) != 0;
  uint32_t pkru = valid ? *reinterpret_cast<const uint32_t*>(image + frame_offset_) : 0;
  uint32_t rights = 0;
  for (uint32_t i = 0; i < page_key_count_; ++i) {
    if ((pkru & mask_of(page_key_[i])) == 0) rights |= 1u << i;
  }
  return rights;
}

void ProtectionKey::set_page_rights_in_frame(void* context, uint32_t rights) const {
  char* image = xsave_image(context);
  if (image == nullptr) return;
  auto* xstate_bv = reinterpret_cast<uint64_t*>(image + 512);
  auto* pkru = reinterpret_cast<uint32_t*>(image + frame_offset_);
  uint32_t value = ((*xstate_bv & kXfeaturePkru) != 0 ? *pkru : 0) | page_masks_;
  for (uint32_t i = 0; i < page_key_count_; ++i) {
    if ((rights >> i & 1) != 0) value &= ~mask_of(page_key_[i]);
  }
  *pkru = value;
  *xstate_bv |= kXfeaturePkru;
}

bool ProtectionKey::take_dropped() const {
  bool dropped = t_dropped;
  t_dropped = false;
  return dropped;
}

bool ProtectionKey::denied_in_frame(void* context) const {
  const char* image = xsave_image(context);
  if (image == nullptr || (*reinterpret_cast<const uint64_t*>(image + 512) & kXfeaturePkru) == 0) return false;
  return (*reinterpret_cast<const uint32_t*>(image + frame_offset_) & mask()) != 0;
}

int ProtectionKey::tag(uint64_t address, uint64_t bytes) const {
  return syscall(SYS_pkey_mprotect, address, bytes, PROT_READ | PROT_WRITE, key_) == 0 ? 0 : errno;
}

}  // namespace classaccess
