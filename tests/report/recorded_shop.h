// A small recording with known rows, written by the real writer.
//
//   com.acme.Base   { int id @12 }                        16 bytes
//   com.acme.Order  extends Base { long total @16; String name @24; boolean shipped @28; int unused @32;
//                   static int made @112 }                40 bytes
//   int[]
//   threads: main, clerk-1, clerk-2
//   sites:   com.acme.Shop.run:107 (interpreted and c1), com.acme.Shop.add:103, libjvm.so
#pragma once

#include <string>

#include "agent/report/report.h"
#include "agent/store/writer.h"
#include "tests/store/query.h"
#include "tests/store/world.h"

namespace classaccess {

class RecordedShop {
 public:
  explicit RecordedShop(uint64_t max_events = UINT64_MAX);
  ~RecordedShop();

  // The rows; then finish() completes the database, flush() leaves it in use.
  void record();
  void finish();
  // Runs SQL on the finished file.
  void change(const std::string& sql);

  void push(ThreadState* thread, uint32_t offset, uint32_t size, Op op, uint64_t object, uint32_t at);

  World world;
  ClassInfo* base = world.add_class("com/acme/Base", 16);
  ClassInfo* order = world.add_class("com/acme/Order", 40, base);
  ClassInfo* shop = world.add_class("com/acme/Shop", 16);
  ClassInfo* ints = world.add_class("[I");
  uint32_t run = 0, run_compiled = 0, add = 0, vm = 0;
  ThreadState *main = nullptr, *clerk1 = nullptr, *clerk2 = nullptr;
  std::string path;
  Writer writer;

 private:
  bool finished_ = false;
};

// make_report with a width of 80; the report, or `status: problem`.
std::string report_of(const std::string& database, const std::vector<std::string>& sections = {},
                      ReportOptions options = {});

}  // namespace classaccess
