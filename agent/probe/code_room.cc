#include "agent/probe/code_room.h"

#include <sys/mman.h>

#include "agent/base/reserve.h"

namespace classaccess {
namespace {

constexpr uint64_t kSmallWindow = 1 << 21;

}  // namespace

bool CodeRoom::create(uint64_t low_begin, uint64_t low_end, uint64_t high_begin, uint64_t high_end) {
  uint64_t low_bytes = low_end - low_begin, high_bytes = high_end - high_begin, total = low_bytes + high_bytes;
  if (total == 0) return false;
  if (write_ != nullptr) munmap(write_, low_.bytes + high_.bytes);
  write_ = nullptr;
  // Shared memory without a file (a memfd counts against RLIMIT_FSIZE), mapped a second time
  // where it runs: mremap of length 0 duplicates a shared mapping.
  void* write = mmap(nullptr, total, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (write == MAP_FAILED) return false;
  madvise(write, total, MADV_DONTDUMP);
  bool ok = true;
  auto run = [&](uint64_t at, uint64_t bytes, uint64_t offset) {
    if (!ok || bytes == 0) return;
    void* code = reinterpret_cast<void*>(at);
    ok = mremap(static_cast<char*>(write) + offset, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, code) == code &&
         mprotect(code, bytes, PROT_READ | PROT_EXEC) == 0;
    if (ok) madvise(code, bytes, MADV_DONTDUMP);
  };
  run(low_begin, low_bytes, 0);
  run(high_begin, high_bytes, low_bytes);
  if (!ok) return false;
  page_used_ = reserve_array<uint16_t>(total / kPage);
  block_page_ = reserve_array<uint16_t>(total / kBlock + 1);
  ids_ = reserve_array<std::atomic<uint32_t>>(total / kGranule);
  if (page_used_ == nullptr || block_page_ == nullptr || ids_ == nullptr) return false;
  low_ = {low_begin, low_bytes, 0};
  high_ = {high_begin, high_bytes, low_bytes};
  write_ = static_cast<uint8_t*>(write);
  return true;
}

const CodeRoom::Side* CodeRoom::side_of(uint64_t address) const {
  if (address - low_.begin < low_.bytes) return &low_;
  if (address - high_.begin < high_.bytes) return &high_;
  return nullptr;
}

uint64_t CodeRoom::offset_of(uint64_t address) const {
  const Side* side = side_of(address);
  return address - side->begin + side->offset;
}

uint8_t* CodeRoom::write_at(uint64_t address) const { return write_ + offset_of(address); }

void CodeRoom::set_id(uint64_t address, uint32_t bytes, uint32_t id) {
  uint64_t first = offset_of(address) / kGranule, last = offset_of(address + bytes - 1) / kGranule;
  for (uint64_t i = first; i <= last; ++i) ids_[i].store(id, std::memory_order_release);
}

uint32_t CodeRoom::id_at(uint64_t pc) const {
  uint32_t id = contains(pc) ? ids_[offset_of(pc) / kGranule].load(std::memory_order_acquire) : 0;
  return id != kTaken ? id : 0;
}

bool CodeRoom::fits(uint64_t address, const Window& window) {
  uint32_t displacement = static_cast<uint32_t>(address - window.from);
  if ((displacement & window.shape->fixed_mask) != window.shape->fixed) return false;
  uint32_t low_byte = displacement & 0xff;
  return !window.shape->low_byte_small || (low_byte >= 0x10 && low_byte <= 0x5f);
}

bool CodeRoom::is_free(uint64_t address, uint32_t bytes) const {
  for (uint64_t i = offset_of(address) / kGranule; i <= offset_of(address + bytes - 1) / kGranule; ++i) {
    if (ids_[i].load(std::memory_order_relaxed) != 0) return false;
  }
  return true;
}

// Starts are free to a byte: the low byte of the displacement may be given. `from`: the first
// that is worth a look. The code may reach into the next page.
uint64_t CodeRoom::in_page(uint64_t page, uint64_t from, const Window& window) {
  const Side* side = side_of(page);
  uint64_t end = page + kPage < window.high ? page + kPage : window.high;
  if (from < window.low) from = window.low;
  for (uint64_t at = from; at < end && at + window.bytes <= side->begin + side->bytes;) {
    if (!is_free(at, 1)) {
      at = (at + kGranule) & ~(kGranule - 1);
    } else if (!fits(at, window) || !is_free(at, window.bytes)) {
      ++at;
    } else {
      set_id(at, window.bytes, kTaken);
      return at;
    }
  }
  return 0;
}

uint64_t CodeRoom::in_side(const Side& side, const Window& window) {
  uint64_t low = window.low > side.begin ? window.low : side.begin;
  uint64_t end = side.begin + side.bytes;
  uint64_t high = window.high < end ? window.high : end;
  if (low >= high) return 0;
  if (high - low <= kSmallWindow) {
    for (uint64_t page = low & ~(kPage - 1); page < high; page += kPage) {
      if (uint64_t at = in_page(page, page, window)) return at;
    }
    return 0;
  }
  // A large window: whole blocks in it, each from its first page with room.
  constexpr int kMaxBlocks = 64;
  int tried = 0;
  uint64_t first = (low - side.begin + kBlock - 1) / kBlock;
  for (uint64_t block = first; side.begin + (block + 1) * kBlock <= high && tried < kMaxBlocks; ++block) {
    uint64_t begin = side.begin + block * kBlock;
    uint16_t& next = block_page_[offset_of(begin) / kBlock];
    if (next >= kBlock / kPage) continue;
    ++tried;
    for (uint64_t i = next; i < kBlock / kPage; ++i) {
      uint64_t page = begin + i * kPage;
      uint16_t& used = page_used_[offset_of(page) / kPage];
      if (uint64_t at = in_page(page, page + used, window)) {
        const uint64_t behind = at + window.bytes - page;
        used = static_cast<uint16_t>(behind < kPage ? behind : kPage);
        return at;
      }
      if (i == next && used > kPage - kMaxCode) ++next;
    }
  }
  return 0;
}

uint64_t CodeRoom::allocate(uint64_t from, const JumpShape& shape, uint32_t bytes) {
  if (bytes > kMaxCode || !created()) return 0;
  // The fixed high bytes say in which part of the 4 GB the code must start.
  uint32_t high_mask = 0;
  for (uint32_t byte = 0xff000000u; byte != 0 && (shape.fixed_mask & byte) == byte; byte >>= 8) high_mask |= byte;
  Window window;
  window.from = from;
  window.shape = &shape;
  window.bytes = bytes;
  if (high_mask == 0) {
    window.low = from - 0x7fff0000u;
    window.high = from + 0x7fff0000u;
  } else {
    int64_t displacement = static_cast<int32_t>(shape.fixed & high_mask);
    window.low = from + static_cast<uint64_t>(displacement);
    window.high = window.low + (~high_mask) + 1ull;
  }
  uint64_t at = in_side(high_, window);
  return at != 0 ? at : in_side(low_, window);
}

}  // namespace classaccess
