#include <cstdio>

#include "agent/hotspot/layout_probe.h"

namespace classaccess {
namespace {

void put(std::string* out, const char* name, uint64_t value, bool hex) {
  char line[96];
  std::snprintf(line, sizeof line, hex ? "%s 0x%lx\n" : "%s %lu\n", name, static_cast<unsigned long>(value));
  *out += line;
}

}  // namespace

std::string dump_layout(const VmLayout& layout) {
  std::string out;
#define NUMBER(field) put(&out, #field, static_cast<uint64_t>(layout.field), false)
#define ADDRESS(field) put(&out, #field, static_cast<uint64_t>(layout.field), true)
  NUMBER(jdk_major);
  out += std::string("collector ") + collector_name(layout.collector) + "\n";
  NUMBER(compact_headers);
  NUMBER(compressed_class_pointers);
  NUMBER(compressed_oops);
  NUMBER(klass_offset);
  NUMBER(array_length_offset);
  NUMBER(object_alignment);
  ADDRESS(narrow_klass_base);
  NUMBER(narrow_klass_shift);
  NUMBER(mark_klass_shift);
  NUMBER(mark_age_shift);
  NUMBER(mark_hash_shift);
  NUMBER(mark_hash_bits);
  NUMBER(biased_locking);
  ADDRESS(narrow_oop_base);
  NUMBER(narrow_oop_shift);
  NUMBER(klass_layout_helper);
  NUMBER(klass_name);
  NUMBER(klass_super);
  NUMBER(klass_secondary_supers);
  NUMBER(klass_class_loader_data);
  NUMBER(klass_java_mirror);
  NUMBER(klass_init_state);
  NUMBER(klass_state_linked);
  NUMBER(cld_class_loader);
  NUMBER(array_length);
  NUMBER(array_data);
  NUMBER(symbol_length);
  NUMBER(symbol_body);
  NUMBER(mirror_klass);
  NUMBER(mirror_oop_size);
  NUMBER(stack_chunk_size);
  NUMBER(method_const_method);
  NUMBER(method_bytes);
  NUMBER(const_method_constants);
  NUMBER(const_method_code_size);
  NUMBER(const_method_name_index);
  NUMBER(const_method_signature_index);
  NUMBER(const_method_flags);
  NUMBER(const_method_has_line_table);
  NUMBER(const_method_bytes);
  NUMBER(pool_holder);
  NUMBER(pool_length);
  NUMBER(pool_bytes);
  NUMBER(unsigned5_excludes_zero);
  ADDRESS(code_low);
  ADDRESS(code_high);
  NUMBER(code_heap_count);
  for (int i = 0; i < layout.code_heap_count; ++i) {
    std::string prefix = "code_heaps[" + std::to_string(i) + "].";
    const VmLayout::CodeHeap& heap = layout.code_heaps[i];
    put(&out, (prefix + "memory_low_slot").c_str(), heap.memory_low_slot, true);
    put(&out, (prefix + "memory_high_slot").c_str(), heap.memory_high_slot, true);
    put(&out, (prefix + "segmap_low_slot").c_str(), heap.segmap_low_slot, true);
    put(&out, (prefix + "log2_segment_size").c_str(), heap.log2_segment_size, false);
  }
  NUMBER(heap_block_bytes);
  NUMBER(heap_block_used);
  NUMBER(blob_name);
  NUMBER(blob_size);
  NUMBER(blob_has_code_pointers);
  NUMBER(blob_code_begin);
  NUMBER(blob_code_end);
  NUMBER(nmethod_method);
  NUMBER(nmethod_comp_level);
  NUMBER(nmethod_compile_id);
  NUMBER(nmethod_scopes_data);
  NUMBER(nmethod_scopes_pcs_offset);
  NUMBER(nmethod_scopes_pcs_end);
  NUMBER(nmethod_metadata_offset);
  NUMBER(nmethod_immutable_data);
  NUMBER(blob_mutable_data);
  NUMBER(blob_relocation_size);
  NUMBER(pcdesc_bytes);
  NUMBER(pcdesc_pc_offset);
  NUMBER(pcdesc_scope_decode_offset);
  ADDRESS(interpreter_low);
  ADDRESS(interpreter_high);
  ADDRESS(java_thread_list_slot);
  NUMBER(threads_list_length);
  NUMBER(threads_list_threads);
  NUMBER(java_thread_osthread);
  NUMBER(osthread_thread_id);
  NUMBER(java_thread_tlab);
  NUMBER(java_thread_object);
  NUMBER(java_thread_vthread);
  NUMBER(thread_tid);
  NUMBER(thread_name);
  NUMBER(string_value);
  NUMBER(string_coder);
  NUMBER(byte_array_base);
  NUMBER(tlab_start);
  NUMBER(tlab_top);
  NUMBER(tlab_end);
  ADDRESS(libjvm_text_low);
  ADDRESS(libjvm_text_high);
  ADDRESS(heap_low);
  ADDRESS(heap_high);
  ADDRESS(twin_distance);
#undef NUMBER
#undef ADDRESS
  return out;
}

}  // namespace classaccess
