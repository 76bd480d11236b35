#include "agent/jvmti/library_scan.h"

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include "agent/base/counters.h"
#include "agent/fault/library_texts.h"

namespace classaccess {
namespace {

struct Scan {
  LibraryTexts::Range ranges[LibraryTexts::kMax];
  int count = 0;
  uint64_t left_out = 0;
};

// Loads and closings together: neither number alone says that the list is the same.
int count_changes(dl_phdr_info* info, size_t, void* changes) {
  *static_cast<uint64_t*>(changes) = info->dlpi_adds + info->dlpi_subs;
  return 1;
}

bool holds(const dl_phdr_info* info, uint64_t address) {
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type == PT_LOAD && address - (info->dlpi_addr + segment.p_vaddr) < segment.p_memsz) return true;
  }
  return false;
}

int add_text(dl_phdr_info* info, size_t, void* context) {
  auto* scan = static_cast<Scan*>(context);
  const uint64_t left_out[] = {reinterpret_cast<uint64_t>(&scan_libraries), getauxval(AT_SYSINFO_EHDR),
                               getauxval(AT_BASE)};
  for (uint64_t address : left_out) {
    if (address != 0 && holds(info, address)) return 0;
  }
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0 || (segment.p_flags & PF_W) != 0) continue;
    uint64_t low = info->dlpi_addr + segment.p_vaddr;
    if (scan->count == LibraryTexts::kMax) {
      ++scan->left_out;
      continue;
    }
    scan->ranges[scan->count++] = {low, low + segment.p_memsz};
  }
  return 0;
}

}  // namespace

void scan_libraries() {
  static uint64_t last = 0;
  uint64_t changes = 0;
  dl_iterate_phdr(count_changes, &changes);
  if (changes == last) return;
  last = changes;
  static Scan scan;
  scan.count = 0;
  scan.left_out = 0;
  dl_iterate_phdr(add_text, &scan);
  g_library_texts.publish(scan.ranges, scan.count);
  g_counters.library_texts_left_out.store(scan.left_out, std::memory_order_relaxed);
}

}  // namespace classaccess
