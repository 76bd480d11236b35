#include "agent/store/tally.h"

#include <algorithm>

namespace classaccess {
namespace {

uint64_t mix(const TallyKey& key) {
  uint64_t h = (static_cast<uint64_t>(key.site_id) << 32 | key.class_id) * 0x9E3779B97F4A7C15u;
  h ^= (static_cast<uint64_t>(key.field_id) << 32 | key.thread_id) * 0xC2B2AE3D27D4EB4Fu;
  h ^= (static_cast<uint64_t>(key.part) << 8 | static_cast<uint64_t>(key.op)) * 0x165667B19E3779F9u;
  h ^= h >> 29;
  h *= 0xBF58476D1CE4E5B9u;
  return h ^ h >> 32;
}

}  // namespace

Tally::Tally() : slots_(4096, 0) {}

uint32_t Tally::find_or_add(const TallyKey& key, bool* is_new) {
  const uint64_t hash = mix(key), tag = hash >> 32;
  const size_t mask = slots_.size() - 1;
  size_t i = hash & mask;
  for (; slots_[i] != 0; i = (i + 1) & mask) {
    uint32_t id = static_cast<uint32_t>(slots_[i]);
    if (slots_[i] >> 32 == tag && entries_[id - 1].key == key) {
      *is_new = false;
      return id;
    }
  }
  *is_new = true;
  entries_.emplace_back();
  entries_.back().key = key;
  uint32_t id = static_cast<uint32_t>(entries_.size());
  slots_[i] = tag << 32 | id;
  if (entries_.size() * 2 > slots_.size()) grow();
  return id;
}

void Tally::grow() {
  std::vector<uint64_t> bigger(slots_.size() * 2, 0);
  const size_t mask = bigger.size() - 1;
  for (uint32_t id = 1; id <= entries_.size(); ++id) {
    const uint64_t hash = mix(entries_[id - 1].key);
    size_t i = hash & mask;
    while (bigger[i] != 0) i = (i + 1) & mask;
    bigger[i] = hash >> 32 << 32 | id;
  }
  slots_.swap(bigger);
}

void Tally::sort_dirty() { std::sort(dirty_.begin(), dirty_.end()); }

bool Tally::prepare(Database& database) {
  return insert_.prepare(database,
                         "INSERT INTO tally(id, thread_id, site_id, class_id, field_id, part, op, at, size, base, "
                         "shift, count, bytes) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?)") &&
         update_.prepare(database, "UPDATE tally SET count = ?, bytes = ? WHERE id = ?");
}

void Tally::finalize() {
  insert_.finalize();
  update_.finalize();
}

bool Tally::write(uint32_t id, TallyEntry* e) {
  e->dirty = false;
  if (e->stored) {
    update_.bind(1, static_cast<int64_t>(e->count));
    update_.bind(2, static_cast<int64_t>(e->bytes));
    update_.bind(3, id);
    return update_.run();
  }
  e->stored = true;
  const char* part = part_name(e->key.part);
  insert_.bind(1, id);
  insert_.bind(2, e->key.thread_id);
  insert_.bind_or_null(3, e->key.site_id, e->key.site_id != 0);
  insert_.bind_or_null(4, e->key.class_id, e->key.class_id != 0);
  insert_.bind_or_null(5, e->key.field_id, e->key.field_id != 0);
  insert_.bind_text_or_null(6, part != nullptr ? part : "");
  insert_.bind_text(7, op_name(e->key.op));
  insert_.bind(8, e->at);
  insert_.bind(9, e->size);
  insert_.bind_or_null(10, e->base, e->base >= 0);
  insert_.bind_or_null(11, e->shift, e->shift >= 0);
  insert_.bind(12, static_cast<int64_t>(e->count));
  insert_.bind(13, static_cast<int64_t>(e->bytes));
  return insert_.run();
}

const char* part_name(Part part) {
  switch (part) {
    case Part::kField: return "field";
    case Part::kStatic: return "static";
    case Part::kElement: return "element";
    case Part::kLength: return "length";
    case Part::kMark: return "mark";
    case Part::kKlass: return "klass";
    case Part::kNullCheck: return "null_check";
    case Part::kInit: return "init";
    case Part::kPadding: return "padding";
    case Part::kUnknown: break;
  }
  return nullptr;
}

const char* op_name(Op op) { return op == Op::kLoad ? "load" : op == Op::kStore ? "store" : "rmw"; }

}  // namespace classaccess
