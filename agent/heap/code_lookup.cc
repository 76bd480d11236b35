#include "agent/heap/code_lookup.h"

#include <string_view>

#include "agent/base/reserve.h"
#include "agent/base/safe_load.h"
#include "agent/heap/metadata.h"
#include "agent/heap/unsigned5.h"

namespace classaccess {
namespace {

constexpr uint32_t kMaxMetadata = 1u << 20;  // entries of one nmethod, by common sense
constexpr size_t kMaxStubName = 120;

// The class file's bytecode for the interpreter's own ones, 203 and up (share/interpreter/bytecodes.hpp,
// the same numbers in 17 to 25). 0: stands for two bytecodes, left as it is.
constexpr uint8_t kFirstRewritten = 203;
constexpr uint8_t kOriginal[] = {
    180, 180, 180, 180, 180, 180, 180, 180,       // 203 _fast_agetfield .. _fast_sgetfield: getfield
    181, 181, 181, 181, 181, 181, 181, 181, 181,  // 211 _fast_aputfield .. _fast_sputfield: putfield
    42,  0,   0,   0,                             // 220 _fast_aload_0; _fast_{i,a,f}access_0: aload_0 and getfield
    21,  21,  0,                                  // 224 _fast_iload, _fast_iload2; _fast_icaload: iload and caload
    182, 171, 171,                                // 227 _fast_invokevfinal, _fast_linearswitch, _fast_binaryswitch
    18,  19,  177, 182,  // 230 _fast_aldc, _fast_aldc_w, _return_register_finalizer, _invokehandle
    180, 181, 42,  21,   // 234 _nofast_getfield, _putfield, _aload_0, _iload
};

}  // namespace

bool CodeLookup::create(MethodTable* methods, const VmLayout* layout) {
  methods_ = methods;
  layout_ = layout;
  known_names_ = reserve_array<std::atomic<const char*>>(kMaxNames);
  return known_names_ != nullptr && names_.create(kMaxNames * (kMaxStubName + 8));
}

CodeSite CodeLookup::lookup(uint64_t pc, uint64_t rbp, uint64_t r13) {
  CodeSite site;
  const VmLayout& l = *layout_;
  if (l.in_interpreter(pc)) {
    interpreted(rbp, r13, &site);
  } else if (l.in_code_cache(pc)) {
    site.kind = SiteKind::kStub;
    site.stub_name = "unknown";
    if (uint64_t blob = find_blob(pc)) in_blob(blob, pc, &site);
  } else if (l.in_libjvm(pc)) {
    site.kind = SiteKind::kVm;
  }
  return site;
}

bool CodeLookup::still_valid(const CodeSite& site) const {
  if (site.nmethod == 0) return true;
  int32_t compile_id;
  return safe_load(site.nmethod + layout_->nmethod_compile_id, &compile_id) && compile_id == site.compile_id &&
         find_blob(site.nmethod) == site.nmethod;
}

void CodeLookup::interpreted(uint64_t rbp, uint64_t r13, CodeSite* site) {
  site->kind = SiteKind::kInterpreted;
  uint64_t method;
  if (!plausible_pointer(rbp) || !safe_load(rbp - 24, &method)) return;
  site->method = methods_->find_or_add(method);
  if (site->method == nullptr) return;
  uint64_t codes = site->method->const_method + layout_->const_method_bytes;
  // Outside the bytecode templates r13 may be anything.
  if (r13 < codes || r13 >= codes + site->method->code_size) return;
  site->bci = static_cast<int32_t>(r13 - codes);
  site->bytecode = bytecode_at(*site->method, site->bci);
}

void CodeLookup::in_blob(uint64_t blob, uint64_t pc, CodeSite* site) {
  const VmLayout& l = *layout_;
  uint64_t name;
  if (!safe_load(blob + l.blob_name, &name)) return;
  site->stub_name = keep_name(name);
  bool java = std::string_view(site->stub_name) == "nmethod";
  if (!java && std::string_view(site->stub_name) != "native nmethod") return;

  uint64_t own_method = 0, method = 0;
  uint8_t level = 0;
  if (!safe_load(blob + l.nmethod_method, &own_method) || !safe_load(blob + l.nmethod_comp_level, &level) ||
      !safe_load(blob + l.nmethod_compile_id, &site->compile_id)) {
    return;
  }
  site->nmethod = blob;
  if (java) {
    site->kind = level == 4 ? SiteKind::kC2 : SiteKind::kC1;
    site->stub_name = nullptr;
    int32_t bci;
    if (scope_at(blob, pc, &method, &bci)) {
      site->method = methods_->find_or_add(method);
      if (site->method != nullptr && bci < static_cast<int32_t>(site->method->code_size)) site->bci = bci;
    }
  }
  if (site->method == nullptr) site->method = methods_->find_or_add(own_method);
  if (site->method != nullptr && site->bci >= 0) site->bytecode = bytecode_at(*site->method, site->bci);
}

// The innermost scope of the first PcDesc behind `pc`: a PcDesc describes the code that ends at it.
bool CodeLookup::scope_at(uint64_t nmethod, uint64_t pc, uint64_t* method, int32_t* bci) const {
  const VmLayout& l = *layout_;
  uint64_t code, scopes, data, metadata;
  int32_t pcs_offset, pcs_end;
  if (!safe_load(nmethod + l.nmethod_scopes_pcs_offset, &pcs_offset) ||
      !safe_load(nmethod + l.nmethod_scopes_pcs_end, &pcs_end)) {
    return false;
  }
  if (l.blob_has_code_pointers) {
    int32_t metadata_offset;
    if (!safe_load(nmethod + l.blob_code_begin, &code) || !safe_load(nmethod + l.nmethod_scopes_data, &data) ||
        !safe_load(nmethod + l.nmethod_metadata_offset, &metadata_offset)) {
      return false;
    }
    scopes = nmethod;
    metadata = nmethod + static_cast<uint64_t>(metadata_offset);
  } else {
    int32_t code_offset, data_offset, relocation_bytes;
    if (!safe_load(nmethod + l.blob_code_begin, &code_offset) ||
        !safe_load(nmethod + l.nmethod_scopes_data, &data_offset) ||
        !safe_load(nmethod + l.nmethod_immutable_data, &scopes) ||
        !safe_load(nmethod + l.blob_mutable_data, &metadata) ||
        !safe_load(nmethod + l.blob_relocation_size, &relocation_bytes)) {
      return false;
    }
    code = nmethod + static_cast<uint64_t>(code_offset);
    data = scopes + static_cast<uint64_t>(data_offset);
    metadata += static_cast<uint64_t>(relocation_bytes);
  }
  if (pcs_end <= pcs_offset) return false;

  // Sorted by pc_offset; the first and last entries are sentinels.
  uint64_t first = scopes + static_cast<uint64_t>(pcs_offset);
  uint32_t low = 0, high = static_cast<uint32_t>(pcs_end - pcs_offset) / l.pcdesc_bytes;
  const uint32_t count = high;
  int64_t wanted = static_cast<int64_t>(pc - code);
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    int32_t pc_offset;
    if (!safe_load(first + static_cast<uint64_t>(middle) * l.pcdesc_bytes + l.pcdesc_pc_offset, &pc_offset))
      return false;
    if (pc_offset > wanted) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  if (low >= count) return false;
  int32_t decode_offset;
  if (!safe_load(first + static_cast<uint64_t>(low) * l.pcdesc_bytes + l.pcdesc_scope_decode_offset, &decode_offset) ||
      decode_offset <= 0) {
    return false;  // 0: a sentinel
  }

  // A scope begins with: sender's offset, method, bci + 1 (share/code/scopeDesc.cpp, debugInfo.hpp).
  SafeBytes bytes(data + static_cast<uint64_t>(decode_offset));
  auto next = [&](uint8_t* byte) { return bytes.next(byte); };
  uint32_t sender, index, bci_plus_1;
  if (!read_unsigned5(l.unsigned5_excludes_zero, next, &sender) ||
      !read_unsigned5(l.unsigned5_excludes_zero, next, &index) ||
      !read_unsigned5(l.unsigned5_excludes_zero, next, &bci_plus_1) || index == 0 || index > kMaxMetadata) {
    return false;
  }
  *bci = static_cast<int32_t>(bci_plus_1) - 1;
  return safe_load(metadata + 8 * static_cast<uint64_t>(index - 1), method);
}

// The CodeBlob that holds `pc`, 0 if the memory is free (share/memory/heap.cpp: each segment
// has a byte, 0 at a block's first segment, else how far to go back, 0xFF when free).
uint64_t CodeLookup::find_blob(uint64_t pc) const {
  const VmLayout& l = *layout_;
  for (int i = 0; i < l.code_heap_count; ++i) {
    const VmLayout::CodeHeap& heap = l.code_heaps[i];
    uint64_t low, high, map;
    if (!safe_load(heap.memory_low_slot, &low) || !safe_load(heap.memory_high_slot, &high)) continue;
    if (pc < low || pc >= high || !safe_load(heap.segmap_low_slot, &map)) continue;
    uint64_t segment = (pc - low) >> heap.log2_segment_size;
    for (;;) {
      uint8_t back;
      if (!safe_load(map + segment, &back) || back == 0xff || back > segment) return 0;
      if (back == 0) break;
      segment -= back;
    }
    uint64_t block = low + (segment << heap.log2_segment_size);
    uint8_t used;
    if (!safe_load(block + l.heap_block_used, &used) || used == 0) return 0;
    uint64_t blob = block + l.heap_block_bytes;
    int32_t size;
    if (!safe_load(blob + l.blob_size, &size) || pc < blob || pc - blob >= static_cast<uint64_t>(size)) return 0;
    return blob;
  }
  return 0;
}

uint8_t CodeLookup::bytecode_at(const MethodInfo& method, int32_t bci) const {
  uint8_t code;
  if (!safe_load(method.const_method + layout_->const_method_bytes + static_cast<uint64_t>(bci), &code)) return 0;
  uint32_t rewritten = code - static_cast<uint32_t>(kFirstRewritten);
  return rewritten < sizeof kOriginal && kOriginal[rewritten] != 0 ? kOriginal[rewritten] : code;
}

// A copy of the text at `text` that is made once for each content.
const char* CodeLookup::keep_name(uint64_t text) {
  char name[kMaxStubName];
  size_t length = 0;
  uint32_t hash = 2166136261u;
  SafeBytes bytes(text);
  uint8_t byte;
  while (length < kMaxStubName - 1 && bytes.next(&byte) && byte != 0) {
    name[length++] = static_cast<char>(byte);
    hash = (hash ^ byte) * 16777619u;
  }
  name[length] = '\0';
  for (uint32_t i = 0; i < kMaxNames; ++i) {
    std::atomic<const char*>& slot = known_names_[(hash + i) % kMaxNames];
    const char* known = slot.load(std::memory_order_acquire);
    if (known == nullptr) {
      const char* copy = names_.copy(name, length);
      if (slot.compare_exchange_strong(known, copy, std::memory_order_acq_rel)) return copy;
    }
    if (std::string_view(known) == std::string_view(name, length)) return known;
  }
  return "unknown";
}

}  // namespace classaccess
