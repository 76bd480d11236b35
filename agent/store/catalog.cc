#include "agent/store/catalog.h"

#include <string.h>

#include "agent/base/raw_log.h"
#include "agent/store/classify.h"
#include "agent/store/collector_work.h"
#include "agent/store/java_names.h"
#include "agent/store/swap_stores.h"

namespace classaccess {
namespace {

const char* site_kind_name(SiteKind kind) {
  switch (kind) {
    case SiteKind::kInterpreted: return "interpreted";
    case SiteKind::kC1: return "c1";
    case SiteKind::kC2: return "c2";
    case SiteKind::kStub: return "stub";
    case SiteKind::kVm: return "vm";
    case SiteKind::kGc: return "gc";
    case SiteKind::kNative: break;
  }
  return "native";
}

// For scripts/harvest-corpus.
void log_bytes(const SiteInfo& site, SiteKind kind) {
  char hex[2 * sizeof(site.bytes) + 1] = {};
  for (size_t i = 0; i < site.length; ++i) {
    constexpr char kDigits[] = "0123456789abcdef";
    hex[2 * i] = kDigits[site.bytes[i] >> 4];
    hex[2 * i + 1] = kDigits[site.bytes[i] & 15];
  }
  raw_log(LogLevel::kDebug, "site %u %s %s", site.id, site_kind_name(kind), hex);
}

template <typename Vector>
void reach(Vector* vector, uint32_t id) {
  if (vector->size() <= id) vector->resize(id + id / 2 + 64);
}

}  // namespace

bool Catalog::prepare() {
  return insert_class_.prepare(database_, "INSERT INTO class VALUES(?,?,?,?,?,?)") &&
         update_super_.prepare(database_, "UPDATE class SET super_id = ? WHERE id = ?") &&
         insert_field_.prepare(database_, "INSERT INTO field VALUES(?,?,?,?,?,?)") &&
         insert_site_.prepare(database_, "INSERT INTO site VALUES(?,?,?,?,?,?,?,?,?,?)") &&
         insert_gc_.prepare(database_, "INSERT INTO gc VALUES(?,?,?,?)") &&
         end_gc_.prepare(database_, "UPDATE gc SET end_ns = ?, cause = ? WHERE id = ?");
}

void Catalog::finalize() {
  for (Statement* s : {&insert_class_, &update_super_, &insert_field_, &insert_site_, &insert_gc_, &end_gc_})
    s->finalize();
}

std::string Catalog::class_name(uint32_t id) const {
  if (id == 0) return "";
  const ClassInfo& info = sources_.classes->row(id);
  return dotted_class_name({info.name, info.name_length});
}

bool Catalog::ensure_class(uint32_t id) {
  if (id == 0 || id >= sources_.classes->end()) return true;
  reach(&classes_, id);
  if (classes_[id] == kWithFields) return true;
  const ClassInfo& info = sources_.classes->row(id);
  const FieldSet* fields = info.fields.load(std::memory_order_acquire);
  if (classes_[id] == kAbsent) {
    classes_[id] = kWritten;  // before the super class: a broken chain must not loop
    if (!write_class(info) || !ensure_class(info.super_id)) return false;
  }
  if (fields == nullptr) return true;
  classes_[id] = kWithFields;
  return ensure_fields(fields);
}

bool Catalog::write_class(const ClassInfo& info) {
  bool is_array = info.is_array || is_array_layout(info.layout_helper);
  insert_class_.bind(1, info.id);
  insert_class_.bind_text(2, class_name(info.id));
  insert_class_.bind_text(3, is_array ? "array" : "instance");
  insert_class_.bind_or_null(4, info.super_id, info.super_id != 0);
  insert_class_.bind_or_null(5, info.instance_size, !is_array && info.instance_size != 0);
  insert_class_.bind_text(6, info.loader_class_id != 0 ? class_name(info.loader_class_id) : "boot");
  return insert_class_.run();
}

bool Catalog::ensure_fields(const FieldSet* set) {
  for (uint32_t i = 0; i < set->instance_count; ++i) {
    if (!ensure_field(*set->instance[i])) return false;
  }
  for (uint32_t i = 0; i < set->static_count; ++i) {
    if (!ensure_field(*set->statics[i])) return false;
  }
  return true;
}

bool Catalog::ensure_field(const FieldInfo& field) {
  reach(&fields_, field.id);
  if (fields_[field.id]) return true;
  fields_[field.id] = true;
  insert_field_.bind(1, field.id);
  insert_field_.bind(2, field.declaring_class_id);
  insert_field_.bind_text(3, utf8_from_modified(field.name));
  insert_field_.bind_text(4, type_of_descriptor(field.descriptor));
  insert_field_.bind(5, field.offset);
  insert_field_.bind(6, field.is_static ? 1 : 0);
  return insert_field_.run() && ensure_class(field.declaring_class_id);
}

bool Catalog::ensure_site(uint32_t id) {
  if (id == 0 || id >= sources_.sites->end()) return true;
  reach(&sites_, id);
  if (sites_[id]) return true;
  sites_[id] = true;
  const SiteInfo& site = sources_.sites->row(id);
  std::string method, signature;
  uint32_t line = 0;
  if (site.method_id != 0) {
    const MethodInfo& info = sources_.methods->row(site.method_id);
    std::string holder = class_name(info.holder_class_id);
    method = holder.empty() ? utf8_from_modified(info.name) : holder + "." + utf8_from_modified(info.name);
    signature = utf8_from_modified(info.signature);
    line = MethodTable::line_of(info, site.bci);
  }
  NativeSymbol native;
  if (site.kind == SiteKind::kStub) {
    native.symbol = site.stub_name != nullptr ? site.stub_name : "";
  } else if (site.kind == SiteKind::kVm || site.kind == SiteKind::kGc || site.kind == SiteKind::kNative) {
    native = symbols_.find(site.pc);
  }
  SiteKind kind = site.kind;
  if (kind == SiteKind::kVm && is_collector_work(native.symbol)) kind = SiteKind::kGc;
  if (site.caller_pc != 0 && is_collector_work(symbols_.find(site.caller_pc).symbol)) kind = SiteKind::kGc;
  if (log_enabled(LogLevel::kDebug) && site.length != 0) log_bytes(site, kind);
  insert_site_.bind(1, id);
  insert_site_.bind(2, static_cast<int64_t>(site.pc));
  insert_site_.bind_text(3, site_kind_name(kind));
  insert_site_.bind_text_or_null(4, method);
  insert_site_.bind_text_or_null(5, signature);
  insert_site_.bind_or_null(6, site.bci, site.bci >= 0);
  insert_site_.bind_or_null(7, line, line != 0);
  insert_site_.bind_text_or_null(8, utf8_from_modified(native.library));
  insert_site_.bind_text_or_null(9, utf8_from_modified(native.symbol));
  insert_site_.bind_text_or_null(10, disassembler_.text(site.pc, site.bytes, site.length));
  return insert_site_.run();
}

bool Catalog::only_stores(uint32_t site_id) {
  if (site_id == 0 || site_id >= sources_.sites->end()) return false;
  reach(&swaps_, site_id);
  if (swaps_[site_id] == kUnasked) {
    const SiteInfo& site = sources_.sites->row(site_id);
    bool store =
        site.kind == SiteKind::kVm && is_swap(site.bytes, site.length) && swap_is_store(symbols_.find(site.pc).symbol);
    swaps_[site_id] = store ? kOnlyStores : kSwaps;
  }
  return swaps_[site_id] == kOnlyStores;
}

bool Catalog::update_collections(bool* changed) {
  if (sources_.collections == nullptr) return true;
  auto relative = [this](uint64_t ns) { return static_cast<int64_t>(ns - started_ns_); };
  for (; next_collection_ < sources_.collections->end(); ++next_collection_) {
    const GcInfo& gc = sources_.collections->row(next_collection_);
    if (!gc.ready.load(std::memory_order_acquire)) break;
    if (!database_.begin()) return false;
    insert_gc_.bind(1, next_collection_);
    insert_gc_.bind(2, relative(gc.start_ns));
    insert_gc_.bind_null(3);
    insert_gc_.bind_null(4);
    if (!insert_gc_.run()) return false;
    open_collections_.push_back(next_collection_);
    *changed = true;
  }
  for (size_t i = 0; i < open_collections_.size();) {
    uint32_t id = open_collections_[i];
    const GcInfo& gc = sources_.collections->row(id);
    uint64_t end = gc.end_ns.load(std::memory_order_acquire);
    if (end == 0) {
      ++i;
      continue;
    }
    if (!database_.begin()) return false;
    end_gc_.bind(1, relative(end));
    end_gc_.bind_text_or_null(2, utf8_from_modified({gc.cause, strnlen(gc.cause, sizeof(gc.cause))}));
    end_gc_.bind(3, id);
    if (!end_gc_.run()) return false;
    open_collections_.erase(open_collections_.begin() + static_cast<ptrdiff_t>(i));
    *changed = true;
  }
  return true;
}

bool Catalog::complete_classes() {
  for (uint32_t id = 1; id < classes_.size(); ++id) {
    if (classes_[id] == kAbsent) continue;
    const ClassInfo& info = sources_.classes->row(id);
    if (!ensure_class(id)) return false;
    if (info.super_id == 0) continue;
    if (!ensure_class(info.super_id)) return false;
    update_super_.bind(1, info.super_id);
    update_super_.bind(2, id);
    if (!update_super_.run()) return false;
  }
  return true;
}

}  // namespace classaccess
