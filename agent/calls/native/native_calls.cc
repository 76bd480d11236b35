#include "agent/calls/native_calls.h"

#include <asm/prctl.h>
#include <cxxabi.h>
#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "agent/base/raw_syscall.h"
#include "agent/calls/call_sink.h"
#include "agent/calls/native/function_search.h"
#include "agent/calls/native/patch_round.h"
#include "agent/calls/native/prologue.h"
#include "agent/calls/native/stub_memory.h"
#include "agent/calls/native_hooks.h"

namespace classaccess {
namespace {

struct Pattern {
  std::string library, symbol, text;
  bool matched = false;
};

std::mutex g_mutex;
std::vector<Pattern> g_patterns;
bool g_prepared = false, g_active = false, g_first_scan = true;
std::atomic<uint64_t> g_seen_changes{0};
std::map<uint64_t, std::string> g_scanned;  // libraries by base
std::map<uint64_t, uint32_t> g_hook_of;     // by entry
std::set<uint64_t> g_listed;                // entries that have a row of this recording

// Which must not have another return address, or none of ours in their first bytes.
const char* must_not_be_hooked(const std::string& library, const std::string& name) {
  static const std::set<std::string> twice = {"setjmp", "_setjmp", "__sigsetjmp", "sigsetjmp", "__setjmp", "savectx",
                                              "getcontext", "__getcontext", "swapcontext", "__swapcontext", "vfork",
                                              "__vfork", "__libc_vfork"};
  static const std::set<std::string> new_stack = {"clone", "__clone", "clone3", "__clone3", "__clone_internal"};
  static const std::set<std::string> caller = {"dlsym", "dlvsym", "dlopen", "dlmopen", "dl_iterate_phdr", "__libc_dlopen_mode"};
  static const std::set<std::string> jumps = {"setcontext", "__setcontext", "__longjmp", "____longjmp_chk"};
  if (twice.count(name) != 0) return "returns more than once, or remembers its return address";
  if (new_stack.count(name) != 0) return "returns on another stack";
  if (caller.count(name) != 0) return "looks at its return address to tell who calls";
  if (jumps.count(name) != 0) return "never returns";
  if (name == "__restore_rt" || name == "__restore") return "unwinders know a signal frame by its bytes";
  if (name.rfind("SafeFetch", 0) == 0 || name.rfind("_SafeFetch", 0) == 0) return "HotSpot expects a fault at its first instruction";
  if (library.rfind("ld-linux", 0) == 0) return "part of the dynamic linker";
  return nullptr;
}

bool is_longjmp(const std::string& name) {
  return name == "longjmp" || name == "_longjmp" || name == "siglongjmp" || name == "__longjmp_chk" ||
         name == "__libc_siglongjmp" || name == "__libc_longjmp";
}

std::string demangled(const std::string& name) {
  if (name.rfind("_Z", 0) != 0) return name;
  int status = 0;
  std::unique_ptr<char, void (*)(void*)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), free);
  return status == 0 && text != nullptr ? text.get() : name;
}

// Whether some pattern wants it; marks those that do.
bool is_wanted(const std::string& library, const std::string& name) {
  bool wanted = false;
  for (Pattern& pattern : g_patterns) {
    if (!matches_glob(pattern.library, library)) continue;
    const bool spelled = pattern.symbol.find("::") != std::string::npos || pattern.symbol.find('(') != std::string::npos;
    if (!matches_glob(pattern.symbol, name) && !(spelled && matches_glob(pattern.symbol, demangled(name)))) continue;
    pattern.matched = wanted = true;
  }
  return wanted;
}

// The hook's stub and the copy of its first instructions. "" or why not.
std::string make_hook(const LoadedLibrary& library, const FunctionCode& code, uint32_t* id_out) {
  Prologue prologue;
  std::string why = plan_prologue(code, &prologue);
  if (!why.empty()) return why;
  if (auto known = g_hook_of.find(code.entry); known != g_hook_of.end()) {
    const NativeHook& hook = g_native_hooks.row(known->second);
    if (hook.moved == prologue.moved && memcmp(hook.original, prologue.original, hook.moved) == 0) {
      *id_out = known->second;
      return "";
    }
    return "another function was hooked at its address before";
  }
  constexpr size_t kStubBytes = 48;
  StubPlace place = take_stub(library.low, library.high, kStubBytes + kMaxCopy);
  if (place.at == 0) return "no free memory within 2 GB of it";
  uint32_t id = g_native_hooks.claim();
  if (id == 0) return "too many functions are hooked";
  // See native_hooks.h. The two addresses come first.
  uint64_t entry = native_entry_address(), trampoline = return_trampoline(id);
  uint8_t stub[kStubBytes + kMaxCopy];
  memset(stub, 0xcc, sizeof(stub));
  memcpy(stub, &entry, 8);
  memcpy(stub + 8, &trampoline, 8);
  size_t at = 16;
  auto put = [&](const void* bytes, size_t count) {
    memcpy(stub + at, bytes, count);
    at += count;
  };
  auto put_32 = [&](int64_t value) {
    auto word = static_cast<int32_t>(value);
    put(&word, 4);
  };
  put("\x68", 1);
  put_32(id);
  put("\xff\x15", 2);
  put_32(-static_cast<int64_t>(at + 4));
  put("\x48\x8d\x64\x24\x10", 5);
  put("\xff\x25", 2);
  put_32(8 - static_cast<int64_t>(at + 4));
  const size_t untimed = at;
  put("\x48\x8d\x64\x24\x08", 5);
  const size_t body = at;
  const size_t length = write_copy(&prologue, place.at + body, stub + body);
  if (length == 0) return "what its first instructions refer to is out of reach of their copy";
  memcpy(place.write, stub, body + length);
  NativeHook& hook = g_native_hooks.row(id);
  hook.entry = code.entry;
  hook.patch = prologue.patch;
  hook.stub = place.at + 16;
  hook.untimed = place.at + untimed;
  hook.body = place.at + body;
  hook.moved = prologue.moved;
  memcpy(hook.original, prologue.original, prologue.moved);
  for (const Prologue::Item& item : prologue.items) {
    if (item.from > 0 && item.from < kJumpBytes) hook.inner[item.from] = item.to;
  }
  const auto distance = static_cast<int64_t>(hook.stub - (hook.patch + kJumpBytes));
  if (distance != static_cast<int32_t>(distance)) return "no free memory within 2 GB of it";
  const auto word = static_cast<int32_t>(distance);
  hook.jump[0] = 0xe9;
  memcpy(hook.jump + 1, &word, 4);
  publish_hook(id);
  g_hook_of[code.entry] = id;
  *id_out = id;
  return "";
}

struct Wanted {
  uint32_t hook = 0, function = 0;
};

// What of one library is wanted and can be hooked; the rest gets its row with the reason.
void collect(const LoadedLibrary& library, Loaded loaded, std::vector<Wanted>* out) {
  std::vector<FoundFunction> functions = functions_of(library);
  std::map<uint64_t, const FoundFunction*> by_entry;
  for (const FoundFunction& function : functions) {
    if (!function.ifunc) by_entry.emplace(function.code.entry, &function);
  }
  void* handle = dlopen(library.path.c_str(), RTLD_NOLOAD | RTLD_LAZY);
  for (const FoundFunction& function : functions) {
    if (function.name.find(".cold") != std::string::npos) continue;
    const bool jumps = is_longjmp(function.name);
    const bool wanted = is_wanted(library.name, function.name);
    if (!wanted && !(jumps && library.name.rfind("libc.", 0) == 0)) continue;
    FunctionCode code = function.code;
    std::string why;
    if (const char* reason = must_not_be_hooked(library.name, function.name)) why = reason;
    if (function.ifunc && why.empty()) {
      // What the resolver has chosen is hooked: the one that calls go to.
      void* chosen = handle != nullptr ? dlsym(handle, function.name.c_str()) : nullptr;
      auto address = reinterpret_cast<uint64_t>(chosen);
      auto known = by_entry.find(address);
      if (address < library.low || address >= library.high) why = "an IFUNC whose choice is not known";
      else if (known != by_entry.end()) code = known->second->code;
      else why = "an IFUNC whose choice has no symbol";
    }
    if (!g_listed.insert(code.entry).second) continue;
    Wanted item;
    if (why.empty()) why = make_hook(library, code, &item.hook);
    if (wanted) {
      if (jumps && why.empty()) {
        add_call_function(FunctionKind::kNative, loaded, function.name.c_str(), library.name.c_str(), code.entry, "never returns");
      } else {
        item.function = add_call_function(FunctionKind::kNative, loaded, function.name.c_str(), library.name.c_str(),
                                          code.entry, why.empty() ? nullptr : why.c_str());
        if (item.function == 0) continue;
      }
    }
    if (!why.empty()) continue;
    NativeHook& hook = g_native_hooks.row(item.hook);
    hook.kind = jumps ? HookKind::kLongjmp : HookKind::kTimed;
    hook.function = item.function;
    out->push_back(item);
  }
  if (handle != nullptr) dlclose(handle);
}

void scan() {
  const uint64_t changes = library_changes();
  if (changes >> 32 != g_seen_changes.load(std::memory_order_relaxed) >> 32) forget_call_sites();
  std::vector<Wanted> wanted;
  std::map<uint64_t, std::string> now;
  for (const LoadedLibrary& library : loaded_libraries()) {
    now[library.base] = library.path;
    auto known = g_scanned.find(library.base);
    if (known != g_scanned.end() && known->second == library.path) continue;
    collect(library, g_first_scan ? Loaded::kAlready : Loaded::kLater, &wanted);
  }
  g_scanned.swap(now);
  g_seen_changes.store(changes, std::memory_order_relaxed);
  g_first_scan = false;
  std::vector<NativeHook*> hooks;
  for (const Wanted& item : wanted) hooks.push_back(&g_native_hooks.row(item.hook));
  if (hooks.empty()) return;
  std::vector<std::string> why;
  put_hooks_in(hooks, &why);
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!why[i].empty() && wanted[i].function != 0) refuse_call_function(wanted[i].function, why[i].c_str());
  }
}

// arch_prctl(ARCH_SHSTK_STATUS): user shadow stacks would miss each replaced return address.
bool has_shadow_stack() {
  constexpr long kStatus = 0x5005;
  uint64_t features = 0;
  return raw_syscall(SYS_arch_prctl, kStatus, reinterpret_cast<long>(&features)) == 0 && (features & 1) != 0;
}

}  // namespace

std::string start_native_calls(const std::vector<std::string>& patterns) {
  std::lock_guard lock(g_mutex);
  if (g_active) return "native calls are timed already";
  if (has_shadow_stack()) {
    return "this process has a user shadow stack (CET), which forbids replaced return addresses: no native function is timed";
  }
  if (!g_prepared) {
    std::string why = prepare_patching();
    if (!why.empty()) return why;
    if (!g_native_hooks.create(kMaxNativeHooks, Keep::kProcess)) return "no memory for the table of hooks";
    g_prepared = true;
  }
  g_patterns.clear();
  for (const std::string& text : patterns) {
    size_t mark = text.find('!');
    if (mark == std::string::npos) continue;
    g_patterns.push_back({text.substr(0, mark), text.substr(mark + 1), text, false});
  }
  g_scanned.clear();
  g_listed.clear();
  g_first_scan = true;
  if (g_native_call_cost.whole == 0) measure_native_cost();
  g_active = true;
  scan();
  return "";
}

void hook_new_libraries() {
  if (library_changes() == g_seen_changes.load(std::memory_order_relaxed)) return;
  std::unique_lock lock(g_mutex, std::try_to_lock);
  if (lock.owns_lock() && g_active) scan();
}

void stop_native_calls() {
  std::lock_guard lock(g_mutex);
  if (!g_active) return;
  g_active = false;
  std::vector<NativeHook*> hooks;
  for (uint32_t i = 1; i < g_native_hooks.end(); ++i) {
    NativeHook& hook = g_native_hooks.row(i);
    if (hook.in_force.load(std::memory_order_relaxed)) hooks.push_back(&hook);
  }
  take_hooks_out(hooks);
  g_seen_changes.store(0, std::memory_order_relaxed);
}

std::vector<std::string> unmatched_native_patterns() {
  std::lock_guard lock(g_mutex);
  std::vector<std::string> out;
  for (const Pattern& pattern : g_patterns) {
    if (!pattern.matched) out.push_back(pattern.text);
  }
  return out;
}

}  // namespace classaccess
