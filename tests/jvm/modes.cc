#include "tests/jvm/modes.h"

#include <ostream>

namespace classaccess {
namespace {

const char* execution_name(Execution e) {
  switch (e) {
    case Execution::kInterpreted: return "xint";
    case Execution::kC1: return "c1";
    case Execution::kC2: return "c2";
    case Execution::kDefault: return "tiered";
  }
  return "";
}

const char* collector_name(Collector c) {
  switch (c) {
    case Collector::kSerial: return "Serial";
    case Collector::kParallel: return "Parallel";
    case Collector::kG1: return "G1";
    case Collector::kShenandoah: return "Shenandoah";
    case Collector::kEpsilon: return "Epsilon";
    case Collector::kZ: return "Z";
    case Collector::kDefault: return "Default";
  }
  return "";
}

constexpr Collector kCollectors[] = {Collector::kSerial, Collector::kParallel, Collector::kG1, Collector::kShenandoah,
                                     Collector::kEpsilon};

}  // namespace

std::vector<std::string> execution_flags(Execution execution) {
  // Compiled: the measured methods at their first call, nothing else, so that a start takes no longer.
  std::vector<std::string> compiled = {"-Xcomp", "-XX:CompileCommand=quiet",
                                       "-XX:CompileCommand=compileonly,counts.*::*",
                                       "-XX:CompileCommand=dontinline,counts.Elements::*"};
  switch (execution) {
    case Execution::kInterpreted: return {"-Xint"};
    case Execution::kC1: compiled.insert(compiled.begin(), "-XX:TieredStopAtLevel=1"); return compiled;
    case Execution::kC2: compiled.insert(compiled.begin(), "-XX:-TieredCompilation"); return compiled;
    case Execution::kDefault: return {};
  }
  return {};
}

std::vector<std::string> collector_flags(Collector collector) {
  switch (collector) {
    case Collector::kDefault: return {};
    case Collector::kEpsilon: return {"-XX:+UnlockExperimentalVMOptions", "-XX:+UseEpsilonGC"};
    default: return {std::string("-XX:+Use") + collector_name(collector) + "GC"};
  }
}

std::vector<std::string> Mode::flags() const {
  std::vector<std::string> all = execution_flags(execution);
  for (const std::string& flag : collector_flags(collector)) all.push_back(flag);
  if (!compressed_oops) all.push_back("-XX:-UseCompressedOops");
  if (compact) all.push_back("-XX:+UseCompactObjectHeaders");
  if (churn) {
    for (const char* flag : {"-Xms8m", "-Xmx256m", "-XX:MinHeapFreeRatio=10", "-XX:MaxHeapFreeRatio=20"}) {
      all.push_back(flag);
    }
  } else if (collector != Collector::kDefault) {
    all.push_back("-Xmx256m");
  }
  return all;
}

std::string Mode::name() const {
  std::string text =
      jdk.name + (compact ? "compact_" : "_") + execution_name(execution) + "_" + collector_name(collector);
  if (!compressed_oops) text += "_oops64";
  if (churn) text += "_churn";
  if (mprotect) text += "_mprotect";
  return text + "_" + std::to_string(threads);
}

std::string Mode::refusal() const {
  if (collector == Collector::kZ) return "ZGC is not supported";
  if (collector == Collector::kShenandoah && mprotect) return "Shenandoah is not supported with protect=mprotect";
  return "";
}

bool Mode::concurrent_marking() const {
  return collector == Collector::kG1 || collector == Collector::kShenandoah || collector == Collector::kDefault;
}

std::ostream& operator<<(std::ostream& out, const Mode& mode) { return out << mode.name(); }

std::vector<Mode> exact_count_modes() {
  std::vector<Mode> modes;
  if (full_run()) {
    for (const Jdk& jdk : installed_jdks()) {
      for (Execution execution : {Execution::kInterpreted, Execution::kC1, Execution::kC2}) {
        for (Collector collector : kCollectors) {
          for (bool compressed : {true, false}) {
            for (bool churn : {false, true}) {
              if (churn && collector == Collector::kEpsilon) continue;  // never collects
              modes.push_back(Mode{jdk, execution, collector, compressed, churn, 8});
              if (jdk.major >= 24) {
                modes.push_back(modes.back());
                modes.back().compact = true;
              }
              if (collector != Collector::kShenandoah)
                modes.push_back(Mode{jdk, execution, collector, compressed, churn, 8, true});
            }
          }
        }
        modes.push_back(Mode{jdk, execution, Collector::kSerial, true, false, 1});
      }
      modes.push_back(Mode{jdk, Execution::kDefault, Collector::kDefault, true, false, 8});
    }
    return modes;
  }
  // What the cells of the matrix (matrix.h) leave out: many threads, collections meanwhile, the defaults.
  for (const Jdk& jdk : installed_jdks()) {
    bool oldest = jdk.home == oldest_jdk().home;
    modes.push_back(Mode{jdk, Execution::kInterpreted, Collector::kSerial, true, false, 1});
    modes.push_back(
        Mode{jdk, Execution::kInterpreted, oldest ? Collector::kSerial : Collector::kParallel, true, true, 8});
    modes.push_back(
        Mode{jdk, Execution::kInterpreted, oldest ? Collector::kG1 : Collector::kShenandoah, true, true, 8});
    modes.push_back(
        Mode{jdk, Execution::kInterpreted, oldest ? Collector::kG1 : Collector::kParallel, true, true, 8, true});
    modes.push_back(Mode{jdk, Execution::kC2, oldest ? Collector::kG1 : Collector::kSerial, true, false, 8});
    modes.push_back(Mode{jdk, Execution::kDefault, Collector::kDefault, true, false, 8});
  }
  Mode compact{newest_jdk(), Execution::kInterpreted, Collector::kG1, true, true, 8};
  compact.compact = true;
  if (newest_jdk().major >= 24) modes.push_back(compact);
  return modes;
}

}  // namespace classaccess
