// The ways a JVM can run a harness program: execution mode, collector, compressed oops, JDK.
// One table for every parametrised test of this folder.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "tests/jvm/jdk.h"

namespace classaccess {

enum class Execution { kInterpreted, kC1, kC2, kDefault };
enum class Collector { kSerial, kParallel, kG1, kShenandoah, kEpsilon, kZ, kDefault };

struct Mode {
  Jdk jdk;
  Execution execution = Execution::kInterpreted;
  Collector collector = Collector::kSerial;
  bool compressed_oops = true;
  bool churn = false;  // the heap grows, shrinks and is collected 100 times meanwhile
  int threads = 8;
  bool mprotect = false;  // protect=mprotect, else the default back end
  bool compact = false;   // 25: -XX:+UseCompactObjectHeaders
  int rounds = 0;         // 0: what the execution mode needs to be measured well

  // Agent options of this mode, with a leading comma; may be empty.
  std::string agent_options() const { return mprotect ? ",protect=mprotect" : ""; }
  // All flags but the agent; heap size included.
  std::vector<std::string> flags() const;
  // Letters, digits and underscores: jdk17_xint_g1_oops64_churn_8.
  std::string name() const;
  // Why the agent refuses to start, or empty: the text its message must contain.
  std::string refusal() const;
  // The collector works while Java threads run: its barriers load references on their behalf.
  bool concurrent_marking() const;
};

std::ostream& operator<<(std::ostream& out, const Mode& mode);

// The subset of CI, or with CLASSACCESS_FULL=1 every combination.
std::vector<Mode> exact_count_modes();

// Flags of one execution mode.
std::vector<std::string> execution_flags(Execution execution);
std::vector<std::string> collector_flags(Collector collector);

}  // namespace classaccess
