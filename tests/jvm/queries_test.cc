// The questions of agent/doc/queries.md, each asked of a recording of the demo shop as scripts/demo makes it.
#include <gtest/gtest.h>

#include "tests/jvm/control_fixture.h"

namespace classaccess {
namespace {

struct Question {
  std::string title, sql;
  bool of_pages = false, may_be_empty = false;
};

std::vector<Question> questions() {
  std::istringstream page(read_text(CLASSACCESS_QUERIES));
  std::vector<Question> found;
  bool pages = false, inside = false;
  Question next;
  for (std::string line; std::getline(page, line);) {
    if (inside) {
      if (line == "```") {
        found.push_back(next);
        inside = false;
      } else {
        next.sql += line + "\n";
      }
    } else if (line.starts_with("# Recordings of mode=pages")) {
      pages = true;
    } else if (line.starts_with("## ")) {
      next = Question{line.substr(3), "", pages, false};
    } else if (line == "```sql") {
      inside = true;
    } else if (line.starts_with("(No row:") && !found.empty()) {
      found.back().may_be_empty = true;
    }
  }
  return found;
}

class Queries : public ControlFixture {
 protected:
  std::string record(const std::string& options) {
    std::string database = path(options.substr(0, 4) + ".db");
    JavaRun shop{oldest_jdk(), {"-Xmx128m"}, options + ",out=" + database, {"com.acme.shop.Shop"}, ""};
    expect_status(run(shop), 0);
    return database;
  }
};

TEST_F(Queries, OfThePageAnswer) {
  Database accesses(record("classes=com.acme.shop.*"), true), pages(record("mode=pages,window=16"), true);
  std::vector<Question> all = questions();
  ASSERT_GE(all.size(), 20u);
  for (const Question& question : all) {
    SCOPED_TRACE(question.title);
    EXPECT_FALSE(question.sql.empty());
    Database& db = question.of_pages ? pages : accesses;
    int64_t rows = db.integer("SELECT count(*) FROM (" + question.sql + ")");
    EXPECT_GE(rows, question.may_be_empty ? 0 : 1);
  }
  auto answer = [&](const std::string& title, const std::string& what) {
    for (const Question& question : all) {
      if (question.title.starts_with(title))
        return accesses.text("SELECT " + what + " FROM (" + question.sql + ") LIMIT 1");
    }
    return "no question " + title;
  };
  // Some of them by what the shop is known to do.
  EXPECT_EQ(answer("Is the recording whole", "count(*)"), "0");
  EXPECT_EQ(answer("Which fields are stored and never read", "class || '.' || field || ' ' || stores || ' ' || method"),
            "com.acme.shop.Order.shipped 900 com.acme.shop.Shipping.run");
  EXPECT_EQ(answer("Who changes this field", "sum(times)"), "3150");
  EXPECT_EQ(answer("Which fields could be final", "sum(class || '.' || field = 'com.acme.shop.OrderLine.priceCents')"),
            "1");
  EXPECT_EQ(answer("Which fields could be final", "sum(class || '.' || field = 'com.acme.shop.Warehouse.picked')"),
            "0");
}

}  // namespace
}  // namespace classaccess
