// The room for probes: up to 2 GB on each side of the code cache, within reach of a jump
// from any of its instructions. Reserved by the mmap interposer (protect/code_cache_room.h);
// pages are touched as probes are written.
//
// Shared memory mapped twice: written here, executed there; no page is both.
// Context: create: before recording. allocate: signal handler, one thread at a time (the
// patch lock). contains, id_at: any handler.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace classaccess {

// Which jump displacements (rel32, little-endian bytes) will do.
struct JumpShape {
  uint32_t fixed_mask = 0;      // bytes that are given ...
  uint32_t fixed = 0;           // ... and what they are
  bool low_byte_small = false;  // 0x10 to 0x5f: leaves the jump before it a usable displacement
};

class CodeRoom {
 public:
  // The two sides, in pages; a side may be empty. False: no memory. Again for another
  // recording, when no thread is inside: what was written is gone.
  bool create(uint64_t low_begin, uint64_t low_end, uint64_t high_begin, uint64_t high_end);
  bool created() const { return write_ != nullptr; }

  // An address for `bytes` of code (at most kMaxCode) that a jump ending at `from` reaches with
  // such a displacement; 0 if there is none. It belongs to no probe yet.
  uint64_t allocate(uint64_t from, const JumpShape& shape, uint32_t bytes);

  // Where the code that runs at `address` is written.
  uint8_t* write_at(uint64_t address) const;

  bool contains(uint64_t pc) const { return pc - low_.begin < low_.bytes || pc - high_.begin < high_.bytes; }

  // Marks [address, address + bytes) as probe `id`; which probe holds pc, 0 if none.
  void set_id(uint64_t address, uint32_t bytes, uint32_t id);
  uint32_t id_at(uint64_t pc) const;

  static constexpr uint32_t kMaxCode = 256;  // kMaxProbeCode

 private:
  static constexpr uint64_t kPage = 4096;
  static constexpr uint64_t kBlock = 1 << 20;  // a bump pointer each
  static constexpr uint64_t kGranule = 16;     // two probes never share one
  static constexpr uint32_t kTaken = ~0u;

  struct Side {
    uint64_t begin = 0, bytes = 0;
    uint64_t offset = 0;  // in the shared memory
  };
  struct Window {
    uint64_t low = 0, high = 0;  // [low, high): where the code may start
    uint64_t from = 0;
    const JumpShape* shape = nullptr;
    uint32_t bytes = 0;
  };

  const Side* side_of(uint64_t address) const;
  uint64_t offset_of(uint64_t address) const;
  uint64_t in_side(const Side& side, const Window& window);
  uint64_t in_page(uint64_t page, uint64_t from, const Window& window);
  bool is_free(uint64_t address, uint32_t bytes) const;
  static bool fits(uint64_t address, const Window& window);

  Side low_, high_;
  uint8_t* write_ = nullptr;
  uint16_t* page_used_ = nullptr;         // up to where each page was filled in order
  uint16_t* block_page_ = nullptr;        // first page of each block that is worth a look
  std::atomic<uint32_t>* ids_ = nullptr;  // a granule each; kTaken: of no probe
};

}  // namespace classaccess
