// What `classaccess run` calls in the process it has loaded this library into, at the program's
// entry address: the launcher's JNI_CreateJavaVM gets -agentpath among its options. Neither
// command line nor environment says so.
//
// Fact (17 to 25): java's launcher library libjli.so is there at the program's entry, opens
// libjvm.so by dlopen and finds JNI_CreateJavaVM by dlsym. A program that is linked with
// libjvm itself has a GOT slot for it.
#include <dlfcn.h>
#include <jni.h>
#include <link.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <string>
#include <vector>

#include "agent/jvmti/control_thread.h"
#include "agent/protect/got_patch.h"

namespace classaccess {
namespace {

using CreateJavaVm = jint(JNICALL*)(JavaVM**, void**, void*);
using Dlsym = void* (*)(void*, const char*);

CreateJavaVm g_create;
Dlsym g_dlsym;
constexpr int kMaxPatched = 64;
uint64_t g_patched[kMaxPatched];  // an address in each patched library
int g_patched_count;

void* hooked_dlsym(void* library, const char* name);
jint JNICALL create_java_vm(JavaVM** vm, void** env, void* arguments);

void set_stage(InjectionStage stage) {
  ControlBlock* block = g_control.block();
  block->stage.store(static_cast<uint32_t>(stage), std::memory_order_release);
  syscall(SYS_futex, &block->stage, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

void unpatch() {
  for (int i = 0; i < g_patched_count; ++i) {
    patch_got(g_patched[i], "dlsym", reinterpret_cast<void*>(g_dlsym), nullptr);
    if (g_create != nullptr) patch_got(g_patched[i], "JNI_CreateJavaVM", reinterpret_cast<void*>(g_create), nullptr);
  }
  g_patched_count = 0;
}

jint JNICALL create_java_vm(JavaVM** vm, void** env, void* arguments) {
  unpatch();
  Dl_info self;
  auto* given = static_cast<JavaVMInitArgs*>(arguments);
  if (given == nullptr || dladdr(reinterpret_cast<void*>(create_java_vm), &self) == 0) {
    return g_create(vm, env, arguments);
  }
  const char* options = g_control.block()->start_options;
  std::string agent = std::string("-agentpath:") + self.dli_fname;
  if (options[0] != '\0') agent += std::string("=") + options;
  std::vector<JavaVMOption> all(given->options, given->options + given->nOptions);
  JavaVMOption ours = {agent.data(), nullptr};
  all.push_back(ours);
  JavaVMInitArgs more = *given;
  more.nOptions = static_cast<jint>(all.size());
  more.options = all.data();
  set_stage(InjectionStage::kCreating);
  return g_create(vm, env, &more);
}

void* hooked_dlsym(void* library, const char* name) {
  if (name == nullptr || strcmp(name, "JNI_CreateJavaVM") != 0) return g_dlsym(library, name);
  void* found = g_dlsym(library, name);
  if (found == nullptr) return nullptr;
  g_create = reinterpret_cast<CreateJavaVm>(found);
  return reinterpret_cast<void*>(create_java_vm);
}

// The program itself, libjli, and whatever else is loaded but for the C library and us.
int patch_one(dl_phdr_info* info, size_t, void* own_base) {
  if (info->dlpi_addr == *static_cast<const uint64_t*>(own_base) || g_patched_count == kMaxPatched) return 0;
  if (strstr(info->dlpi_name, "/libc.so") != nullptr || strstr(info->dlpi_name, "/ld-linux") != nullptr) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
    g_patched[g_patched_count++] = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
    break;
  }
  return 0;
}

}  // namespace
}  // namespace classaccess

// `control`: the path of the control file. 0: done; else the file's answer says why not.
extern "C" __attribute__((visibility("default"))) int classaccess_injected(const char* control) {
  using namespace classaccess;
  if (!g_control.adopt(control)) return 1;
  g_dlsym = dlsym;
  Dl_info self;
  link_map* map = nullptr;
  dladdr1(reinterpret_cast<void*>(classaccess_injected), &self, reinterpret_cast<void**>(&map), RTLD_DL_LINKMAP);
  uint64_t own_base = map->l_addr;
  dl_iterate_phdr(patch_one, &own_base);
  int slots = 0;
  for (int i = 0; i < g_patched_count; ++i) {
    slots += patch_got(g_patched[i], "dlsym", reinterpret_cast<void*>(hooked_dlsym), nullptr);
    void* bound = nullptr;
    slots += patch_got(g_patched[i], "JNI_CreateJavaVM", reinterpret_cast<void*>(create_java_vm), &bound);
    if (bound != nullptr) g_create = reinterpret_cast<CreateJavaVm>(bound);
  }
  if (g_create == nullptr) g_create = reinterpret_cast<CreateJavaVm>(dlsym(RTLD_DEFAULT, "JNI_CreateJavaVM"));
  set_stage(slots != 0 ? InjectionStage::kLoaded : InjectionStage::kFailed);
  return 0;
}
