// The matrix of what the JVM can be told: JDK, object headers, collector, compressed oops, back end,
// execution mode. Used by exact_counts_test to name its cells.
// Context: test process, before main.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/jvm/modes.h"

namespace classaccess {

// The cells this process offers. A process that lists its tests (so does ctest once after a build) offers a
// subset in which every two values of two factors meet, in a cell that is traced if there is one; it is
// chosen by matrix_seed(). Any other, and all with CLASSACCESS_FULL=1, offers all cells, so that one that
// was listed or failed can be run by its name.
std::vector<Mode> matrix_cells();

// CLASSACCESS_MATRIX_SEED, else of the build's list of tests; else, and then it becomes that, a new one.
uint64_t matrix_seed();

// All cells; and of `all` a subset of at most `limit` as above. Pure functions.
std::vector<Mode> all_matrix_cells();
std::vector<Mode> pairwise(const std::vector<Mode>& all, uint64_t seed, size_t limit);

}  // namespace classaccess
