// The page of `report --html`: its text, and what a browser makes of it (headless Chromium, if it is installed).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>

#include "agent/report/html.h"
#include "agent/report/text.h"
#include "tests/report/recorded_shop.h"

namespace classaccess {
namespace {

ReportOptions as_page() {
  ReportOptions options;
  options.html = true;
  return options;
}

size_t times(const std::string& text, const std::string& what) {
  size_t count = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(ReportHtml, NeedsNoNetworkAndHasItsLicence) {
  RecordedShop shop;
  shop.record();
  shop.finish();
  std::string page = report_of(shop.path, {}, as_page());
  EXPECT_NE(page.find("content=\"default-src 'none';"), std::string::npos);
  for (const char* reference : {"<link", "<img", "<iframe", "<script src", "@import", "url("}) {
    EXPECT_EQ(page.find(reference), std::string::npos) << reference;
  }
  EXPECT_NE(page.find("Redistribution and use in source and binary forms"), std::string::npos);
}

TEST(ReportHtml, NamesCannotEndTheScript) {
  RecordedShop shop;
  shop.record();
  shop.change("UPDATE class SET name = '</script><b>' || char(8232) WHERE name = 'int[]'");
  std::string page = report_of(shop.path, {}, as_page());
  EXPECT_EQ(times(page, "</script"), 3u);
  EXPECT_NE(page.find("\"\\u003c/script>\\u003cb>\\u2028\""), std::string::npos);
}

// A chart is what its SQL gives.
TEST(ReportHtml, EveryChartRunsAndIsOfTablesThatUsersHave) {
  RecordedShop shop;
  shop.record();
  shop.finish();
  std::string page = report_of(shop.path, {}, as_page());
  for (const Chart& chart : charts()) {
    SCOPED_TRACE(chart.id);
    EXPECT_NE(page.find("\"id\": \"" + std::string(chart.id) + "\""), std::string::npos);
    std::vector<std::string> rows = query(shop.path, chart.sql);
    for (const std::string& row : rows) EXPECT_EQ(row.rfind("error", 0), std::string::npos) << row;
    if (chart.faster != nullptr) {
      EXPECT_EQ(query(shop.path, chart.faster), rows);
      EXPECT_GT(rows.size(), 1u);
    }
    std::string sql = chart.sql;
    for (const char* internal : {"tally", "event ", "event\n"}) EXPECT_EQ(sql.find(internal), std::string::npos);
  }
}

TEST(ReportHtml, OfAnEmptyRecordingIsMade) {
  RecordedShop shop;
  shop.change("DELETE FROM run; DELETE FROM diagnostic; DROP TABLE page_access");
  std::string page = report_of(shop.path, {}, as_page());
  EXPECT_NE(page.find("\"id\": \"classes\""), std::string::npos);
  EXPECT_EQ(page.find("\"id\": \"pages\""), std::string::npos);
  ReportOptions wrong = as_page();
  wrong.selection.classes = {"Order"};
  EXPECT_EQ(report_of(shop.path, {}, wrong), "2: --html shows the whole recording; the page has a filter of its own");
  EXPECT_EQ(report_of(shop.path, {"run"}, as_page()).substr(0, 36), "2: --html is a report of its own: gi");
}

std::string chromium() {
  for (const char* path : {"/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"}) {
    if (access(path, X_OK) == 0) return path;
  }
  return "";
}

// What the page's DOM has in #said after `script` has run behind the page's own; lines are joined by ` / `.
std::string in_browser(const std::string& page, const std::string& script, std::string* problem) {
  std::string folder = make_directory(), file = folder + "/page.html";
  std::string behind =
      "<pre id=\"said\"></pre><script>\nfunction say(text) { document.getElementById('said').textContent += "
      "text + ' / '; }\nwindow.onerror = function (message) { say('ERROR ' + message); };\n" +
      script + "</script></body>";
  std::string changed = page;
  changed.replace(changed.rfind("</body>"), 7, behind);
  std::ofstream(file, std::ios::binary) << changed;
  std::string command = "timeout -s KILL 90 " + chromium() +
                        " --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir=" + folder +
                        "/profile --virtual-time-budget=5000 --dump-dom file://" + file + " 2>" + folder + "/errors";
  std::string dom;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) {
    *problem = "popen failed";
    return "";
  }
  char buffer[65536];
  for (size_t got; (got = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) dom.append(buffer, got);
  int status = pclose(pipe);
  size_t begin = dom.rfind("<pre id=\"said\">");
  if (status != 0 || begin == std::string::npos) {
    *problem =
        "status " + std::to_string(status) + ", " + std::to_string(dom.size()) + " bytes: see " + folder + "/errors";
    return "";
  }
  begin += 15;
  return dom.substr(begin, dom.find("</pre>", begin) - begin);
}

class ReportInBrowser : public ::testing::Test {
 protected:
  void SetUp() override {
    if (chromium().empty()) GTEST_SKIP() << "chromium is not installed (Debian: chromium)";
    shop.record();
    shop.finish();
  }
  std::string say(const std::string& script) {
    std::string problem;
    std::string said = in_browser(report_of(shop.path, {}, as_page()), script, &problem);
    EXPECT_EQ(problem, "");
    return said;
  }

  RecordedShop shop;
};

// Rows of the table of a section as the user reads them.
constexpr const char* kRows =
    "function rows(id) { return [].map.call(document.querySelectorAll('#' + id + ' tbody tr'), function (row) {"
    " return [].map.call(row.cells, function (cell) { return cell.textContent; }).join('|'); }).join(', '); }\n"
    "function click(selector) { var at = document.querySelector(selector);"
    " at.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, view: window})); }\n"
    "function filter(text) { var at = document.getElementById('filter'); at.value = text;"
    " at.dispatchEvent(new Event('input', {bubbles: true})); }\n"
    "function sum() { return document.getElementById('sum').textContent; }\n";

TEST_F(ReportInBrowser, ShowsTheNumbersOfSql) {
  std::string classes;
  for (const std::string& row : query(shop.path,
                                      "SELECT class, accesses, loads, stores, rmws, bytes, threads, "
                                      "rtrim(rtrim(printf('%.2f', share), '0'), '.') FROM v_class "
                                      "ORDER BY accesses DESC, class")) {
    classes += (classes.empty() ? "" : ", ") + row;
  }
  EXPECT_EQ(say(std::string(kRows) +
                "say(sum()); say(rows('classes')); say(document.getElementById('run-accesses').textContent);"
                "say(document.querySelectorAll('section').length);"),
            "45 accesses shown / " + classes + " / 45 / " + std::to_string(charts().size()) + " / ");
}

TEST_F(ReportInBrowser, FiltersAndSorts) {
  EXPECT_EQ(
      say(std::string(kRows) +
          "filter('INT['); say(sum()); say(rows('classes')); filter('no such name'); say(sum()); say(rows('classes'));"
          "say(location.hash); filter(''); say(sum());"
          "click('#sites th[data-column=stores]'); say(rows('sites')); click('#sites th[data-column=stores]'); "
          "say(rows('sites'));"),
      "8 accesses shown / int[]|8|8|0|0|32|1|17.78 / 0 accesses shown /  / #filter=no%20such%20name / 45 accesses "
      "shown / com.acme.Shop.run|107|27|20|7|0, com.acme.Shop.add|103|18|12|4|2 / "
      "com.acme.Shop.add|103|18|12|4|2, com.acme.Shop.run|107|27|20|7|0 / ");
}

// An object's fields by offset: `name -> accesses`; a click in the treemap chooses the class.
TEST_F(ReportInBrowser, DrawsTheLayoutOfTheChosenClass) {
  std::string fields =
      "function fields() { return [].map.call(document.querySelectorAll('#fields rect[data-field]'), function (at) {"
      " return at.getAttribute('data-field') + '=' + at.getAttribute('data-accesses'); }).join(' '); }\n";
  EXPECT_EQ(say(kRows + fields +
                "say(fields()); say(document.querySelector('#fields p').textContent); click('#classes "
                "rect[data-class=\"int[]\"]');"
                "say(fields()); click('#classes rect[data-class=\"com.acme.Order\"]'); say(fields()); "
                "say(document.querySelectorAll('#timeline rect').length);"
                "say(document.querySelectorAll('#matrix rect').length);"
                "say(document.querySelector('#never_read pre').textContent.split('\\n')[1]);"),
            "id=1 total=25 name=5 shipped=3 unused=0 / com.acme.Order, 40 bytes /  / id=1 total=25 name=5 shipped=3 "
            "unused=0 / 600 / 5 / FROM v_never_read / ");
}

// Cells of the heatmap and of the calls' histogram; a table that is cut says so.
TEST_F(ReportInBrowser, DrawsPagesAndCallsAndSaysWhatIsCut) {
  shop.change(
      "INSERT INTO page_access VALUES(1, 7, 'load', 0, 5), (1, 7, 'store', 0, 2), (2, 9, 'store', 3, 1);"
      "INSERT INTO function(id, name, kind) VALUES(1, 'f', 'java'), (2, 'g', 'native');"
      "INSERT INTO call_histogram VALUES(1, 5, 3), (1, 6, 4), "
      "(2, 5, 1);"
      "WITH RECURSIVE n(i) AS (SELECT 1000 UNION ALL SELECT i + 1 FROM n WHERE i < 1600) INSERT INTO class SELECT i, "
      "'c' || i, 'instance', NULL, 16, NULL FROM n;"
      "INSERT INTO tally(thread_id, class_id, op, count, bytes) SELECT 1, id, 'load', 1, 1 FROM class WHERE id >= "
      "1000");
  EXPECT_EQ(
      say(std::string(kRows) +
          "say([].map.call(document.querySelectorAll('#pages rect title'), function (at) { return at.textContent; })"
          ".join(', ')); say(document.querySelectorAll('#calls rect').length); filter('g');"
          "say(document.querySelectorAll('#calls rect').length); say(document.querySelector('#classes > "
          "p').textContent);"
          "say(document.querySelector('#fields > p') === null);"),
      "pages from 7: 7 touches, pages from 9: 1 touches / 3 / 1 / the first 500 rows: the SQL has a LIMIT / true / ");
}

TEST_F(ReportInBrowser, OfAnEmptyRecordingHasNoError) {
  shop.change("DELETE FROM run; DELETE FROM diagnostic; DELETE FROM event; DELETE FROM tally");
  EXPECT_EQ(say(std::string(kRows) + "say(sum()); say(rows('classes'));"), "0 accesses shown /  / ");
}

}  // namespace
}  // namespace classaccess
