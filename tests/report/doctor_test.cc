// `classaccess doctor` on machines that are made up: a folder in place of / and answers in place of system calls.
#include "agent/cli/doctor.h"

#include <errno.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "tests/store/query.h"

namespace classaccess {
namespace {

namespace fs = std::filesystem;

class Doctor : public ::testing::Test {
 protected:
  Doctor() {
    places.root = make_directory();
    places.folder = places.root;
    places.agent = places.root + "/libclassaccess.so";
    write("/libclassaccess.so", "");
    write("/proc/cpuinfo", "processor\t: 0\nflags\t\t: fpu pku ospke\n");
    write("/proc/self/status", "Name:\tx\nSeccomp:\t0\n");
    write("/proc/sys/vm/max_map_count", "262144\n");
    write("/proc/sys/vm/overcommit_memory", "0\n");
    write("/proc/sys/kernel/yama/ptrace_scope", "1\n");
    write("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always [advise] never\n");
    probe.protection_keys = [] { return 15; };
    probe.memfd = probe.core_serializing_membarrier = probe.write_own_memory = [] { return 0; };
  }
  void write(const std::string& path, const std::string& text) {
    fs::create_directories(fs::path(places.root + path).parent_path());
    std::ofstream(places.root + path) << text;
  }
  // A JDK with a real libjvm, or a file in its place.
  void add_jdk(const std::string& name, const std::string& version, const std::string& libjvm) {
    std::string home = places.root + "/usr/lib/jvm/" + name;
    write("/usr/lib/jvm/" + name + "/bin/java", "");
    write("/usr/lib/jvm/" + name + "/release", "IMPLEMENTOR=\"Acme\"\nJAVA_VERSION=\"" + version + "\"\n");
    fs::create_directories(home + "/lib/server");
    if (!libjvm.empty()) fs::create_symlink(libjvm, home + "/lib/server/libjvm.so");
  }
  static std::string real_libjvm() {
    for (const auto& entry : fs::directory_iterator("/usr/lib/jvm")) {
      std::string libjvm = entry.path() / "lib/server/libjvm.so";
      if (fs::exists(libjvm)) return libjvm;
    }
    return "";
  }
  Finding find(const std::string& what) {
    for (const Finding& finding : examine(places, probe)) {
      if (finding.what == what) return finding;
    }
    ADD_FAILURE() << "nothing about " << what;
    return {};
  }
  void expect(const std::string& what, Health health, const std::string& found, const std::string& advice) {
    Finding finding = find(what);
    EXPECT_EQ(finding.health, health) << what;
    EXPECT_NE(finding.found.find(found), std::string::npos) << finding.found;
    EXPECT_NE(finding.advice.find(advice), std::string::npos) << finding.advice;
    EXPECT_EQ(finding.advice.empty(), advice.empty()) << finding.advice;
  }

  DoctorPlaces places;
  SystemProbe probe;
};

TEST_F(Doctor, IsContentWithAGoodMachine) {
  ASSERT_FALSE(real_libjvm().empty());
  add_jdk("jdk-17", "17.0.15", real_libjvm());
  std::vector<Finding> all = examine(places, probe);
  for (const Finding& finding : all) {
    // What is this machine's own, not the made-up one's.
    if (finding.what == "ulimit" || finding.what == "LD_PRELOAD") continue;
    EXPECT_NE(finding.health, Health::kBad) << finding.what << ": " << finding.found;
  }
  EXPECT_EQ(exit_status(all), 0);
  expect("JDK", Health::kGood, "usr/lib/jvm/jdk-17: 17.0.15, Acme", "");
  expect("protection keys", Health::kGood, "15 free", "");
  expect("database folder", Health::kGood, "MB free", "");
}

TEST_F(Doctor, Keys) {
  write("/proc/cpuinfo", "flags : fpu\n");
  expect("protection keys", Health::kNote, "this processor has none", "protect=mprotect");
  write("/proc/cpuinfo", "flags : fpu pku\n");
  expect("protection keys", Health::kNote, "the kernel does not use them", "nopku");
  write("/proc/cpuinfo", "flags : fpu pku ospke\n");
  probe.protection_keys = [] { return -EPERM; };
  expect("protection keys", Health::kNote, "pkey_alloc is refused: Operation not permitted", "seccomp profile");
  probe.protection_keys = [] { return -ENOSPC; };
  expect("protection keys", Health::kNote, "all are taken", "protect=mprotect");
}

TEST_F(Doctor, Kernel) {
  probe.memfd = [] { return ENOSYS; };
  expect("memfd_create", Health::kNote, "refused: Function not implemented", "twin=off");
  probe.core_serializing_membarrier = [] { return EPERM; };
  expect("probes in libraries", Health::kNote, "membarrier is refused", "trap each time");
  probe.core_serializing_membarrier = [] { return 0; };
  probe.write_own_memory = [] { return EACCES; };
  expect("probes in libraries", Health::kNote, "/proc/self/mem cannot be written", "trap each time");
  write("/proc/self/status", "Seccomp:\t2\n");
  expect("seccomp", Health::kNote, "a filter is in force", "tried under it");
  write("/proc/sys/vm/max_map_count", "65530\n");
  expect("vm.max_map_count", Health::kGood, "65,530", "");
  write("/proc/sys/vm/max_map_count", "1000\n");
  expect("vm.max_map_count", Health::kNote, "1,000", "sysctl -w vm.max_map_count=65530");
  write("/proc/sys/kernel/yama/ptrace_scope", "2\n");
  expect("ptrace (Yama)", Health::kNote, "ptrace_scope 2", "CAP_SYS_PTRACE");
  write("/proc/sys/kernel/yama/ptrace_scope", "3\n");
  expect("ptrace (Yama)", Health::kNote, "ptrace_scope 3", "-agentpath");
  fs::remove(places.root + "/proc/sys/kernel/yama/ptrace_scope");
  expect("ptrace (Yama)", Health::kGood, "not restricted", "");
  write("/proc/sys/vm/overcommit_memory", "2\n");
  expect("vm.overcommit_memory", Health::kNote, "2", "vm.overcommit_memory=0");
  write("/sys/kernel/mm/transparent_hugepage/shmem_enabled", "always advise [never]\n");
  expect("huge pages of the heap", Health::kGood, "shmem_enabled: never", "`advise` allows them");
}

TEST_F(Doctor, NoJdkIsBad) {
  EXPECT_EQ(exit_status(examine(places, probe)), 1);
  expect("JDK", Health::kBad, "none found", "openjdk-17-jdk-headless");
}

TEST_F(Doctor, JdksThatCannotBeUsed) {
  add_jdk("a-jre", "17.0.1", "");
  add_jdk("b-text", "17.0.1", places.root + "/proc/cpuinfo");
  add_jdk("c-other-vm", "17.0.1", "/proc/self/exe");
  ASSERT_FALSE(real_libjvm().empty());
  add_jdk("d-old", "11.0.2", real_libjvm());
  std::vector<Finding> all = examine_jdks(places);
  ASSERT_EQ(all.size(), 5u);
  const char* const advices[] = {"no lib/server/libjvm.so", "not for x86-64",
                                 "does not export gHotSpotVMStructs, gHotSpotVMTypes, gHotSpotVMIntConstants",
                                 "17, 21 and 25 are supported", "install a HotSpot JDK"};
  for (size_t i = 0; i < 5; ++i) EXPECT_NE(all[i].advice.find(advices[i]), std::string::npos) << all[i].advice;
  EXPECT_EQ(all[4].health, Health::kBad);
  // One that can be used makes the others notes; the same home twice is one JDK.
  add_jdk("e-new", "25.0.3", real_libjvm());
  fs::create_directory_symlink(places.root + "/usr/lib/jvm/e-new", places.root + "/usr/lib/jvm/f-alias");
  all = examine_jdks(places);
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[4].health, Health::kGood);
  EXPECT_EQ(exit_status(all), 0);
}

TEST_F(Doctor, FolderAndAgent) {
  places.folder = places.root + "/none";
  expect("database folder", Health::kBad, "No such file or directory", "out=");
  places.agent = places.root + "/none.so";
  expect("agent", Health::kBad, "libclassaccess.so was not found", "CLASSACCESS_AGENT");
}

TEST_F(Doctor, Text) {
  EXPECT_EQ(findings_text({{Health::kGood, "a", "fine", ""}, {Health::kNote, "second", "so so", "do this"}}, 80),
            "ok    a       fine\n"
            "note  second  so so\n"
            "              -> do this\n"
            "\nReady to record.\n");
  EXPECT_EQ(findings_text({{Health::kBad, "a", "none", ""}}, 80),
            "BAD   a  none\n\nNothing can be recorded before what is marked BAD is put right.\n");
}

// On the machine of the test: whatever it says, it says it without changing anything.
TEST_F(Doctor, RealProbesGiveBackWhatTheyTake) {
  SystemProbe real = real_probe();
  EXPECT_EQ(real.protection_keys(), real.protection_keys());
  EXPECT_EQ(real.memfd(), real.memfd());
  EXPECT_EQ(real.core_serializing_membarrier(), real.core_serializing_membarrier());
  EXPECT_EQ(real.write_own_memory(), real.write_own_memory());
}

}  // namespace
}  // namespace classaccess
