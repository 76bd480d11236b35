#include "agent/jvmti/class_fields.h"

#include <string.h>

#include <algorithm>
#include <vector>

#include "agent/base/raw_log.h"
#include "agent/base/safe_load.h"
#include "agent/base/wake.h"
#include "agent/heap/object_header.h"
#include "agent/jvmti/jvmti_memory.h"

namespace classaccess {
namespace {

constexpr jint kAccStatic = 0x0008;

uint8_t size_of(const char* descriptor, const VmLayout& layout) {
  switch (descriptor[0]) {
    case 'Z':
    case 'B': return 1;
    case 'C':
    case 'S': return 2;
    case 'I':
    case 'F': return 4;
    case 'J':
    case 'D': return 8;
    default: return layout.compressed_oops ? 4 : 8;
  }
}

// The few fields that handlers read themselves.
void note_for_layout(const ClassInfo& info, const FieldInfo& field, VmLayout* layout) {
  struct Known {
    const char* class_name;
    const char* field;
    uint32_t* offset;
  } known[] = {{"jdk/internal/vm/StackChunk", "size", &layout->stack_chunk_size},
               {"java/lang/Thread", "tid", &layout->thread_tid},
               {"java/lang/Thread", "name", &layout->thread_name},
               {"java/lang/String", "value", &layout->string_value},
               {"java/lang/String", "coder", &layout->string_coder}};
  if (info.loader_class_id != 0) return;
  for (const Known& k : known) {
    if (strcmp(field.name, k.field) == 0 && strcmp(info.name, k.class_name) == 0) {
      __atomic_store_n(k.offset, field.offset, __ATOMIC_RELAXED);
    }
  }
}

const FieldInfo* const* to_array(std::vector<const FieldInfo*>* fields) {
  std::sort(fields->begin(), fields->end(),
            [](const FieldInfo* a, const FieldInfo* b) { return a->offset < b->offset; });
  auto** array = new const FieldInfo*[fields->size()];
  std::copy(fields->begin(), fields->end(), array);
  return array;
}

}  // namespace

uint64_t ClassFields::klass_of_mirror(jclass mirror) const {
  // A local reference is the address of a slot that holds the oop (share/runtime/jniHandles.hpp);
  // its low bits tag other kinds of reference. This thread is in native code: a collection
  // does not wait for it, and may move the mirror between the two loads.
  const auto* slot = reinterpret_cast<const uint64_t*>(reinterpret_cast<uint64_t>(mirror) & ~7ull);
  for (int tries = 0; tries < 20000; ++tries) {
    uint32_t finished = finished_.load(std::memory_order_acquire);
    if (started_.load(std::memory_order_acquire) == finished) {
      uint64_t oop = __atomic_load_n(slot, __ATOMIC_ACQUIRE);
      uint64_t klass = 0;
      bool read = safe_load(twin_address(*layout_, oop) + static_cast<uint64_t>(layout_->mirror_klass), &klass);
      std::atomic_thread_fence(std::memory_order_acquire);
      if (__atomic_load_n(slot, __ATOMIC_ACQUIRE) == oop && started_.load(std::memory_order_acquire) == finished) {
        return read ? klass : 0;
      }
    }
    raw_sleep(50000);
  }
  return 0;
}

const FieldSet* ClassFields::build(jclass klass, const ClassInfo& info, const FieldSet* super_fields) {
  jint count = 0;
  JvmtiMemory<jfieldID> ids(jvmti_);
  if (jvmti_->GetClassFields(klass, &count, ids.out()) != JVMTI_ERROR_NONE) return nullptr;
  std::vector<const FieldInfo*> instance, statics;
  if (super_fields != nullptr) {
    instance.assign(super_fields->instance, super_fields->instance + super_fields->instance_count);
  }
  for (jint i = 0; i < count; ++i) {
    JvmtiMemory<char> name(jvmti_), descriptor(jvmti_);
    jint modifiers = 0;
    if (jvmti_->GetFieldName(klass, ids[i], name.out(), descriptor.out(), nullptr) != JVMTI_ERROR_NONE ||
        jvmti_->GetFieldModifiers(klass, ids[i], &modifiers) != JVMTI_ERROR_NONE) {
      continue;
    }
    auto* field = new FieldInfo;
    field->id = next_field_id_.fetch_add(1, std::memory_order_relaxed);
    field->declaring_class_id = info.id;
    field->is_static = (modifiers & kAccStatic) != 0;
    field->size = size_of(descriptor.get(), *layout_);
    field->name = strdup(name.get());
    field->descriptor = strdup(descriptor.get());
    auto id = reinterpret_cast<uint64_t>(ids[i]);
    field->offset =
        field->is_static ? *reinterpret_cast<const uint32_t*>(id + jniid_offset_) : static_cast<uint32_t>(id >> 2);
    (field->is_static ? statics : instance).push_back(field);
    if (!field->is_static) note_for_layout(info, *field, layout_);
  }
  auto* set = new FieldSet;
  set->instance_count = static_cast<uint32_t>(instance.size());
  set->instance = to_array(&instance);
  set->static_count = static_cast<uint32_t>(statics.size());
  set->statics = to_array(&statics);
  return set;
}

ClassInfo* ClassFields::row_of(jclass klass, Seen seen) {
  uint64_t address = klass_of_mirror(klass);
  ClassInfo* info = address != 0 ? classes_->find_or_add(address) : nullptr;
  if (info == nullptr || seen != Seen::kPrepared) return info;
  const uint32_t now = 1 + started_.load(std::memory_order_acquire);
  const uint32_t before = info->prepared_at.load(std::memory_order_acquire);
  if (before != ClassInfo::kNotPrepared && before != now) {
    ClassTable::retire(info);
    info = classes_->find_or_add(address);
    if (info == nullptr) return nullptr;
  }
  info->prepared_at.store(now, std::memory_order_release);
  return info;
}

bool ClassFields::try_add(JNIEnv* jni, jclass klass, Seen seen) {
  ClassInfo* info = row_of(klass, seen);
  if (info == nullptr) return false;
  if (strcmp(info->name, "[B") == 0) layout_->byte_array_base = array_base(info->layout_helper);
  if (info->is_array) return true;
  bool known = info->fields.load(std::memory_order_acquire) != nullptr;
  jint status = 0;
  if (!known && jvmti_->GetClassStatus(klass, &status) != JVMTI_ERROR_NONE) return false;
  if (!known && (status & JVMTI_CLASS_STATUS_PREPARED) == 0) return true;
  if (seen == Seen::kListed) {
    uint32_t none = ClassInfo::kNotPrepared;
    info->prepared_at.compare_exchange_strong(none, 1 + started_.load(std::memory_order_acquire));
  }
  if (known) return true;
  const FieldSet* super_fields = nullptr;
  if (jclass super_class = jni->GetSuperclass(klass); super_class != nullptr) {
    uint64_t super_address = try_add(jni, super_class, Seen::kAsSuper) ? klass_of_mirror(super_class) : 0;
    jni->DeleteLocalRef(super_class);
    ClassInfo* super = super_address != 0 ? classes_->find(super_address) : nullptr;
    if (super != nullptr) super_fields = super->fields.load(std::memory_order_acquire);
    if (super_fields == nullptr) return false;  // ours would lack the inherited ones for good
  }
  const FieldSet* fields = build(klass, *info, super_fields);
  if (fields == nullptr) return false;
  // Another thread may have been faster with a super class; its ids stay.
  const FieldSet* none = nullptr;
  info->fields.compare_exchange_strong(none, fields, std::memory_order_acq_rel);
  return true;
}

void ClassFields::add(JNIEnv* jni, jclass klass, Seen seen) {
  if (!try_add(jni, klass, seen) && !try_add(jni, klass, Seen::kListed)) remember(jni, klass, 0);
}

void ClassFields::remember(JNIEnv* jni, jclass klass, int tries) {
  if (tries == kMaxTries) {
    JvmtiMemory<char> signature(jvmti_);
    bool named = jvmti_->GetClassSignature(klass, signature.out(), nullptr) == JVMTI_ERROR_NONE;
    raw_log(LogLevel::kInfo, "the fields of %s could not be read", named ? signature.get() : "a class");
    return;
  }
  jweak weak = jni->NewWeakGlobalRef(klass);
  if (weak == nullptr) return jni->ExceptionClear();
  std::lock_guard lock(mutex_);
  pending_.push_back({weak, tries});
  pending_count_.store(pending_.size(), std::memory_order_release);
}

void ClassFields::retry(JNIEnv* jni) {
  if (pending_count_.load(std::memory_order_acquire) == 0) return;
  std::vector<Pending> pending;
  {
    std::lock_guard lock(mutex_);
    pending.swap(pending_);
    pending_count_.store(0, std::memory_order_release);
  }
  for (const Pending& one : pending) {
    auto klass = static_cast<jclass>(jni->NewLocalRef(one.klass));
    jni->DeleteWeakGlobalRef(one.klass);
    if (klass == nullptr) continue;  // unloaded
    if (!try_add(jni, klass, Seen::kListed)) remember(jni, klass, one.tries + 1);
    jni->DeleteLocalRef(klass);
  }
}

void ClassFields::add_loaded(JNIEnv* jni) {
  jint count = 0;
  JvmtiMemory<jclass> classes(jvmti_);
  if (jvmti_->GetLoadedClasses(&count, classes.out()) != JVMTI_ERROR_NONE) count = 0;
  for (jint i = 0; i < count; ++i) {
    add(jni, classes[i], Seen::kListed);
    jni->DeleteLocalRef(classes[i]);
  }
}

}  // namespace classaccess
