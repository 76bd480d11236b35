#include "agent/calls/native/native_calls.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <string.h>

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "agent/calls/call_sink.h"
#include "agent/calls/native/branches_inside.h"
#include "agent/calls/native/function_search.h"
#include "agent/calls/native/make_hook.h"
#include "agent/calls/native/native_cost.h"
#include "agent/calls/native/patch_round.h"
#include "agent/calls/native/shadow_stack.h"
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
std::map<uint64_t, LoadedLibrary> g_scanned;  // by base
std::map<uint64_t, std::string> g_listed;     // entries met in this recording, and under which name

// Which must not have another return address, or none of ours in their first bytes.
const char* must_not_be_hooked(const std::string& library, const std::string& name) {
  static const std::set<std::string> twice = {"setjmp",  "_setjmp",    "__sigsetjmp",  "sigsetjmp",   "__setjmp",
                                              "savectx", "getcontext", "__getcontext", "swapcontext", "__swapcontext",
                                              "vfork",   "__vfork",    "__libc_vfork"};
  static const std::set<std::string> new_stack = {"clone", "__clone", "clone3", "__clone3", "__clone_internal"};
  static const std::set<std::string> caller = {"dlsym",   "dlvsym",          "dlopen",
                                               "dlmopen", "dl_iterate_phdr", "__libc_dlopen_mode"};
  static const std::set<std::string> jumps = {"setcontext", "__setcontext", "__longjmp", "____longjmp_chk"};
  if (twice.count(name) != 0) return "returns more than once, or remembers its return address";
  if (new_stack.count(name) != 0) return "returns on another stack";
  if (caller.count(name) != 0) return "looks at its return address to tell who calls";
  if (jumps.count(name) != 0) return "never returns";
  if (name == "__restore_rt" || name == "__restore") return "unwinders know a signal frame by its bytes";
  if (name.rfind("SafeFetch", 0) == 0 || name.rfind("_SafeFetch", 0) == 0)
    return "HotSpot expects a fault at its first instruction";
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
    const bool spelled =
        pattern.symbol.find("::") != std::string::npos || pattern.symbol.find('(') != std::string::npos;
    if (!matches_glob(pattern.symbol, name) && !(spelled && matches_glob(pattern.symbol, demangled(name)))) continue;
    pattern.matched = wanted = true;
  }
  return wanted;
}

struct Wanted {
  uint32_t hook = 0, function = 0;
};

// Those that other code enters in the middle of their first bytes are refused after all.
void drop_entered_in_the_middle(const LoadedLibrary& library, size_t first, std::vector<Wanted>* out) {
  std::vector<uint64_t> patches;
  if (out->size() == first) return;
  for (size_t i = first; i < out->size(); ++i) patches.push_back(g_native_hooks.row((*out)[i].hook).patch);
  // Asked for longjmp in the C library at every start.
  static std::vector<uint64_t> same, entered;
  if (patches != same) {
    entered = entered_in_the_middle(library.low, library.high, patches);
    same = library.name.rfind("libc.", 0) == 0 ? patches : std::vector<uint64_t>();
  }
  auto is_entered = [&](const Wanted& item) {
    if (!std::binary_search(entered.begin(), entered.end(), g_native_hooks.row(item.hook).patch)) return false;
    if (item.function != 0) refuse_call_function(item.function, "other code branches into its first bytes");
    return true;
  };
  out->erase(std::remove_if(out->begin() + static_cast<std::ptrdiff_t>(first), out->end(), is_entered), out->end());
}

// What of one library is wanted and can be hooked; the rest gets its row with the reason.
void collect(const LoadedLibrary& library, Loaded loaded, std::vector<Wanted>* out) {
  const bool has_longjmp = library.name.rfind("libc.", 0) == 0;
  const size_t first = out->size();
  bool asked = false;
  for (const Pattern& pattern : g_patterns) asked |= matches_glob(pattern.library, library.name);
  if (!asked && !has_longjmp) return;
  // Read once: the C library stays.
  static std::vector<FoundFunction> jumps_of_libc;
  std::vector<FoundFunction> functions;
  if (asked || jumps_of_libc.empty()) functions = functions_of(library);
  if (!asked) {
    std::erase_if(functions, [](const FoundFunction& f) { return !is_longjmp(f.name); });
    if (jumps_of_libc.empty()) jumps_of_libc = functions;
    functions = jumps_of_libc;
  }
  std::map<uint64_t, const FoundFunction*> by_entry;
  for (const FoundFunction& function : functions) {
    if (!function.ifunc) by_entry.emplace(function.code.entry, &function);
  }
  void* handle = dlopen(library.path.c_str(), RTLD_NOLOAD | RTLD_LAZY);
  for (const FoundFunction& function : functions) {
    if (function.name.find(".cold") != std::string::npos) continue;
    const bool jumps = is_longjmp(function.name);
    const bool wanted = is_wanted(library.name, function.name);
    if (!wanted && !(jumps && has_longjmp)) continue;
    FunctionCode code = function.code;
    std::string why;
    if (const char* reason = must_not_be_hooked(library.name, function.name)) why = reason;
    if (function.ifunc && why.empty()) {
      // What the resolver has chosen is hooked: the one that calls go to.
      void* chosen = handle != nullptr ? dlsym(handle, function.name.c_str()) : nullptr;
      auto address = reinterpret_cast<uint64_t>(chosen);
      auto known = by_entry.find(address);
      if (address < library.low || address >= library.high)
        why = "an IFUNC whose choice is not known";
      else if (known != by_entry.end())
        code = known->second->code;
      else {
        // Of a stripped library: the choice is a local function.
        code = FunctionCode();
        code.entry = address;
        code.size = size_by_unwind_table(address);
        code.limit = address + code.size;
        if (code.size == 0) why = "an IFUNC whose choice has neither a symbol nor an unwind table";
      }
    }
    auto [known, is_new] = g_listed.try_emplace(code.entry, function.name);
    if (!is_new) {
      if (wanted && known->second != function.name) {
        add_call_function(FunctionKind::kNative, loaded, function.name.c_str(), library.name.c_str(), code.entry,
                          ("another name of " + known->second).c_str());
      }
      continue;
    }
    Wanted item;
    if (why.empty()) why = make_hook(library.low, library.high, code, &item.hook);
    if (wanted) {
      if (jumps && why.empty()) {
        add_call_function(FunctionKind::kNative, loaded, function.name.c_str(), library.name.c_str(), code.entry,
                          "never returns");
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
  drop_entered_in_the_middle(library, first, out);
}

// It was unloaded, and its hooks with it; it may come again.
void forget_library(const LoadedLibrary& library) {
  g_listed.erase(g_listed.lower_bound(library.low), g_listed.lower_bound(library.high));
  for (uint32_t i = 1; i < g_native_hooks.end(); ++i) {
    NativeHook& hook = g_native_hooks.row(i);
    if (hook.entry < library.low || hook.entry >= library.high) continue;
    hook.in_force.store(false, std::memory_order_release);
    hook.reserved.store(false, std::memory_order_release);
  }
}

void scan() {
  const uint64_t changes = library_changes();
  if (changes >> 32 != g_seen_changes.load(std::memory_order_relaxed) >> 32) forget_call_sites();
  std::vector<Wanted> wanted;
  std::map<uint64_t, LoadedLibrary> now;
  for (const LoadedLibrary& library : loaded_libraries()) now[library.base] = library;
  auto is_same = [](const std::map<uint64_t, LoadedLibrary>& in, const LoadedLibrary& library) {
    auto found = in.find(library.base);
    return found != in.end() && found->second.path == library.path;
  };
  for (const auto& [base, library] : g_scanned) {
    if (!is_same(now, library)) forget_library(library);
  }
  for (const auto& [base, library] : now) {
    if (!is_same(g_scanned, library)) collect(library, g_first_scan ? Loaded::kAlready : Loaded::kLater, &wanted);
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

}  // namespace

std::string start_native_calls(const std::vector<std::string>& patterns) {
  std::lock_guard lock(g_mutex);
  if (g_active) return "native calls are timed already";
  if (has_shadow_stack(g_ask_shadow_stack())) {
    return "this process has a user shadow stack (CET), which forbids replaced return addresses: no native function is "
           "timed";
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
  measure_native_cost();
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
