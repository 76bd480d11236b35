// `classaccess report` on a recording of the demo shop (java-harness/shop), whose accesses are known: 900 orders
// of 3,150 lines, of which 90 are rush orders.
#include <gtest/gtest.h>

#include <sstream>

#include "tests/jvm/control_fixture.h"

namespace classaccess {
namespace {

class ReportOfTheShop : public ControlFixture {
 protected:
  void record(const Jdk& jdk) {
    database_ = path(jdk.name + ".db");
    JavaRun shop{jdk, {"-Xmx128m"}, "classes=com.acme.shop.*,events=all,out=" + database_, {"com.acme.shop.Shop"}, ""};
    ProcessResult result = run(shop);
    expect_status(result, 0);
    EXPECT_EQ(result.out, "orders  900\nrevenue 47408.13\nshipped 9450 pieces, 6390550 left\n");
  }
  std::string report(std::vector<std::string> words) {
    words.insert(words.begin(), {"report", database_});
    return expect_command(0, words);
  }
  // Columns of the CSV row that begins so, by their names.
  int64_t number(const std::string& csv, const std::string& begin, const std::string& column) {
    std::istringstream lines(csv);
    std::string header, line;
    std::getline(lines, header);
    while (std::getline(lines, line)) {
      if (line.rfind(begin, 0) != 0) continue;
      std::istringstream names(header), cells(line);
      std::string name, cell;
      while (std::getline(names, name, ',') && std::getline(cells, cell, ',')) {
        if (name == column) return cell.empty() ? 0 : std::stoll(cell);
      }
    }
    ADD_FAILURE() << "no " << column << " of " << begin << " in\n" << csv;
    return -1;
  }

  std::string database_;
};

TEST_F(ReportOfTheShop, IsTrue) {
  for (const Jdk& jdk : oldest_and_newest_jdk()) {
    SCOPED_TRACE(jdk.name);
    record(jdk);
    std::string never = report({"never-read", "--format", "csv"});
    EXPECT_EQ(never.substr(0, never.find("\n", never.find("\n") + 1)),
              "class,field,type,static,stores,threads,stored_most_by\n"
              "com.acme.shop.Order,shipped,boolean,no,900,1,com.acme.shop.Shipping.run:19");
    EXPECT_NE(never.find("com.acme.shop.Customer,email,java.lang.String,no,40,1,com.acme.shop.Customer.<init>:"),
              std::string::npos);

    std::string fields = report({"fields", "--format", "csv", "--top", "0"});
    auto field = [&](const char* begin, const char* column) { return number(fields, begin, column); };
    EXPECT_EQ(field("com.acme.shop.Order,24,1,shipped,", "stores"), 810);
    EXPECT_EQ(field("com.acme.shop.RushOrder,24,1,shipped,", "stores"), 90);
    // `picked += quantity` is a load and a store, or one read-modify-write.
    const char* picked = "com.acme.shop.Warehouse,16,8,picked,";
    EXPECT_EQ(field(picked, "loads") + field(picked, "rmws"), 3150 + 1);
    EXPECT_EQ(field(picked, "stores") + field(picked, "rmws"), 3150);
    EXPECT_EQ(field(picked, "threads"), 2);

    std::string sharing = report({"sharing", "--format", "csv"});
    EXPECT_EQ(number(sharing, "com.acme.shop.OrderLine,", "threads"), 4);
    EXPECT_EQ(number(sharing, "com.acme.shop.Warehouse,", "shared"), 1);

    Database db(database_, true);
    EXPECT_EQ(number(report({"classes", "--format", "csv"}), "com.acme.shop.OrderLine,", "accesses"),
              db.integer("SELECT accesses FROM v_class WHERE class = 'com.acme.shop.OrderLine'"));

    std::string tables = report({});
    for (const char* title : {"Run", "Classes", "Fields", "Methods", "Threads", "What the tool did"}) {
      EXPECT_NE(tables.find(std::string("== ") + title), std::string::npos) << tables;
    }
    std::istringstream lines(tables);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;

    EXPECT_EQ(report({"--html", path("page.html")}), "");
    EXPECT_NE(read_text(path("page.html")).find("\"com.acme.shop.Warehouse\""), std::string::npos);
    EXPECT_EQ(expect_command(1, {"report", database_, "--html", database_}),
              "classaccess: '" + database_ + "' is a database: give --html another file\n");
    EXPECT_EQ(db.text("PRAGMA quick_check"), "ok");

    std::string sources = report({"--source", CLASSACCESS_HARNESS_SOURCES});
    EXPECT_NE(sources.find("shop/Shipping.java  "), std::string::npos) << sources;
    EXPECT_NE(sources.find("     19        order.shipped = true;\n"), std::string::npos) << sources;
    std::string folder = CLASSACCESS_HARNESS_SOURCES;
    std::string by_line = report({"--source", folder, "--format", "csv"});
    EXPECT_EQ(number(by_line, folder + "/shop/Shipping.java,19,", "stores"), 900);
  }
}

TEST_F(ReportOfTheShop, WrongUsage) {
  EXPECT_NE(expect_command(2, {"report"}).find("DB is required"), std::string::npos);
  EXPECT_NE(expect_command(2, {"report", "x.db", "--since", "soon"}).find("--since"), std::string::npos);
  EXPECT_NE(expect_command(2, {"report", "x.db", "nothing"}).find("classaccess: there is no section 'nothing'"),
            std::string::npos);
  EXPECT_EQ(expect_command(1, {"report", "/no/such.db"}),
            "classaccess: cannot read '/no/such.db': No such file or directory\n");
  EXPECT_NE(expect_command(0, {"report", "--help"}).find("never-read     fields that are stored and never loaded\n"),
            std::string::npos);
}

// This machine can record, or no test of this folder would run.
TEST_F(ReportOfTheShop, TheDoctorIsContent) {
  std::string said = expect_command(0, {"doctor", "--folder", folder()});
  EXPECT_NE(said.find("\nReady to record.\n"), std::string::npos) << said;
  EXPECT_NE(said.find(oldest_jdk().home + ": "), std::string::npos) << said;
  EXPECT_NE(expect_command(1, {"doctor", "--folder", "/no/such/folder"}).find("BAD   database folder"),
            std::string::npos);
}

}  // namespace
}  // namespace classaccess
