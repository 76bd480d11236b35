// The second mapping of the heap, never closed: heap address + distance().
//
// The heap's pages live in a memfd; the plain view is mapped from it page range by
// page range as HotSpot commits, the twin once and whole. The surroundings of the
// twin are reserved without access, so the image of an address near the heap, and
// (by the choice of the distance) of every other mapped address, is never mapped.
//
// There may be none: twin=off, or memfd_create is refused. Then distance() is 0 and at()
// is the address itself, which the reader must have opened (fault/page_windows.h, the key).
// Context: open: Agent_OnLoad, OnAttach. create, commit, discard: the mmap interposer, any
// thread, not in a handler. distance, at: anywhere.
#pragma once

#include <cstdint>

namespace classaccess {

class TwinView {
 public:
  // The memfd; done by create() as well. 0, or the errno of a refusal.
  int open();

  // For the reserved heap range. False with errno set: no memfd, no room; then as if never
  // opened.
  bool create(uint64_t low, uint64_t high);

  // Maps [address, address + bytes) of the plain view from the memfd, zero-filled
  // as an anonymous mapping would be; not tagged. 0 or errno.
  int commit(uint64_t address, uint64_t bytes);
  // No access to the image of [low, high), which is reserved with the heap but is none: a
  // probe that meets an address there must fault as the program would. 0 or errno.
  int close_image(uint64_t low, uint64_t high);
  // Gives the memory back; the plain view's mapping is the caller's.
  void discard(uint64_t address, uint64_t bytes);

  // Maps [address, address + bytes) of the plain view where something else is mapped now,
  // with the contents that the twin has (late attach). 0 or errno.
  int map_plain(uint64_t address, uint64_t bytes);

  bool created() const { return distance_ != 0; }
  int64_t distance() const { return distance_; }
  char* at(uint64_t address) const { return reinterpret_cast<char*>(address + static_cast<uint64_t>(distance_)); }

 private:
  void close_fd();

  int fd_ = -1;
  uint64_t low_ = 0;
  int64_t distance_ = 0;
};

extern TwinView g_twin;

}  // namespace classaccess
