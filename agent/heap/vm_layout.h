// Where things are in this HotSpot: offsets, bases and shifts that the signal-side
// code needs, filled once by agent/hotspot/layout_probe from vmStructs (start-up,
// completed at VMInit) and constant afterwards.
// Source of every offset: gHotSpotVMStructs/Types/IntConstants of the running
// libjvm; where one is not exported the field's comment says what it rests on.
// Context: plain numbers, read anywhere.
#pragma once

#include <cstdint>

namespace classaccess {

enum class Collector : uint8_t { kUnknown, kSerial, kParallel, kG1, kShenandoah, kEpsilon, kZ };

struct VmLayout {
  int jdk_major = 0;  // java.specification.version: 17, 21, 25
  Collector collector = Collector::kUnknown;

  // --- object header (share/oops/oop.hpp, arrayOop.hpp) ---
  bool compact_headers = false;  // klass in the mark word
  bool compressed_class_pointers = false;
  bool compressed_oops = false;
  uint32_t klass_offset = 8;  // bytes; 0 with compact headers: the mark word
  uint32_t array_length_offset = 12;
  uint32_t object_alignment = 8;  // ObjectAlignmentInBytes
  uint64_t narrow_klass_base = 0;
  uint32_t narrow_klass_shift = 0;
  uint32_t mark_klass_shift = 42;  // markWord::klass_shift, compact headers
  uint32_t mark_age_shift = 3;     // markWord::age_shift; the bits below it are lock (and biased or self-forward)
  uint32_t mark_hash_shift = 8;    // markWord::hash_shift; between age and hash nothing is set
  uint32_t mark_hash_bits = 31;    // markWord::hash_bits; above hash only a klass (compact headers)
  bool biased_locking = false;     // 17 only, off by default
  uint64_t narrow_oop_base = 0;
  uint32_t narrow_oop_shift = 0;

  // --- Klass ---
  uint32_t klass_layout_helper = 0;
  uint32_t klass_name = 0;
  uint32_t klass_super = 0;
  uint32_t klass_secondary_supers = 0;  // Array<Klass*>*
  uint32_t klass_class_loader_data = 0;
  uint32_t klass_java_mirror = 0;   // OopHandle
  uint32_t klass_init_state = 0;    // InstanceKlass::_init_state, one byte; 0: not exported
  uint32_t klass_state_linked = 0;  // InstanceKlass::linked; loaded but not linked is below
  uint32_t cld_class_loader = 0;    // OopHandle
  uint32_t array_length = 0;        // Array<Klass*>::_length
  uint32_t array_data = 8;          // Array<Klass*>::_data
  uint32_t symbol_length = 0;
  uint32_t symbol_body = 0;

  // --- java.lang.Class mirrors; offsets inside the mirror object ---
  int32_t mirror_klass = 0;     // java_lang_Class::_klass_offset
  int32_t mirror_oop_size = 0;  // java_lang_Class::_oop_size_offset, in words
  // Offset of StackChunk.size (int, words of stack), found by JVMTI at VMInit (21+); 0: no such class
  uint32_t stack_chunk_size = 0;

  // --- java.lang.Thread and String, found by JVMTI at VMInit; 0: not found ---
  uint32_t thread_tid = 0;  // Thread.tid
  uint32_t thread_name = 0;
  uint32_t string_value = 0;
  uint32_t string_coder = 0;
  uint32_t byte_array_base = 16;  // of a byte[]'s element 0

  // --- Method, ConstMethod, ConstantPool ---
  uint32_t method_const_method = 0;
  uint32_t method_bytes = 0;  // sizeof(Method)
  uint32_t const_method_constants = 0;
  uint32_t const_method_code_size = 0;   // u2
  uint32_t const_method_name_index = 0;  // u2
  uint32_t const_method_signature_index = 0;
  uint32_t const_method_flags = 0;           // its low two bytes hold the line table bit in every version
  uint32_t const_method_has_line_table = 1;  // bit in flags
  uint32_t const_method_bytes = 0;           // sizeof(ConstMethod): bytecodes follow
  uint32_t pool_holder = 0;
  uint32_t pool_length = 0;
  uint32_t pool_bytes = 0;  // sizeof(ConstantPool): entries follow, 8 bytes each

  // Compressed ints (line tables, debug info): UNSIGNED5 with 0 excluded, 20 and up
  // (share/utilities/unsigned5.hpp), or not, 17 (share/code/compressedStream.hpp). Not exported: by version.
  bool unsigned5_excludes_zero = false;

  // --- code cache (share/code/codeBlob.hpp, nmethod.hpp, pcDesc.hpp) ---
  uint64_t code_low = 0, code_high = 0;  // CodeCache::_low_bound/_high_bound
  static constexpr int kMaxCodeHeaps = 4;
  struct CodeHeap {
    uint64_t memory_low_slot = 0;   // address of the VirtualSpace's _low and _high
    uint64_t memory_high_slot = 0;  // (they move as the heap grows: read each time)
    uint64_t segmap_low_slot = 0;
    uint32_t log2_segment_size = 0;
  } code_heaps[kMaxCodeHeaps];
  int code_heap_count = 0;
  uint32_t heap_block_bytes = 0;  // sizeof(HeapBlock)
  uint32_t heap_block_used = 0;   // HeapBlock::Header::_used
  uint32_t blob_name = 0;
  bool blob_has_code_pointers = false;  // 17, 21: _code_begin/_code_end; 25: offsets
  uint32_t blob_code_begin = 0;         // pointer, or int offset from the blob
  uint32_t blob_code_end = 0;           // pointer, or _data_offset
  uint32_t blob_size = 0;               // int, bytes from the blob's start
  uint32_t nmethod_method = 0;
  uint32_t nmethod_comp_level = 0;  // int (17, 21) or one byte (25): its low byte serves all
  uint32_t nmethod_compile_id = 0;
  uint32_t nmethod_scopes_data = 0;  // 17, 21: pointer _scopes_data_begin; 25: _scopes_data_offset in immutable data
  uint32_t nmethod_scopes_pcs_offset = 0;
  uint32_t nmethod_scopes_pcs_end = 0;   // 17, 21: _dependencies_offset; 25: _scopes_data_offset
  uint32_t nmethod_metadata_offset = 0;  // 17, 21 only
  uint32_t nmethod_immutable_data = 0;   // 25 only
  uint32_t blob_mutable_data = 0;        // 25 only: pointer; the metadata follow its relocations
  uint32_t blob_relocation_size = 0;     // 25 only: int, bytes
  uint32_t pcdesc_bytes = 16;
  uint32_t pcdesc_pc_offset = 0;
  uint32_t pcdesc_scope_decode_offset = 0;

  // --- interpreter ---
  uint64_t interpreter_low = 0, interpreter_high = 0;  // the StubQueue's code

  // --- threads ---
  uint64_t java_thread_list_slot = 0;  // &ThreadsSMRSupport::_java_thread_list
  uint32_t threads_list_length = 0;
  uint32_t threads_list_threads = 0;
  uint32_t java_thread_osthread = 0;
  uint32_t osthread_thread_id = 0;
  uint32_t java_thread_tlab = 0;     // Thread::_tlab
  uint32_t java_thread_object = 0;   // OopHandle of its java.lang.Thread, 21+
  uint32_t java_thread_vthread = 0;  // OopHandle of the Thread it runs now, 21+; 0: no virtual threads
  uint32_t tlab_start = 0, tlab_top = 0, tlab_end = 0;

  // --- libjvm text ---
  uint64_t libjvm_text_low = 0, libjvm_text_high = 0;

  // --- heap and twin ---
  uint64_t heap_low = 0, heap_high = 0;  // CollectedHeap::_reserved
  int64_t twin_distance = 0;             // twin address - heap address

  bool in_code_cache(uint64_t pc) const { return pc - code_low < code_high - code_low; }
  bool in_interpreter(uint64_t pc) const { return pc - interpreter_low < interpreter_high - interpreter_low; }
  bool in_libjvm(uint64_t pc) const { return pc - libjvm_text_low < libjvm_text_high - libjvm_text_low; }
};

}  // namespace classaccess
