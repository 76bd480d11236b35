#include "agent/cli/live_line.h"

#include <gtest/gtest.h>

namespace classaccess {
namespace {

TEST(LiveText, SaysWhatIsRecorded) {
  LiveFigures figures;
  EXPECT_EQ(live_text(figures, 100), "classaccess: 0 accesses, 0/s, database 0 kB");
  figures.accesses = 1;
  figures.probes = 1;
  figures.database_bytes = 4096;
  EXPECT_EQ(live_text(figures, 100), "classaccess: 1 access, 0/s, 1 probe, database 5 kB");
  figures.accesses = 12345678;
  figures.per_second = 999.7;
  figures.probes = 1234;
  figures.database_bytes = 9940000;
  EXPECT_EQ(live_text(figures, 100), "classaccess: 12,345,678 accesses, 999/s, 1,234 probes, database 9.9 MB");
  figures.calls = 7;
  figures.database_bytes = 12300000000;
  EXPECT_EQ(live_text(figures, 100), "classaccess: 12,345,678 accesses, 999/s, 7 calls, 1,234 probes, database 12 GB");
}

TEST(LiveText, OfPagesAndCallsAlone) {
  LiveFigures figures;
  figures.page_touches = 1000;
  EXPECT_EQ(live_text(figures, 100), "classaccess: 1,000 page touches, 0/s, database 0 kB");
  figures.page_touches = 0;
  figures.calls = 1;
  figures.per_second = 2;
  EXPECT_EQ(live_text(figures, 100), "classaccess: 1 call, 2/s, database 0 kB");
}

// A line that is as wide as the terminal, or wider, could not be taken away again.
TEST(LiveText, IsNeverWiderThanTold) {
  LiveFigures figures;
  figures.accesses = 123456789;
  figures.per_second = 1234567;
  figures.probes = 1000;
  figures.database_bytes = 1000000;
  EXPECT_EQ(live_text(figures, 60), "classaccess: 123,456,789 accesses, 1,234,567/s, 1,000 probes");
  EXPECT_EQ(live_text(figures, 59), "classaccess: 123,456,789 accesses, 1,234,567/s");
  for (size_t width = 0; width < 120; ++width) EXPECT_LE(live_text(figures, width).size(), width);
}

}  // namespace
}  // namespace classaccess
