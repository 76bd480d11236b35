#include "world.h"

#include <string.h>
#include <time.h>

#include <algorithm>
#include <new>

namespace classaccess {

// Doubles of the tables that read VM memory.
bool ClassTable::create(const ClassPatterns*, const VmLayout*) { return rows_.create(1 << 16); }
ClassInfo* ClassTable::find_or_add(uint64_t klass) {
  uint32_t id = rows_.claim();
  rows_.row(id).id = id;
  rows_.row(id).klass = klass;
  return &rows_.row(id);
}
bool MethodTable::create(ClassTable*, const VmLayout*) { return rows_.create(1 << 16); }
MethodInfo* MethodTable::find_or_add(uint64_t method) {
  uint32_t id = rows_.claim();
  rows_.row(id).id = id;
  rows_.row(id).method = method;
  return &rows_.row(id);
}
uint32_t MethodTable::line_of(const MethodInfo&, int32_t bci) {
  if (bci == World::kBciOutOfMemory) throw std::bad_alloc();
  if (bci == World::kBciUnknownThrow) throw 1;
  return bci < 0 ? 0 : static_cast<uint32_t>(bci) + 100;
}

World::World() {
  threads.create();
  classes.create(nullptr, &layout);
  methods.create(&classes, &layout);
  sites.create();
  collections.create(1024);
  layout.compressed_class_pointers = true;
}

WriterSources World::sources() {
  WriterSources s;
  s.threads = &threads;
  s.classes = &classes;
  s.methods = &methods;
  s.sites = &sites;
  s.collections = &collections;
  s.layout = &layout;
  return s;
}

RunInfo World::run() {
  RunInfo run;
  run.command = "java -jar app.jar";
  run.jvm_version = "17.0.15";
  run.heap_start = kHeap;
  run.heap_size = 1 << 30;
  run.started_ns = started_ns;
  return run;
}

ClassInfo* World::add_class(const char* name, uint32_t instance_size, ClassInfo* super) {
  ClassInfo* info = classes.find_or_add(next_klass_ += 0x400);
  info->name = name;
  info->name_length = static_cast<uint32_t>(strlen(name));
  info->super_id = super != nullptr ? super->id : 0;
  info->selected = true;
  if (name[0] == '[') {
    uint32_t log2 = strchr("BZ", name[1]) != nullptr   ? 0
                    : strchr("CS", name[1]) != nullptr ? 1
                    : strchr("JD", name[1]) != nullptr ? 3
                                                       : 2;
    info->is_array = true;
    info->layout_helper = static_cast<int32_t>(0xC0000000u | 16u << 16 | log2);
  } else {
    info->layout_helper = static_cast<int32_t>(instance_size);
    info->instance_size = instance_size;
  }
  info->ready.store(true);
  return info;
}

FieldInfo* World::add_field(ClassInfo* klass, const char* name, const char* descriptor, uint32_t offset, uint8_t size,
                            bool is_static) {
  FieldInfo field;
  field.id = static_cast<uint32_t>(fields_.size()) + 1;
  field.declaring_class_id = klass->id;
  field.offset = offset;
  field.size = size;
  field.is_static = is_static;
  field.name = name;
  field.descriptor = descriptor;
  fields_.push_back(field);
  return &fields_.back();
}

void World::publish_fields(ClassInfo* klass) {
  std::vector<const FieldInfo*> instance, statics;
  for (uint32_t id = klass->id; id != 0; id = classes.row(id).super_id) {
    for (const FieldInfo& field : fields_) {
      if (field.declaring_class_id != id) continue;
      if (!field.is_static) instance.push_back(&field);
      if (field.is_static && id == klass->id) statics.push_back(&field);
    }
  }
  auto by_offset = [](const FieldInfo* a, const FieldInfo* b) { return a->offset < b->offset; };
  std::sort(instance.begin(), instance.end(), by_offset);
  std::sort(statics.begin(), statics.end(), by_offset);
  lists_.push_back(instance);
  const auto& kept_instance = lists_.back();
  lists_.push_back(statics);
  const auto& kept_statics = lists_.back();
  FieldSet set;
  set.instance = kept_instance.data();
  set.instance_count = static_cast<uint32_t>(kept_instance.size());
  set.statics = kept_statics.data();
  set.static_count = static_cast<uint32_t>(kept_statics.size());
  sets_.push_back(set);
  klass->fields.store(&sets_.back());
}

uint32_t World::add_method(ClassInfo* holder, const char* name, const char* signature) {
  MethodInfo* info = methods.find_or_add(0x900000000 + holder->id);
  info->holder_class_id = holder->id;
  info->name = name;
  info->signature = signature;
  info->ready.store(true);
  return info->id;
}

uint32_t World::add_site(SiteKind kind, uint64_t pc, uint32_t method_id, int32_t bci, uint8_t bytecode,
                         uint64_t caller_pc) {
  CodeSite code;
  code.kind = kind;
  code.method = method_id != 0 ? &methods.row(method_id) : nullptr;
  code.bci = bci;
  code.bytecode = bytecode;
  code.stub_name = kind == SiteKind::kStub ? "jint_disjoint_arraycopy" : nullptr;
  const uint8_t bytes[] = {0x8b, 0x46, 0x0c};  // mov eax, dword ptr [rsi + 0xc]
  return sites.find_or_add(pc, code, bytes, sizeof(bytes), caller_pc);
}

uint32_t World::add_gc(uint64_t start_ns, uint64_t end_ns, const char* cause) {
  uint32_t id = collections.claim();
  GcInfo& gc = collections.row(id);
  gc.start_ns = start_ns;
  strncpy(gc.cause, cause, sizeof(gc.cause) - 1);
  gc.end_ns.store(end_ns);
  gc.ready.store(true);
  return id;
}

ThreadState* World::add_thread(const char* name, ThreadChoice choice) {
  ThreadState* thread = threads.claim(4242);
  thread->started_ns = started_ns + 10;
  if (name != nullptr) name_thread(thread, name);
  thread->choice.store(choice);
  return thread;
}

void World::name_thread(ThreadState* thread, const char* name) {
  thread->name_version.fetch_add(1);
  strncpy(thread->name, name, sizeof(thread->name) - 1);
  thread->name_version.fetch_add(1);
}

void World::end_thread(ThreadState* thread) {
  thread->ended_ns.store(5000000);
  thread->phase.store(ThreadPhase::kEnded);
}

AccessRecord World::access(const ClassInfo* klass, uint64_t object, uint32_t offset, uint32_t size, Op op,
                           uint32_t site, uint32_t extent) {
  AccessRecord record = {};
  record.t_ns = now_ns += 100;
  record.object = object;
  record.address = object + offset;
  record.extent = extent != 0 ? extent : klass->instance_size;
  record.site_id = site;
  record.class_id = klass->id;
  record.size = size;
  record.op = op;
  record.flags = kFlagSelected;
  return record;
}

void World::push(ThreadState* thread, const AccessRecord& record) {
  while (!thread->ring.push(record)) {
    wake_writer();
    timespec pause = {0, 50000};
    nanosleep(&pause, nullptr);
  }
}

}  // namespace classaccess
