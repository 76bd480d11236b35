#include "agent/calls/native/branches_inside.h"

#include <string.h>

#include <algorithm>

#include "agent/base/safe_load.h"
#include "agent/calls/native/prologue.h"
#include "agent/calls/native_hooks.h"

// libgcc's: the frame description entry that covers an address.
struct dwarf_eh_bases {
  void *text, *data, *function;
};
extern "C" const uint8_t* _Unwind_Find_FDE(void* pc, dwarf_eh_bases* bases);

namespace classaccess {
namespace {

constexpr uint64_t kPage = 4096;

// Where the function that covers `at` begins; 0: not known.
uint64_t function_start(uint64_t at) {
  dwarf_eh_bases bases = {};
  if (_Unwind_Find_FDE(reinterpret_cast<void*>(at), &bases) == nullptr) return 0;
  return reinterpret_cast<uint64_t>(bases.function);
}

// Bytes in the middle of patches, as bits over [low, high), by their offset.
class MiddleBytes {
 public:
  MiddleBytes(uint64_t low, uint64_t high, const std::vector<uint64_t>& patches)
      : size_(high - low), bits_((size_ + 63) / 64) {
    for (uint64_t patch : patches) {
      for (uint64_t i = 1; i < kJumpBytes; ++i) {
        const uint64_t offset = patch + i - low;
        if (offset < size_) bits_[offset / 64] |= uint64_t{1} << offset % 64;
      }
    }
  }
  bool has(uint64_t offset) const { return offset < size_ && (bits_[offset / 64] >> offset % 64 & 1) != 0; }

 private:
  uint64_t size_;
  std::vector<uint64_t> bits_;
};

// What an opcode's first byte may begin.
enum class Branch : uint8_t { kNone, kShort, kNear, kTwoBytes };
struct BranchOf {
  Branch kind[256] = {};
  constexpr BranchOf() {
    for (int op = 0x70; op < 0x80; ++op) kind[op] = Branch::kShort;
    for (int op : {0xe0, 0xe1, 0xe2, 0xe3, 0xeb}) kind[op] = Branch::kShort;
    for (int op : {0xe8, 0xe9}) kind[op] = Branch::kNear;
    kind[0x0f] = Branch::kTwoBytes;
  }
};
constexpr BranchOf kBranchOf;

// The code as it is in memory; what cannot be read is zero.
std::vector<uint8_t> code_between(uint64_t low, uint64_t high) {
  constexpr uint64_t kBehind = 6;  // room for a displacement
  std::vector<uint8_t> code(high - low + kBehind);
  for (uint64_t at = low; at < high;) {
    const uint64_t end = std::min(high, (at / kPage + 1) * kPage);
    (void)safe_copy(code.data() + (at - low), at, end - at);
    at = end;
  }
  return code;
}

}  // namespace

std::vector<uint64_t> entered_in_the_middle(uint64_t low, uint64_t high, std::vector<uint64_t> patches) {
  if (patches.empty() || low >= high) return {};
  std::sort(patches.begin(), patches.end());
  const MiddleBytes middle(low, high, patches);
  const std::vector<uint8_t> code = code_between(low, high);
  std::vector<uint64_t> found;
  // Bytes that look like a branch there. Whether they are one is asked only then.
  auto look = [&](uint64_t at, uint64_t target) {
    const uint64_t patch = *std::prev(std::upper_bound(patches.begin(), patches.end(), target));
    if (!found.empty() && found.back() == patch) return;
    const uint64_t start = function_start(at);
    // Within the function itself it has been looked for.
    if (start != 0 && (at - patch < kJumpBytes || !branches_at(start, at, patch + 1, patch + kJumpBytes))) return;
    found.push_back(patch);
  };
  const uint8_t* bytes = code.data();
  const uint64_t size = code.size(), last = size - 6;
  for (uint64_t i = 0; size >= 6 && i <= last; ++i) {
    switch (kBranchOf.kind[bytes[i]]) {
      case Branch::kShort: {
        const uint64_t to = i + 2 + static_cast<uint64_t>(static_cast<int8_t>(bytes[i + 1]));
        if (middle.has(to)) look(low + i, low + to);
        break;
      }
      case Branch::kTwoBytes:
        if ((bytes[i + 1] & 0xf0) != 0x80) break;
        [[fallthrough]];
      case Branch::kNear: {
        const uint64_t at = i + (bytes[i] == 0x0f ? 2 : 1);
        int32_t distance;
        memcpy(&distance, bytes + at, 4);
        const uint64_t to = at + 4 + static_cast<uint64_t>(static_cast<int64_t>(distance));
        if (middle.has(to)) look(low + i, low + to);
        break;
      }
      case Branch::kNone: break;
    }
  }
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

uint64_t size_by_unwind_table(uint64_t entry) {
  dwarf_eh_bases bases = {};
  const uint8_t* fde = _Unwind_Find_FDE(reinterpret_cast<void*>(entry), &bases);
  if (fde == nullptr || reinterpret_cast<uint64_t>(bases.function) != entry) return 0;
  // Length, distance to its CIE, start, size. The CIE: length, id, version, augmentation, two alignments, the return
  // address's register, length of augmentation data, encoding of addresses. (Linux Standard Base, .eh_frame)
  int32_t to_cie;
  memcpy(&to_cie, fde + 4, 4);
  const uint8_t* cie = fde + 4 - to_cie;
  constexpr uint8_t kPcRelative32 = 0x1b;
  if (memcmp(cie + 8, "\x01zR", 4) != 0 || cie[12] >= 0x80 || cie[13] >= 0x80 || cie[14] >= 0x80 ||
      cie[16] != kPcRelative32) {
    return 0;
  }
  uint32_t size;
  memcpy(&size, fde + 12, 4);
  return size;
}

}  // namespace classaccess
