#include "tests/report/recorded_shop.h"

#include <gtest/gtest.h>
#include <sqlite3.h>

namespace classaccess {

RecordedShop::RecordedShop(uint64_t max_events) {
  world.add_field(base, "id", "I", 12, 4);
  world.add_field(order, "total", "J", 16, 8);
  world.add_field(order, "name", "Ljava/lang/String;", 24, 4);
  world.add_field(order, "shipped", "Z", 28, 1);
  world.add_field(order, "unused", "I", 32, 4);
  world.add_field(order, "made", "I", 112, 4, true);
  world.publish_fields(base);
  world.publish_fields(order);
  run = world.add_site(SiteKind::kInterpreted, 0x7fff00001000, world.add_method(shop, "run", "()V"), 7);
  run_compiled = world.add_site(SiteKind::kC1, 0x7fff00002000, world.add_method(shop, "run", "()V"), 7);
  add = world.add_site(SiteKind::kC2, 0x7fff00003000, world.add_method(shop, "add", "(I)V"), 3);
  path = make_directory() + "/shop.db";
  WriterOptions options;
  options.path = path;
  options.max_events = max_events;
  EXPECT_EQ(writer.open(options), "");
  EXPECT_EQ(writer.start(world.sources(), world.run()), "");
  main = world.add_thread("main");
  clerk1 = world.add_thread("clerk-1");
  clerk2 = world.add_thread("clerk-2");
}

RecordedShop::~RecordedShop() { finish(); }

void RecordedShop::push(ThreadState* thread, uint32_t offset, uint32_t size, Op op, uint64_t object, uint32_t at) {
  World::push(thread, world.access(order, object, offset, size, op, at));
}

void RecordedShop::record() {
  constexpr uint64_t first = kHeap + 0x100, second = kHeap + 0x200;         // each within one cache line
  for (int i = 0; i < 20; ++i) push(clerk1, 16, 8, Op::kLoad, first, run);  // total
  for (int i = 0; i < 5; ++i) push(clerk1, 16, 8, Op::kStore, first, run_compiled);
  for (int i = 0; i < 4; ++i) push(clerk2, 24, 4, Op::kLoad, first, add);  // name
  push(clerk1, 24, 4, Op::kStore, first, run);
  for (int i = 0; i < 3; ++i) push(main, 28, 1, Op::kStore, second, add);  // shipped
  push(main, 12, 4, Op::kRmw, second, add);                                // id
  push(main, 0, 8, Op::kRmw, second, add);                                 // mark word
  AccessRecord made = world.access(order, kHeap + 0x10000, 112, 4, Op::kStore, run, 200);
  made.flags |= kFlagMirror;
  World::push(main, made);
  for (int i = 0; i < 8; ++i) World::push(clerk2, world.access(ints, kHeap + 0x400, 24, 4, Op::kLoad, add, 128));
  AccessRecord lost = world.access(order, 0, 0, 8, Op::kStore, add);
  lost.class_id = 0;
  lost.address = kHeap + 0x800;
  World::push(clerk2, lost);
}

void RecordedShop::finish() {
  if (!finished_) writer.stop();
  finished_ = true;
}

void RecordedShop::change(const std::string& sql) {
  finish();
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  char* problem = nullptr;
  EXPECT_EQ(sqlite3_exec(db, sql.c_str(), nullptr, nullptr, &problem), SQLITE_OK) << problem;
  sqlite3_free(problem);
  sqlite3_close(db);
}

std::string report_of(const std::string& database, const std::vector<std::string>& sections, ReportOptions options) {
  options.database = database;
  options.sections = sections;
  std::string text, problem;
  int status = make_report(options, &text, &problem);
  EXPECT_EQ(status == 0, problem.empty());
  return status == 0 ? text : std::to_string(status) + ": " + problem;
}

}  // namespace classaccess
