#include "agent/protect/twin_view.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/base/reserve.h"

namespace classaccess {

TwinView g_twin;

namespace {

constexpr uint64_t kUserEnd = 1ull << 47;
// Reserved without access on both sides of the twin. CDS archive, class space and
// code cache can lie within this distance of a compressed-oops heap.
constexpr uint64_t kMargin = 256ull << 30;

// Reserves the image of [low - margin, high + margin) under `distance`.
bool reserve_image(uint64_t low, uint64_t high, int64_t distance) {
  uint64_t from = low > kMargin ? low - kMargin : 0;
  uint64_t begin = from + static_cast<uint64_t>(distance);
  uint64_t end = high + kMargin + static_cast<uint64_t>(distance);
  if (end > kUserEnd - (1ull << 32)) return false;
  return reserve_range(begin, end);
}

}  // namespace

int TwinView::open() {
  constexpr unsigned kCloexec = 1;  // MFD_CLOEXEC
  if (fd_ < 0) fd_ = static_cast<int>(syscall(SYS_memfd_create, "classaccess-heap", kCloexec));
  return fd_ < 0 ? errno : 0;
}

void TwinView::close_fd() {
  int error = errno;
  close(fd_);
  fd_ = -1;
  distance_ = 0;
  errno = error;
}

bool TwinView::create(uint64_t low, uint64_t high) {
  if (open() != 0) return false;
  if (ftruncate(fd_, static_cast<off_t>(high - low)) != 0) {
    close_fd();
    return false;
  }
  // 2^46 away from a low heap everything that is usually mapped elsewhere (the
  // program at 0x55.., libraries and stacks at 0x7f..) has a non-canonical image;
  // a heap above it goes down by the same distance. The others are second choices.
  const int64_t kDistances[] = {1ll << 46, 3ll << 45, 5ll << 44, 1ll << 45, 1ll << 44, 3ll << 44};
  bool up = low < (1ull << 46);
  int64_t chosen = 0;
  for (int64_t distance : kDistances) {
    if (!up && static_cast<uint64_t>(distance) + kMargin > low) continue;
    if (reserve_image(low, high, up ? distance : -distance)) {
      chosen = up ? distance : -distance;
      break;
    }
  }
  void* twin = MAP_FAILED;
  if (chosen != 0) {
    twin = mmap(reinterpret_cast<void*>(low + static_cast<uint64_t>(chosen)), high - low, PROT_READ | PROT_WRITE,
                MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd_, 0);
  }
  if (twin == MAP_FAILED) {
    if (chosen == 0) errno = ENOMEM;
    close_fd();
    return false;
  }
  madvise(twin, high - low, MADV_DONTFORK);
  madvise(twin, high - low, MADV_DONTDUMP);
  low_ = low;
  distance_ = chosen;
  return true;
}

int TwinView::commit(uint64_t address, uint64_t bytes) {
  discard(address, bytes);  // a fresh anonymous mapping reads as zero
  return map_plain(address, bytes);
}

int TwinView::map_plain(uint64_t address, uint64_t bytes) {
  void* got = mmap(reinterpret_cast<void*>(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd_,
                   static_cast<off_t>(address - low_));
  if (got == MAP_FAILED) return errno;
  // A forked child must not write into the parent's objects.
  madvise(got, bytes, MADV_DONTFORK);
  return 0;
}

int TwinView::close_image(uint64_t low, uint64_t high) {
  if (!created() || low >= high) return 0;
  return mprotect(at(low), high - low, PROT_NONE) == 0 ? 0 : errno;
}

void TwinView::discard(uint64_t address, uint64_t bytes) {
  if (!created()) return;
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(address - low_),
            static_cast<off_t>(bytes));
}

}  // namespace classaccess
