// The Recording's part of mode=pages.
#include <pthread.h>

#include <algorithm>
#include <fstream>

#include "agent/base/counters.h"
#include "agent/base/raw_log.h"
#include "agent/jvmti/page_contents.h"
#include "agent/jvmti/recording.h"
#include "agent/pages/open_pages.h"
#include "agent/pages/page_trap.h"
#include "agent/protect/got_patch.h"
#include "agent/protect/heap_mappings.h"
#include "agent/protect/protection_key.h"

namespace classaccess {
namespace {

// How many mappings the open pages may take: a fifth of the limit stays free, beside what is mapped now.
uint64_t mappings_to_spare() {
  uint64_t most = 65530;  // the kernel's default
  std::ifstream("/proc/sys/vm/max_map_count") >> most;
  std::ifstream maps("/proc/self/maps");
  auto now =
      static_cast<uint64_t>(std::count(std::istreambuf_iterator<char>(maps), std::istreambuf_iterator<char>(), '\n'));
  uint64_t usable = most / 5 * 4;
  return usable > now ? usable - now : 0;
}

const char* size_name(uint64_t page_bytes) { return page_bytes == 4096 ? "4k" : page_bytes == 65536 ? "64k" : "2m"; }

// libjvm's: a thread inherits its maker's rights, unseen until its ThreadStart.
using CreateThread = int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
CreateThread g_create_thread = pthread_create;
int hooked_create_thread(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* argument) {
  drop_page_rights();
  return g_create_thread(thread, attributes, body, argument);
}

}  // namespace

std::string Recording::start_pages() {
  if (options_.mode != Mode::kPages) return "";
  const uint64_t mappings = mappings_to_spare();
  PageChoice choice =
      choose_pages(options_.page_bytes, options_.window, layout_.heap_high - layout_.heap_low, mappings);
  if (choice.page_bytes != options_.page_bytes || choice.window != options_.window) {
    count(g_counters.pages_merged);
    raw_log(
        LogLevel::kWarn,
        "%u open pages of %s need more mappings than the kernel has to spare (vm.max_map_count): using %u pages of %s",
        options_.window, size_name(options_.page_bytes), choice.window, size_name(choice.page_bytes));
  }
  options_.page_bytes = choice.page_bytes;
  options_.window = choice.window;
  OpenPages::Choice opened;
  opened.page_bytes = choice.page_bytes;
  opened.window = choice.window;
  opened.keys = g_key.page_keys();
  opened.most_keyed = static_cast<uint32_t>(std::max<uint64_t>(mappings / 2, 1));
  if (!g_open_pages.create(layout_.heap_low, layout_.heap_high, opened)) {
    return "no address space for the table of pages";
  }
  g_on_uncommit = [](uint64_t low, uint64_t high) { g_open_pages.forget(low, high); };
  enable_page_trap(&access_);
  if (g_key.page_keys() != 0) {
    patch_got(layout_.libjvm_text_low, "pthread_create", reinterpret_cast<void*>(hooked_create_thread),
              reinterpret_cast<void**>(&g_create_thread));
  }
  return "";
}

void Recording::stop_pages() {
  g_open_pages.stop();
  {
    HeapMappingsLock lock;
    g_on_uncommit = nullptr;
  }
  if (g_create_thread != nullptr && layout_.libjvm_text_low != 0) {
    patch_got(layout_.libjvm_text_low, "pthread_create", reinterpret_cast<void*>(g_create_thread), nullptr);
  }
}

void Recording::name_pages() {
  if (options_.mode != Mode::kPages) return;
  PageContents contents;
  std::string problem = read_page_contents(jvmti_, layout_, &classes_, regions_, &contents);
  if (!problem.empty()) {
    raw_log(LogLevel::kWarn, "%s: the pages have no classes", problem.c_str());
    return;
  }
  writer_.put_page_contents(std::move(contents));
}

}  // namespace classaccess
