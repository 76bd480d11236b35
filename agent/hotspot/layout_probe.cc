#include "agent/hotspot/layout_probe.h"

#include <link.h>

#include <cstring>

#include "agent/hotspot/lookup.h"

namespace classaccess {
namespace {

template <typename T>
T read(uint64_t address) {
  T value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}

void find_text(uint64_t anchor, VmLayout* layout) {
  struct Search {
    uint64_t anchor;
    VmLayout* layout;
  } search{anchor, layout};
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* data) {
        auto* s = static_cast<Search*>(data);
        bool ours = false;
        uint64_t low = UINT64_MAX, high = 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr)& segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_LOAD) continue;
          uint64_t from = info->dlpi_addr + segment.p_vaddr, to = from + segment.p_memsz;
          if (s->anchor >= from && s->anchor < to) ours = true;
          if ((segment.p_flags & PF_X) != 0) {
            low = from < low ? from : low;
            high = to > high ? to : high;
          }
        }
        if (!ours) return 0;
        s->layout->libjvm_text_low = low < high ? low : 0;
        s->layout->libjvm_text_high = high;
        return 1;
      },
      &search);
}

Collector chosen_collector(const VmStructs& vm) {
  if (vm.flag_bool("UseSerialGC")) return Collector::kSerial;
  if (vm.flag_bool("UseParallelGC")) return Collector::kParallel;
  if (vm.flag_bool("UseG1GC")) return Collector::kG1;
  if (vm.flag_bool("UseShenandoahGC")) return Collector::kShenandoah;
  if (vm.flag_bool("UseEpsilonGC")) return Collector::kEpsilon;
  if (vm.flag_bool("UseZGC")) return Collector::kZ;
  return Collector::kUnknown;
}

// Compression and what follows from it: the header formats of arrayOopDesc and oopDesc
// (share/oops/arrayOop.hpp, oop.hpp, markWord.hpp).
void read_flags(Lookup& find, const VmStructs& vm, VmLayout* layout) {
  layout->collector = chosen_collector(vm);
  layout->compact_headers = vm.flag_bool("UseCompactObjectHeaders");
  layout->compressed_class_pointers = vm.flag_bool("UseCompressedClassPointers") || layout->compact_headers;
  layout->compressed_oops = vm.flag_bool("UseCompressedOops");
  layout->biased_locking = vm.flag_bool("UseBiasedLocking");
  layout->object_alignment = static_cast<uint32_t>(find.flag("ObjectAlignmentInBytes"));
  layout->array_length_offset = layout->compact_headers ? 8 : layout->compressed_class_pointers ? 12 : 16;
  layout->klass_offset =
      layout->compressed_class_pointers
          ? find.offset({{"oopDesc", "_metadata._compressed_klass"}, {"oopDesc", "_compressed_klass"}})
          : find.offset({{"oopDesc", "_metadata._klass"}});
  if (layout->compact_headers) layout->klass_offset = 0;
  find.flag("UseCompressedOops");  // must exist; absence would read as false
  find.flag("UseCompressedClassPointers");
}

void probe_klass(Lookup& find, VmLayout* layout) {
  layout->klass_layout_helper = find.offset({{"Klass", "_layout_helper"}});
  layout->klass_name = find.offset({{"Klass", "_name"}});
  layout->klass_super = find.offset({{"Klass", "_super"}});
  layout->klass_secondary_supers = find.offset({{"Klass", "_secondary_supers"}});
  layout->klass_class_loader_data = find.offset({{"Klass", "_class_loader_data"}});
  layout->klass_java_mirror = find.offset({{"Klass", "_java_mirror"}});
  layout->klass_init_state = find.offset({{"InstanceKlass", "_init_state"}});
  layout->klass_state_linked = static_cast<uint32_t>(find.constant({"InstanceKlass::linked"}));
  layout->cld_class_loader = find.offset({{"ClassLoaderData", "_class_loader"}});
  layout->array_length = find.offset({{"Array<Klass*>", "_length"}});
  layout->array_data = find.offset({{"Array<Klass*>", "_data"}, {"Array<Klass*>", "_data[0]"}});
  layout->symbol_length = find.offset({{"Symbol", "_length"}});
  layout->symbol_body = find.offset({{"Symbol", "_body"}, {"Symbol", "_body[0]"}});

  // object_header.h has the layout helper's format built in (share/oops/klass.hpp).
  find.expect("Klass::_lh_instance_slow_path_bit", 1);
  find.expect("Klass::_lh_log2_element_size_shift", 0);
  find.expect("Klass::_lh_log2_element_size_mask", 63);
  find.expect("Klass::_lh_element_type_shift", 8);
  find.expect("Klass::_lh_header_size_shift", 16);
  find.expect("Klass::_lh_header_size_mask", 255);
  find.expect("Klass::_lh_array_tag_shift", 30);
  find.expect("Klass::_lh_array_tag_type_value", -1);
  find.expect("Klass::_lh_array_tag_obj_value", -2);
}

void probe_mark(Lookup& find, VmLayout* layout) {
  find.expect("markWord::lock_bits", 2);
  find.expect("markWord::locked_value", 0);
  find.expect("markWord::unlocked_value", 1);
  find.expect("markWord::monitor_value", 2);
  find.expect("markWord::marked_value", 3);
  find.expect("markWord::age_bits", 4);
  layout->mark_age_shift = static_cast<uint32_t>(find.constant({"markWord::age_shift"}));
  layout->mark_hash_shift = static_cast<uint32_t>(find.constant({"markWord::hash_shift"}));
  layout->mark_hash_bits = static_cast<uint32_t>(find.constant({"markWord::hash_bits"}));
  if (layout->compact_headers) {
    layout->mark_klass_shift = static_cast<uint32_t>(find.constant({"markWord::klass_shift"}));
  }
}

void probe_method(Lookup& find, VmLayout* layout) {
  layout->method_const_method = find.offset({{"Method", "_constMethod"}});
  layout->method_bytes = find.size("Method");
  layout->const_method_constants = find.offset({{"ConstMethod", "_constants"}});
  layout->const_method_code_size = find.offset({{"ConstMethod", "_code_size"}});
  layout->const_method_name_index = find.offset({{"ConstMethod", "_name_index"}});
  layout->const_method_signature_index = find.offset({{"ConstMethod", "_signature_index"}});
  layout->const_method_flags = find.offset({{"ConstMethod", "_flags._flags"}, {"ConstMethod", "_flags"}});
  layout->const_method_has_line_table = static_cast<uint32_t>(
      find.constant({"ConstMethodFlags::_misc_has_linenumber_table", "ConstMethod::_has_linenumber_table"}));
  layout->const_method_bytes = find.size("ConstMethod");
  layout->pool_holder = find.offset({{"ConstantPool", "_pool_holder"}});
  layout->pool_length = find.offset({{"ConstantPool", "_length"}});
  layout->pool_bytes = find.size("ConstantPool");
  layout->unsigned5_excludes_zero = layout->jdk_major >= 20;
}

void probe_code(Lookup& find, const VmStructs& vm, VmLayout* layout) {
  layout->heap_block_bytes = find.size("HeapBlock");
  layout->heap_block_used = find.offset({{"HeapBlock", "_header"}}) + find.offset({{"HeapBlock::Header", "_used"}});
  layout->blob_name = find.offset({{"CodeBlob", "_name"}});
  layout->blob_size = find.offset({{"CodeBlob", "_size"}});
  layout->blob_has_code_pointers = vm.offset("CodeBlob", "_code_begin").has_value();
  layout->blob_code_begin = find.offset({{"CodeBlob", "_code_begin"}, {"CodeBlob", "_code_offset"}});
  layout->blob_code_end = layout->blob_has_code_pointers ? find.offset({{"CodeBlob", "_code_end"}})
                                                         : find.offset({{"CodeBlob", "_data_offset"}});
  layout->nmethod_method = find.offset({{"CompiledMethod", "_method"}, {"nmethod", "_method"}});
  layout->nmethod_comp_level = find.offset({{"nmethod", "_comp_level"}});
  layout->nmethod_compile_id = find.offset({{"nmethod", "_compile_id"}});
  layout->nmethod_scopes_pcs_offset = find.offset({{"nmethod", "_scopes_pcs_offset"}});
  if (layout->blob_has_code_pointers) {
    layout->nmethod_scopes_data =
        find.offset({{"CompiledMethod", "_scopes_data_begin"}, {"nmethod", "_scopes_data_begin"}});
    layout->nmethod_scopes_pcs_end = find.offset({{"nmethod", "_dependencies_offset"}});
    layout->nmethod_metadata_offset = find.offset({{"nmethod", "_metadata_offset"}});
  } else {
    layout->nmethod_scopes_data = find.offset({{"nmethod", "_scopes_data_offset"}});
    layout->nmethod_scopes_pcs_end = layout->nmethod_scopes_data;
    layout->nmethod_immutable_data = find.offset({{"nmethod", "_immutable_data"}});
    layout->blob_mutable_data = find.offset({{"CodeBlob", "_mutable_data"}});
    layout->blob_relocation_size = find.offset({{"CodeBlob", "_relocation_size"}});
  }
  find.expect("InvocationEntryBci", -1);
  layout->pcdesc_bytes = find.size("PcDesc");
  layout->pcdesc_pc_offset = find.offset({{"PcDesc", "_pc_offset"}});
  layout->pcdesc_scope_decode_offset = find.offset({{"PcDesc", "_scope_decode_offset"}});
}

void probe_threads(Lookup& find, VmLayout* layout) {
  layout->java_thread_list_slot = find.address({{"ThreadsSMRSupport", "_java_thread_list"}});
  layout->threads_list_length = find.offset({{"ThreadsList", "_length"}});
  layout->threads_list_threads = find.offset({{"ThreadsList", "_threads"}});
  layout->java_thread_osthread = find.offset({{"JavaThread", "_osthread"}, {"Thread", "_osthread"}});
  layout->osthread_thread_id = find.offset({{"OSThread", "_thread_id"}});
  if (layout->jdk_major >= 21) {
    layout->java_thread_object = find.offset({{"JavaThread", "_threadObj"}});
    layout->java_thread_vthread = find.offset({{"JavaThread", "_vthread"}});
  }
  layout->java_thread_tlab = find.offset({{"Thread", "_tlab"}});
  layout->tlab_start = find.offset({{"ThreadLocalAllocBuffer", "_start"}});
  layout->tlab_top = find.offset({{"ThreadLocalAllocBuffer", "_top"}});
  layout->tlab_end = find.offset({{"ThreadLocalAllocBuffer", "_end"}});
}

}  // namespace

std::string probe_layout(VmLayout* layout, const VmStructs& vm) {
  Lookup find(vm);
  if (uint64_t major = find.address({{"Abstract_VM_Version", "_vm_major_version"}})) {
    layout->jdk_major = read<int32_t>(major);
    if (layout->jdk_major < 17) return "JDK " + std::to_string(layout->jdk_major) + " is not supported: 17 or newer";
  }
  read_flags(find, vm, layout);
  probe_klass(find, layout);
  probe_mark(find, layout);
  probe_method(find, layout);
  probe_code(find, vm, layout);
  probe_threads(find, layout);
  find_text(vm.anchor(), layout);
  return find.result();
}

std::string complete_layout(VmLayout* layout, const VmStructs& vm) {
  Lookup find(vm);
  read_flags(find, vm, layout);

  uint64_t klass_base =
      find.address({{"CompressedKlassPointers", "_base"}, {"CompressedKlassPointers", "_narrow_klass._base"}});
  uint64_t klass_shift =
      find.address({{"CompressedKlassPointers", "_shift"}, {"CompressedKlassPointers", "_narrow_klass._shift"}});
  uint64_t oop_base = find.address({{"CompressedOops", "_base"}, {"CompressedOops", "_narrow_oop._base"}});
  uint64_t oop_shift = find.address({{"CompressedOops", "_shift"}, {"CompressedOops", "_narrow_oop._shift"}});

  uint64_t heap_slot = find.address({{"Universe", "_collectedHeap"}});
  uint32_t reserved = find.offset({{"CollectedHeap", "_reserved"}});
  uint32_t region_start = find.offset({{"MemRegion", "_start"}});
  uint32_t region_words = find.offset({{"MemRegion", "_word_size"}});

  uint64_t code_low = find.address({{"CodeCache", "_low_bound"}});
  uint64_t code_high = find.address({{"CodeCache", "_high_bound"}});
  uint64_t heaps_slot = find.address({{"CodeCache", "_heaps"}});
  uint32_t list_length = find.offset({{"GrowableArrayBase", "_len"}});
  uint32_t list_data = find.offset({{"GrowableArray<int>", "_data"}});  // the same for every element type
  uint32_t heap_memory = find.offset({{"CodeHeap", "_memory"}});
  uint32_t heap_segmap = find.offset({{"CodeHeap", "_segmap"}});
  uint32_t heap_log2 = find.offset({{"CodeHeap", "_log2_segment_size"}});
  uint32_t space_low = find.offset({{"VirtualSpace", "_low"}});
  uint32_t space_high = find.offset({{"VirtualSpace", "_high"}});

  uint64_t interpreter_slot = find.address({{"AbstractInterpreter", "_code"}});
  uint32_t stub_buffer = find.offset({{"StubQueue", "_stub_buffer"}});
  uint32_t stub_limit = find.offset({{"StubQueue", "_buffer_limit"}});

  uint64_t mirror_klass = find.address({{"java_lang_Class", "_klass_offset"}});
  uint64_t mirror_size = find.address({{"java_lang_Class", "_oop_size_offset"}});

  if (std::string reason = find.result(); !reason.empty()) return reason;

  layout->narrow_klass_base = read<uint64_t>(klass_base);
  layout->narrow_klass_shift = read<uint32_t>(klass_shift);
  layout->narrow_oop_base = read<uint64_t>(oop_base);
  layout->narrow_oop_shift = read<uint32_t>(oop_shift);

  uint64_t heap = read<uint64_t>(heap_slot);
  if (heap == 0) return "this JVM has no heap yet (Universe::_collectedHeap is null)";
  layout->heap_low = read<uint64_t>(heap + reserved + region_start);
  layout->heap_high = layout->heap_low + 8 * read<uint64_t>(heap + reserved + region_words);

  layout->code_low = read<uint64_t>(code_low);
  layout->code_high = read<uint64_t>(code_high);
  layout->code_heap_count = 0;
  uint64_t heaps = read<uint64_t>(heaps_slot);
  if (heaps == 0) return "this JVM has no code cache yet (CodeCache::_heaps is null)";
  int32_t count = read<int32_t>(heaps + list_length);
  uint64_t elements = read<uint64_t>(heaps + list_data);
  if (count < 1 || count > VmLayout::kMaxCodeHeaps) {
    return "this JVM has " + std::to_string(count) + " code heaps; 1 to 4 are understood";
  }
  for (int32_t i = 0; i < count; ++i) {
    uint64_t code_heap = read<uint64_t>(elements + 8 * static_cast<uint64_t>(i));
    VmLayout::CodeHeap& to = layout->code_heaps[layout->code_heap_count++];
    to.memory_low_slot = code_heap + heap_memory + space_low;
    to.memory_high_slot = code_heap + heap_memory + space_high;
    to.segmap_low_slot = code_heap + heap_segmap + space_low;
    to.log2_segment_size = read<uint32_t>(code_heap + heap_log2);
  }

  uint64_t queue = read<uint64_t>(interpreter_slot);
  if (queue == 0) return "this JVM has no interpreter yet (AbstractInterpreter::_code is null)";
  layout->interpreter_low = read<uint64_t>(queue + stub_buffer);
  layout->interpreter_high = layout->interpreter_low + read<uint32_t>(queue + stub_limit);

  layout->mirror_klass = read<int32_t>(mirror_klass);
  layout->mirror_oop_size = read<int32_t>(mirror_size);
  if (layout->mirror_klass <= 0 || layout->mirror_oop_size <= 0) {
    return "this JVM has not computed java_lang_Class::_klass_offset yet";
  }
  return "";
}

const char* collector_name(Collector collector) {
  switch (collector) {
    case Collector::kSerial: return "Serial";
    case Collector::kParallel: return "Parallel";
    case Collector::kG1: return "G1";
    case Collector::kShenandoah: return "Shenandoah";
    case Collector::kEpsilon: return "Epsilon";
    case Collector::kZ: return "ZGC";
    case Collector::kUnknown: break;
  }
  return "unknown";
}

uint64_t max_heap_size(const VmStructs& vm) { return vm.flag_u64("MaxHeapSize").value_or(0); }

}  // namespace classaccess
