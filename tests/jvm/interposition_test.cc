// libjvm's mapping calls under the agent: what the heap's memory looks like from outside.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"
#include "tests/jvm/modes.h"

namespace classaccess {
namespace {

struct Mapping {
  uint64_t low = 0, high = 0, offset = 0;
  bool accessible = false, twin_file = false;
  int64_t pss_kb = 0, key = 0;
};

std::vector<Mapping> mappings_of(pid_t pid) {
  std::vector<Mapping> all;
  std::ifstream file("/proc/" + std::to_string(pid) + "/smaps");
  for (std::string line; std::getline(file, line);) {
    Mapping m;
    char permissions[8] = {};
    if (sscanf(line.c_str(), "%lx-%lx %7s %lx", &m.low, &m.high, permissions, &m.offset) == 4) {
      m.accessible = std::string(permissions).find_first_of("rwx") != std::string::npos;
      m.twin_file = line.find("memfd:classaccess-heap") != std::string::npos;
      all.push_back(m);
    } else if (line.rfind("ProtectionKey:", 0) == 0 && !all.empty()) {
      all.back().key = std::strtoll(line.c_str() + 14, nullptr, 10);
    } else if (line.rfind("Pss:", 0) == 0 && !all.empty()) {
      all.back().pss_kb = std::strtoll(line.c_str() + 4, nullptr, 10);
    }
  }
  return all;
}

class Interposition : public JavaTest {
 protected:
  // Runs a program that prints GATE and waits for its last argument, the file gate().
  template <typename F>
  void at_gate(const JavaRun& java, F&& f) {
    std::remove(gate().c_str());
    std::remove(path("stdout").c_str());
    Process process(spec(java));
    ASSERT_TRUE(wait_until([&] { return read_text(path("stdout")).find("GATE\n") != std::string::npos; }, 90))
        << read_text(path("stderr"));
    f(process.pid());
    std::ofstream(gate()) << "go";
    ProcessResult result = process.wait();
    expect_done(result);
    EXPECT_EQ(result.err, "");
  }
  std::string gate() const { return path("gate"); }
};

struct Place {
  const char* name;
  std::vector<std::string> flags;
};
class TwinPlace : public Interposition, public ::testing::WithParamInterface<Place> {};

// A probe or a displaced copy that meets an address outside the heap must fault.
TEST_P(TwinPlace, TheImageOfEveryOtherAddressIsNotMapped) {
  for (const Jdk& jdk : installed_jdks()) {
    SCOPED_TRACE(jdk.name);
    JavaRun java{jdk,
                 GetParam().flags,
                 "threads=nobody,twin=on,out=" + path(jdk.name + ".db"),
                 {"Attached", "1", "1", gate()},
                 "",
                 120};
    at_gate(java, [&](pid_t pid) {
      std::vector<Mapping> all = mappings_of(pid);
      std::vector<Mapping> views;
      for (const Mapping& m : all) {
        if (m.twin_file) views.push_back(m);
      }
      ASSERT_GE(views.size(), 2u);
      // The twin is mapped whole and never closed, but for what lies in front of a heap with a base.
      auto is_twin = [](const Mapping& m) { return m.accessible && m.key == 0; };
      ASSERT_EQ(std::count_if(views.begin(), views.end(), is_twin), 1);
      const Mapping& twin = *std::find_if(views.begin(), views.end(), is_twin);
      const uint64_t start = twin.low - twin.offset;
      uint64_t distance = 0;
      for (const Mapping& m : views) {
        if (m.low - m.offset != start) distance = start - (m.low - m.offset);
      }
      ASSERT_NE(distance, 0u);
      const uint64_t low = twin.low - distance, high = twin.high - distance;
      int checked = 0;
      for (const Mapping& m : all) {
        if (!m.accessible || (m.low >= low && m.high <= high)) continue;
        uint64_t from = m.low + distance, to = m.high + distance;
        ++checked;
        for (const Mapping& other : all) {
          EXPECT_FALSE(other.accessible && from < other.high && other.low < to)
              << std::hex << "the image of " << m.low << "-" << m.high << " meets " << other.low << "-" << other.high;
        }
      }
      EXPECT_GT(checked, 50);
      std::printf("%s: heap at %lx, distance %lx, %d mappings\n", jdk.name.c_str(), low, distance, checked);
    });
  }
}

INSTANTIATE_TEST_SUITE_P(
    Heaps, TwinPlace,
    ::testing::Values(Place{"Unscaled", {"-XX:+UseSerialGC", "-Xmx256m", "-XX:HeapBaseMinAddress=1g"}},
                      Place{"ZeroBased", {"-XX:+UseG1GC", "-Xmx8g", "-Xms32m"}},
                      Place{"Based", {"-XX:+UseParallelGC", "-Xmx256m", "-XX:HeapBaseMinAddress=40g"}},
                      Place{"Wide", {"-XX:+UseSerialGC", "-Xmx256m", "-XX:-UseCompressedOops"}},
                      Place{"Huge", {"-XX:+UseG1GC", "-Xmx60g", "-Xms32m"}}),
    [](const auto& place) { return std::string(place.param.name); });

class GivenBack : public Interposition, public ::testing::WithParamInterface<Collector> {};

// What the VM uncommits is given back: the heap holds as much memory as without the agent.
TEST_P(GivenBack, TheHeapIsAsSmallAsWithoutTheAgent) {
  for (const Jdk& jdk :
       full_run() ? installed_jdks() : std::vector<Jdk>{GetParam() == Collector::kG1 ? newest_jdk() : oldest_jdk()}) {
    SCOPED_TRACE(jdk.name);
    std::vector<std::string> flags = collector_flags(GetParam());
    for (const char* flag : {"-XX:+UnlockExperimentalVMOptions", "-XX:ShenandoahUncommitDelay=200",
                             "-XX:ShenandoahGuaranteedGCInterval=500", "-Xms16m", "-Xmx512m", "-XX:MinHeapFreeRatio=10",
                             "-XX:MaxHeapFreeRatio=20"}) {
      flags.push_back(flag);
    }
    if (!jdk_accepts(jdk, flags)) continue;
    int64_t heap[2] = {}, total[2] = {};
    for (bool traced : {false, true}) {
      JavaRun java{jdk, flags, std::nullopt, {"Shrink", "300", "2", gate()}, "", 150};
      if (traced) java.agent_options = "threads=nobody,out=" + path(jdk.name + ".db");
      at_gate(java, [&](pid_t pid) {
        // Of 512 MB: below 4 GB, unscaled.
        for (const Mapping& m : mappings_of(pid)) {
          total[traced] += m.pss_kb;
          if (m.twin_file || (m.low >= 0xe0000000 && m.high <= 0x100000000)) heap[traced] += m.pss_kb;
        }
      });
    }
    std::printf("%s: Pss of the heap %ld kB, traced %ld kB; of the process %ld kB, %ld kB\n", jdk.name.c_str(), heap[0],
                heap[1], total[0], total[1]);
    EXPECT_GT(heap[0], 4 << 10) << "the heap was not found";
    EXPECT_LE(heap[1], heap[0] + heap[0] / 10);
    EXPECT_LE(total[1], total[0] + total[0] / 10 + (40 << 10)) << "the agent's own tables are small";
  }
}

INSTANTIATE_TEST_SUITE_P(Collectors, GivenBack,
                         ::testing::Values(Collector::kSerial, Collector::kParallel, Collector::kG1,
                                           Collector::kShenandoah),
                         [](const auto& param) { return test_name(collector_flags(param.param).back().substr(8)); });

struct Option {
  const char* name;
  std::vector<std::string> flags;
  const char* refused = nullptr;  // the flag in the message, if this machine lets it be on
};
class HeapOption : public Interposition, public ::testing::WithParamInterface<Option> {};

// Each works as without the agent, or stops the start and is named.
TEST_P(HeapOption, WorksOrIsRefusedByName) {
  const Option& option = GetParam();
  for (const Jdk& jdk : installed_jdks()) {
    SCOPED_TRACE(jdk.name);
    if (!jdk_accepts(jdk, option.flags)) continue;
    JavaRun java{jdk, option.flags, "out=" + path(jdk.name + ".db"), {"Quiet"}, "", 150};
    ProcessResult result = run(java);
    if (option.refused != nullptr && result.status == 1) {
      EXPECT_NE(result.err.find(std::string("classaccess: -XX:") + option.refused + " is not supported"),
                std::string::npos)
          << result.err;
      EXPECT_FALSE(file_exists(path(jdk.name + ".db")));
      continue;
    }
    expect_status(result, 7);  // Quiet's own
    EXPECT_EQ(result.err.find("classaccess:"), std::string::npos) << result.err;
    Database db(path(jdk.name + ".db"), true);
    ASSERT_TRUE(db.is_open()) << db.error();
    EXPECT_GT(db.diagnostic("accesses"), 1000);
    EXPECT_LT(db.diagnostic("unresolved") * 10000, db.diagnostic("accesses"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Flags, HeapOption,
    ::testing::Values(
        Option{"PretouchSerial", {"-XX:+UseSerialGC", "-Xms16m", "-Xmx128m", "-XX:+AlwaysPreTouch"}},
        Option{"PretouchG1", {"-XX:+UseG1GC", "-Xms16m", "-Xmx128m", "-XX:+AlwaysPreTouch"}},
        Option{"PretouchShenandoah", {"-XX:+UseShenandoahGC", "-Xms16m", "-Xmx128m", "-XX:+AlwaysPreTouch"}},
        Option{"TransparentHugePages", {"-XX:+UseParallelGC", "-Xmx128m", "-XX:+UseTransparentHugePages"}},
        Option{"LargePages", {"-XX:+UseSerialGC", "-Xmx128m", "-XX:+UseLargePages"}, "+UseLargePages"},
        Option{"Numa", {"-XX:+UseParallelGC", "-Xmx128m", "-XX:+UseNUMA"}, "+UseNUMA"},
        Option{"AllocateHeapAt", {"-XX:+UseSerialGC", "-Xmx64m", "-XX:AllocateHeapAt=/tmp"}, "AllocateHeapAt"},
        Option{"NearRam", {"-XX:+UseG1GC", "-XX:MaxRAMPercentage=95"}},
        Option{"WideAlignment", {"-XX:+UseParallelGC", "-Xmx40g", "-Xms32m", "-XX:ObjectAlignmentInBytes=16"}}),
    [](const auto& option) { return std::string(option.param.name); });

class ArchivedObjects : public Interposition, public ::testing::WithParamInterface<Collector> {};

// Archived objects are mapped (G1) or loaded (the others of 25, none of 17), and are objects
// like others, also after full collections.
TEST_P(ArchivedObjects, AreResolved) {
  for (const Jdk& jdk : installed_jdks()) {
    for (const char* share : {"-Xshare:auto", "-Xshare:off"}) {
      if (!full_run() && share[8] == 'o' && GetParam() != Collector::kG1) continue;
      SCOPED_TRACE(jdk.name + share);
      std::vector<std::string> flags = collector_flags(GetParam());
      flags.insert(flags.end(), {"-Xint", "-Xmx64m", share});
      if (!jdk_accepts(jdk, flags)) continue;
      std::string file = path(jdk.name + (share + 8) + ".db");
      JavaRun java{jdk, flags, std::nullopt, {"Archived", "300"}, "", 120};
      ProcessResult told = run(java);
      java.agent_options = "classes=java.lang.Integer,java.lang.String,byte[],events=off,out=" + file;
      ProcessResult result = run(java);
      expect_done(result);
      EXPECT_EQ(check_value(result.out, "sum"), check_value(told.out, "sum"));
      if (HasFailure()) return;
      Database db(file, true);
      EXPECT_EQ(db.integer("SELECT sum(a.count) FROM access_count a JOIN site s ON s.id = a.site_id "
                           "JOIN field f ON f.id = a.field_id JOIN class c ON c.id = a.class_id "
                           "WHERE c.name = 'java.lang.Integer' AND f.name = 'value' AND a.op = 'load' "
                           "AND s.method = 'java.lang.Integer.intValue'"),
                600);
      EXPECT_GE(db.integer("SELECT sum(a.count) FROM access_count a JOIN class c ON c.id = a.class_id "
                           "WHERE c.name = 'byte[]' AND a.part = 'element' AND a.op = 'load'"),
                600);
      // Shenandoah moves objects between pauses.
      EXPECT_LE(db.diagnostic("unresolved"), GetParam() == Collector::kShenandoah ? 20 : 0) << db.unresolved_sites();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Collectors, ArchivedObjects,
                         ::testing::Values(Collector::kSerial, Collector::kParallel, Collector::kG1,
                                           Collector::kShenandoah, Collector::kEpsilon),
                         [](const auto& param) { return test_name(collector_flags(param.param).back().substr(8)); });

}  // namespace
}  // namespace classaccess
