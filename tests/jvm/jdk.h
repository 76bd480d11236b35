// The JDKs of this machine that the tests run on.
//
// Found once: JAVA_HOME, then every folder of /usr/lib/jvm; HotSpot 17 or newer only, each real
// path once. Used by every test of this folder and to name parametrised tests.
// Context: test process, one thread.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace classaccess {

struct Jdk {
  std::string home;  // real path
  std::string name;  // jdk17; jdk17b for a second one of the same version
  int major = 0;

  std::string java() const { return home + "/bin/java"; }
};

std::ostream& operator<<(std::ostream& out, const Jdk& jdk);

// Oldest first. Empty when there is none.
const std::vector<Jdk>& installed_jdks();

// Oldest and newest installed: what CI runs where the whole set is not needed.
const Jdk& oldest_jdk();
const Jdk& newest_jdk();
// Both, or the one there is.
std::vector<Jdk> oldest_and_newest_jdk();

// True if `java FLAGS -version` succeeds, remembered per JDK and flags. On false a test skips with
// the flags as its reason.
bool jdk_accepts(const Jdk& jdk, const std::vector<std::string>& flags);

// CLASSACCESS_FULL=1: every combination instead of the subset of CI.
bool full_run();

}  // namespace classaccess
