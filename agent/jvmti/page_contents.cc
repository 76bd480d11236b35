#include "agent/jvmti/page_contents.h"

#include <string.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "agent/base/raw_log.h"
#include "agent/heap/object_header.h"
#include "agent/pages/open_pages.h"

namespace classaccess {
namespace {

const char* region_name(HeapSpace::Kind kind) {
  switch (kind) {
    case HeapSpace::Kind::kEden: return "eden";
    case HeapSpace::Kind::kSurvivor: return "survivor";
    case HeapSpace::Kind::kOld: return "old";
    case HeapSpace::Kind::kHumongousStart:
    case HeapSpace::Kind::kHumongousContinues: return "humongous";
    case HeapSpace::Kind::kFree: return "free";
    case HeapSpace::Kind::kArchive: return "archive";
    case HeapSpace::Kind::kOther: return "other";
  }
  return "other";
}

class Reader {
 public:
  Reader(const VmLayout& layout, ClassTable* classes, PageContents* out)
      : layout_(layout), classes_(classes), out_(out) {}

  void read(const HeapSpace& space) {
    note_region(space);
    // The object of a humongous start reaches over the regions behind it.
    if (space.kind == HeapSpace::Kind::kFree || space.kind == HeapSpace::Kind::kHumongousContinues) return;
    uint64_t at = space.bottom;
    while (at < space.top) {
      uint64_t bytes = take_object(at);
      if (bytes == 0) break;
      at += bytes;
    }
    if (at < space.top) unread_ += space.top - at;
  }

  void finish() {
    for (const auto& [key, bytes] : bytes_) {
      out_->shares.push_back({static_cast<uint32_t>(key >> 32), static_cast<uint32_t>(key), bytes});
    }
    std::sort(out_->shares.begin(), out_->shares.end(), [](const auto& a, const auto& b) {
      return a.page != b.page ? a.page < b.page : a.class_id < b.class_id;
    });
    if (unread_ != 0)
      raw_log(LogLevel::kInfo, "%lu bytes of the heap could not be parsed: their pages have fewer names", unread_);
  }

 private:
  void note_region(const HeapSpace& space) {
    if (space.bottom >= space.end) return;
    for (uint64_t page = g_open_pages.page_of(space.bottom); page <= g_open_pages.page_of(space.end - 1); ++page) {
      if (!g_open_pages.was_touched(static_cast<uint32_t>(page))) continue;
      std::string& name = out_->regions[static_cast<uint32_t>(page)];
      std::string kind = region_name(space.kind);
      if (("+" + name + "+").find("+" + kind + "+") == std::string::npos) name += (name.empty() ? "" : "+") + kind;
    }
  }

  // Its size; 0: no object is there.
  uint64_t take_object(uint64_t at) {
    uint64_t klass = klass_of(layout_, at);
    if (klass == 0) return 0;
    ClassInfo*& info = known_[klass];
    if (info == nullptr) info = classes_->find_or_add(klass);
    if (info == nullptr) return 0;
    uint64_t bytes = object_size(layout_, *info, at);
    if (bytes == 0) return 0;
    const uint64_t end = at + bytes;
    for (uint64_t from = at; from < end;) {
      uint32_t page = g_open_pages.page_of(from);
      uint64_t page_end = g_open_pages.base() + (uint64_t{page} + 1) * g_open_pages.page_bytes();
      uint64_t to = std::min(end, page_end);
      if (page < g_open_pages.pages() && g_open_pages.was_touched(page)) {
        bytes_[uint64_t{page} << 32 | info->id] += to - from;
      }
      from = to;
    }
    return bytes;
  }

  const VmLayout& layout_;
  ClassTable* classes_;
  PageContents* out_;
  std::unordered_map<uint64_t, ClassInfo*> known_;
  std::unordered_map<uint64_t, uint64_t> bytes_;  // page << 32 | class id
  uint64_t unread_ = 0;
};

struct Walk {
  const VmLayout& layout;
  ClassTable* classes;
  const HeapRegions& regions;
  PageContents* out;
  bool done = false;

  void read() {
    done = true;
    std::vector<HeapSpace> spaces(regions.count());
    spaces.resize(regions.read_spaces(spaces.data(), spaces.size()));
    Reader reader(layout, classes, out);
    for (const HeapSpace& space : spaces) reader.read(space);
    reader.finish();
  }
};

jint JNICALL on_first_object(jlong, jlong, jlong*, jint, void* user_data) {
  auto* walk = static_cast<Walk*>(user_data);
  if (!walk->done) walk->read();
  return JVMTI_VISIT_ABORT;
}

}  // namespace

std::string read_page_contents(jvmtiEnv* jvmti, const VmLayout& layout, ClassTable* classes, const HeapRegions& regions,
                               PageContents* out) {
  Walk walk{layout, classes, regions, out};
  jvmtiHeapCallbacks callbacks;
  memset(&callbacks, 0, sizeof(callbacks));
  callbacks.heap_iteration_callback = on_first_object;
  jvmtiError error = jvmti->IterateThroughHeap(0, nullptr, &callbacks, &walk);
  if (error != JVMTI_ERROR_NONE) return "the JVM refuses to walk the heap (JVMTI error " + std::to_string(error) + ")";
  return walk.done ? "" : "the JVM's heap walk met no object";
}

}  // namespace classaccess
