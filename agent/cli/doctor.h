// `classaccess doctor`: what this machine and its JVMs offer, and what to do about what is missing.
//
// What the kernel says is read below `root`, so tests give a folder of their own; system calls are
// tried by `probe`. Nothing is changed: what is tried is given back.
// Context: the classaccess command.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace classaccess {

enum class Health {
  kGood,
  kNote,  // works, but slower or with less: exit status 0
  kBad,   // nothing can be recorded before this is put right: exit status 1
};

struct Finding {
  Health health = Health::kGood;
  std::string what, found;
  std::string advice;  // empty if there is nothing to do
};

// What can only be found out by trying. Each gives 0 or errno; protection_keys the number of free ones, or -errno.
struct SystemProbe {
  std::function<int()> protection_keys, memfd, core_serializing_membarrier, write_own_memory;
};
SystemProbe real_probe();

struct DoctorPlaces {
  std::string root;               // before /proc, /sys, /usr/lib/jvm; empty: the real ones
  std::string folder = ".";       // where the database would be
  std::string agent;              // --agent
  std::vector<std::string> jdks;  // homes to look at beside those of /usr/lib/jvm: JAVA_HOME, that of `java`
};

std::vector<Finding> examine(const DoctorPlaces& places, const SystemProbe& probe);
// JDKs below /usr/lib/jvm and `jdks`, each real path once.
std::vector<Finding> examine_jdks(const DoctorPlaces& places);

// The findings as text, and the exit status.
std::string findings_text(const std::vector<Finding>& findings, size_t width);
int exit_status(const std::vector<Finding>& findings);

// JAVA_HOME and the home of the `java` on PATH, if there are any.
std::vector<std::string> jdks_of_environment();

}  // namespace classaccess
