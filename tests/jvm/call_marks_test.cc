// Marks of timed calls in the record stream (agent/fault/call_marks.h).
#include <gtest/gtest.h>

#include "tests/jvm/database.h"
#include "tests/jvm/java_test.h"

namespace classaccess {
namespace {

class CallMarks : public JavaTest {};

// A thread whose probes record nothing has marks only in its buffer. Each trap turned all of them into records again:
// 735 million for the shop's 160,000 accesses.
TEST_F(CallMarks, AreHandedOnOnceWhereNoProbeRecords) {
  for (const char* more : {",values=on", ",probes=off"}) {
    SCOPED_TRACE(more);
    JavaRun shop{newest_jdk(), {"-XX:+UseSerialGC"}, std::nullopt, {"com.acme.shop.Shop"}, "", 120};
    shop.agent_options =
        "classes=com.acme.shop.*,calls=com.acme.shop.**.*,overwrite=on,out=" + path("a.db") + std::string(more);
    ProcessResult result = run(shop);
    EXPECT_EQ(result.status, 0) << result.err;
    Database db(path("a.db"), true);
    ASSERT_TRUE(db.is_open()) << db.error();
    const int64_t accesses = db.diagnostic("accesses");
    EXPECT_GT(accesses, 100000);
    EXPECT_GT(db.integer("SELECT sum(count) FROM call_class_count"), 0);
    EXPECT_LT(db.diagnostic("recorded"), 3 * accesses);
  }
}

}  // namespace
}  // namespace classaccess
