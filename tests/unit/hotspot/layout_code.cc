// Methods, line tables and PCs against JVMTI.
#include <jvmti.h>
#include <jvmticmlr.h>

#include "agent/base/safe_load.h"
#include "tests/unit/hotspot/layout_agent.h"

namespace classaccess::layout_test {
namespace {

// A jmethodID is a pointer to a slot with the Method* (17 to 25).
uint64_t method_of(jmethodID id) {
  uint64_t method = 0;
  safe_load(reinterpret_cast<uint64_t>(id), &method);
  return method;
}

// A frame as the interpreter makes it: Method* three words below rbp, bytecode pointer in r13.
void check_interpreted(const MethodInfo& row, int32_t bci, const unsigned char* class_file, const std::string& what) {
  uint64_t frame[4] = {row.method, 0, 0, 0};
  uint64_t rbp = reinterpret_cast<uint64_t>(&frame[3]);
  uint64_t codes = row.const_method + g_state.layout.const_method_bytes;
  uint64_t pc = g_state.layout.interpreter_low + 256;
  CodeSite site = g_state.code.lookup(pc, rbp, codes + static_cast<uint64_t>(bci));
  check(site.kind == SiteKind::kInterpreted && site.method == &row && site.bci == bci, "interpreted bci", what);
  if (site.bytecode < 203) check(site.bytecode == class_file[bci], "interpreted bytecode", what);
  CodeSite outside = g_state.code.lookup(pc, rbp, codes + row.code_size);
  check(outside.method == &row && outside.bci == -1, "r13 outside", what);
}

void check_lines(jmethodID id, const MethodInfo& row, const unsigned char* codes, const std::string& what) {
  jint count = 0;
  jvmtiLineNumberEntry* table = nullptr;
  if (g_state.jvmti->GetLineNumberTable(id, &count, &table) != JVMTI_ERROR_NONE) {
    check(row.line_table == nullptr, "no line table", what);
    return;
  }
  for (jint i = 0; i < count; ++i) {
    // Several entries may have one bci: the first counts, as in HotSpot's own look-up.
    bool repeated = false;
    for (jint j = 0; j < i; ++j) repeated |= table[j].start_location == table[i].start_location;
    if (repeated) continue;
    uint32_t line = MethodTable::line_of(row, static_cast<int32_t>(table[i].start_location));
    check(line == static_cast<uint32_t>(table[i].line_number), "line number",
          what + " bci " + std::to_string(table[i].start_location) + " line " + std::to_string(line));
    check_interpreted(row, static_cast<int32_t>(table[i].start_location), codes, what);
  }
  g_state.jvmti->Deallocate(reinterpret_cast<unsigned char*>(table));
}

void check_method(jmethodID id, const std::string& holder) {
  char *name = nullptr, *signature = nullptr;
  g_state.jvmti->GetMethodName(id, &name, &signature, nullptr);
  std::string what = holder + "." + name + signature;
  MethodInfo* row = g_state.methods.find_or_add(method_of(id));
  check(row != nullptr, "method row", what);
  if (row != nullptr) {
    std::string found = std::string(g_state.classes.row(row->holder_class_id).name) + "." + row->name + row->signature;
    check(found == what, "method name", what + " read as " + found);
    check(g_state.methods.find(row->method) == row, "method found again", what);
    jint size = 0;
    unsigned char* codes = nullptr;
    if (g_state.jvmti->GetBytecodes(id, &size, &codes) == JVMTI_ERROR_NONE) {
      check(row->code_size == static_cast<uint32_t>(size), "code size", what);
      check_lines(id, *row, codes, what);
      g_state.jvmti->Deallocate(codes);
    }
  }
  g_state.jvmti->Deallocate(reinterpret_cast<unsigned char*>(name));
  g_state.jvmti->Deallocate(reinterpret_cast<unsigned char*>(signature));
}

uint8_t class_file_bytecode(jmethodID id, jint bci) {
  jint size = 0;
  unsigned char* codes = nullptr;
  uint8_t code = 0;
  if (g_state.jvmti->GetBytecodes(id, &size, &codes) == JVMTI_ERROR_NONE) {
    if (bci >= 0 && bci < size) code = codes[bci];
    g_state.jvmti->Deallocate(codes);
  }
  return code;
}

void check_record(uint64_t code, uint64_t before, const PCStackInfo& info) {
  uint64_t pc = reinterpret_cast<uint64_t>(info.pc);
  // The record stands for the code between the one before and itself.
  for (uint64_t at : {before, pc - 1}) {
    if (at < code || at >= pc) continue;
    CodeSite site = g_state.code.lookup(at, 0, 0);
    check(site.kind == SiteKind::kC1 || site.kind == SiteKind::kC2, "compiled kind", std::to_string(at));
    bool same = site.method != nullptr && site.method->method == method_of(info.methods[0]) && site.bci == info.bcis[0];
    std::string what = site.method == nullptr ? "no method"
                                              : std::string(site.method->name) + " bci " + std::to_string(site.bci) +
                                                    ", expected " + std::to_string(info.bcis[0]);
    check(same, "pc to method and bci", what);
    check(g_state.code.still_valid(site), "site still valid", what);
    CodeSite recycled = site;
    ++recycled.compile_id;
    check(!g_state.code.still_valid(recycled), "recycled code told", what);
    if (site.bci >= 0 && site.bytecode < 203) {
      uint8_t expected = class_file_bytecode(info.methods[0], info.bcis[0]);
      if (expected != 0) check(site.bytecode == expected, "bytecode", what + " " + std::to_string(site.bytecode));
    }
  }
}

}  // namespace

void check_methods(JNIEnv* jni) {
  jint count = 0;
  jclass* classes = nullptr;
  g_state.jvmti->GetLoadedClasses(&count, &classes);
  for (jint i = 0; i < count; ++i) {
    jint methods = 0;
    jmethodID* ids = nullptr;
    if (g_state.jvmti->GetClassMethods(classes[i], &methods, &ids) == JVMTI_ERROR_NONE) {
      std::string holder = class_name(classes[i]);
      for (jint j = 0; j < methods; ++j) check_method(ids[j], holder);
      g_state.jvmti->Deallocate(reinterpret_cast<unsigned char*>(ids));
    }
    jni->DeleteLocalRef(classes[i]);
  }
  g_state.jvmti->Deallocate(reinterpret_cast<unsigned char*>(classes));
  require_checks("method name", 5000);
  require_checks("line number", 5000);
  require_checks("pc to method and bci", 2000);
  require_checks("bytecode", 1000);
  uint64_t libjvm = g_state.vm.anchor();
  check(g_state.code.lookup(g_state.layout.libjvm_text_low + 64, 0, 0).kind == SiteKind::kVm, "libjvm text", "low");
  check(g_state.code.lookup(libjvm, 0, 0).kind == SiteKind::kNative, "libjvm data", "anchor");
  CodeSite interpreter = g_state.code.lookup(g_state.layout.interpreter_low + 256, 0, 0);
  require_checks("interpreted bci", 5000);
  require_checks("interpreted bytecode", 5000);
  check(interpreter.kind == SiteKind::kInterpreted && interpreter.method == nullptr, "interpreter range", "no frame");
}

void check_compiled(jmethodID method, jint code_size, const void* code, const void* compile_info) {
  uint64_t begin = reinterpret_cast<uint64_t>(code);
  CodeSite site = g_state.code.lookup(begin, 0, 0);
  bool known = site.method != nullptr && (site.nmethod != 0);
  check(known, "compiled code found", std::to_string(begin));
  if (!known) return;
  auto* header = static_cast<const jvmtiCompiledMethodLoadRecordHeader*>(compile_info);
  for (; header != nullptr; header = header->next) {
    if (header->kind != JVMTI_CMLR_INLINE_INFO) continue;
    auto* record = reinterpret_cast<const jvmtiCompiledMethodLoadInlineRecord*>(header);
    uint64_t before = begin;
    for (jint i = 0; i < record->numpcs; ++i) {
      const PCStackInfo& info = record->pcinfo[i];
      if (info.numstackframes > 0) check_record(begin, before, info);
      before = reinterpret_cast<uint64_t>(info.pc);
    }
  }
  // Behind the last instruction only the compilation's own method is left.
  CodeSite last = g_state.code.lookup(begin + static_cast<uint64_t>(code_size) - 1, 0, 0);
  check(last.nmethod == site.nmethod && last.method != nullptr, "end of code", std::to_string(begin));
  // A method handle intrinsic's jmethodID may belong to one of its siblings: Java code only.
  if (last.bci == -1 && last.kind != SiteKind::kStub)
    check(last.method->method == method_of(method), "own method", last.method->name);
}

}  // namespace classaccess::layout_test
