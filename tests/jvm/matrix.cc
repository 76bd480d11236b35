#include "tests/jvm/matrix.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <tuple>

namespace classaccess {
namespace {

constexpr size_t kMostCells = 60;
const char kSeedFile[] = CLASSACCESS_BUILD_DIR "/matrix_seed";

constexpr size_t kFactors = 5;

// Values of the factors of a cell; the JDK and its headers are one.
std::array<std::string, kFactors> values(const Mode& mode) {
  return {mode.jdk.home + (mode.compact ? " compact" : ""), std::to_string(static_cast<int>(mode.collector)),
          mode.compressed_oops ? "32" : "64", mode.mprotect ? "mprotect" : "pkey",
          std::to_string(static_cast<int>(mode.execution))};
}

using Pair = std::tuple<size_t, size_t, std::string, std::string>;

std::set<Pair> pairs_of(const Mode& mode) {
  std::set<Pair> pairs;
  const auto value = values(mode);
  for (size_t i = 0; i < kFactors; i++) {
    for (size_t j = i + 1; j < kFactors; j++) pairs.emplace(i, j, value[i], value[j]);
  }
  return pairs;
}

size_t count_new(const std::set<Pair>& pairs, const std::set<Pair>& wanted) {
  return static_cast<size_t>(
      std::count_if(pairs.begin(), pairs.end(), [&](const Pair& pair) { return wanted.count(pair) != 0; }));
}

// Cells out of `all`, each the one with most pairs of *wanted, until none is left; takes them out.
void cover(std::vector<Mode> all, std::set<Pair>* wanted, std::mt19937_64* random, size_t limit,
           std::vector<Mode>* cells) {
  std::shuffle(all.begin(), all.end(), *random);
  while (cells->size() < limit && !wanted->empty()) {
    const Mode* best = nullptr;
    size_t most = 0;
    for (const Mode& mode : all) {
      size_t fresh = count_new(pairs_of(mode), *wanted);
      if (fresh > most) {
        most = fresh;
        best = &mode;
      }
    }
    if (best == nullptr) return;
    cells->push_back(*best);
    for (const Pair& pair : pairs_of(*best)) wanted->erase(pair);
  }
}

bool lists_tests() {
  std::ifstream file("/proc/self/cmdline");
  std::string line((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return line.find("--gtest_list_tests") != std::string::npos;
}

}  // namespace

std::vector<Mode> all_matrix_cells() {
  std::vector<Mode> cells;
  for (const Jdk& jdk : installed_jdks()) {
    for (bool compact : {false, true}) {
      if (compact && jdk.major < 24) continue;
      for (Collector collector : {Collector::kSerial, Collector::kParallel, Collector::kG1, Collector::kShenandoah,
                                  Collector::kZ, Collector::kEpsilon}) {
        for (bool compressed : {true, false}) {
          for (bool mprotect : {false, true}) {
            for (Execution execution : {Execution::kInterpreted, Execution::kC1, Execution::kC2}) {
              Mode mode{jdk, execution, collector, compressed, false, 2, mprotect};
              mode.compact = compact;
              // While one worker waits for the compiler the other interprets its first round.
              mode.rounds = execution == Execution::kInterpreted ? 1 : 4;
              cells.push_back(mode);
            }
          }
        }
      }
    }
  }
  return cells;
}

std::vector<Mode> pairwise(const std::vector<Mode>& all, uint64_t seed, size_t limit) {
  std::mt19937_64 random(seed);
  std::vector<Mode> traced, refused, cells;
  for (const Mode& mode : all) (mode.refusal().empty() ? traced : refused).push_back(mode);
  // A pair that some traced cell has must be met in a traced one.
  std::set<Pair> wanted, rest;
  for (const Mode& mode : traced) wanted.merge(pairs_of(mode));
  for (const Mode& mode : refused) rest.merge(pairs_of(mode));
  for (const Pair& pair : wanted) rest.erase(pair);
  cover(traced, &wanted, &random, limit, &cells);
  cover(refused, &rest, &random, limit, &cells);
  return cells;
}

uint64_t matrix_seed() {
  const char* given = std::getenv("CLASSACCESS_MATRIX_SEED");
  if (given != nullptr && *given != '\0') return std::strtoull(given, nullptr, 10);
  uint64_t seed = 0;
  if (lists_tests() || !(std::ifstream(kSeedFile) >> seed)) {
    seed = std::random_device()();
  }
  return seed;
}

std::vector<Mode> matrix_cells() {
  std::vector<Mode> all = all_matrix_cells();
  if (full_run() || !lists_tests()) return all;
  uint64_t seed = matrix_seed();
  std::ofstream(kSeedFile) << seed << "\n";
  return pairwise(all, seed, kMostCells);
}

}  // namespace classaccess
