// What the writer puts into the tables, read back by SQL.
#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/base/counters.h"
#include "query.h"
#include "world.h"

// Stands for a function of the collector.
__attribute__((noinline)) int ShenandoahCopy(int x) { return x * 5 + static_cast<int>(getpid()); }

namespace classaccess {

__attribute__((noinline)) int own_function(int x) { return x * 3 + static_cast<int>(getpid()); }

namespace {

class Rows : public ::testing::Test {
 protected:
  void start(uint64_t max_events = UINT64_MAX, bool values = false) {
    path = make_directory() + "/rows.db";
    ASSERT_EQ(writer.open({path, false, max_events, values}), "");
    ASSERT_EQ(writer.start(world.sources(), world.run()), "");
  }
  std::string one(const std::string& sql) { return query_one(path, sql); }

  World world;
  ClassInfo* base = world.add_class("com/acme/Base", 16);
  ClassInfo* order = world.add_class("com/acme/Order", 32, base);
  ClassInfo* ints = world.add_class("[I");
  FieldInfo* id = world.add_field(base, "id", "I", 12, 4);
  FieldInfo* total = world.add_field(order, "total", "J", 16, 8);
  FieldInfo* name = world.add_field(order, "name", "Ljava/lang/String;", 24, 4);
  FieldInfo* next = world.add_field(order, "NEXT", "I", 112, 4, true);
  uint32_t method = world.add_method(order, "total", "()J");
  uint32_t site = world.add_site(SiteKind::kC2, 0x7fff00001000, method, 7);
  std::string path;
  Writer writer;
};

TEST_F(Rows, Pragmas) {
  start();
  writer.stop();
  EXPECT_EQ(one("PRAGMA application_id"), std::to_string(0x434C4143));
  EXPECT_EQ(one("PRAGMA user_version"), "1");
  EXPECT_EQ(one("PRAGMA journal_mode"), "delete");
}

TEST_F(Rows, RunGoesFromRunningToComplete) {
  start();
  EXPECT_EQ(one("SELECT status, ended_at, pid, command, jvm_version, heap_start, page_size FROM run"),
            "running||" + std::to_string(getpid()) + "|java -jar app.jar|17.0.15|30064771072|4096");
  writer.stop();
  EXPECT_EQ(one("SELECT status, ended_at >= started_at, count(*) FROM run"), "complete|1|1");
  // Started a process-monotonic time ago: not in the future, and sqlite understands it.
  EXPECT_EQ(one("SELECT julianday(started_at) <= julianday('now') FROM run"), "1");
}

TEST_F(Rows, AnAccessHasAllItsColumns) {
  start();
  world.publish_fields(base);
  world.publish_fields(order);
  ThreadState* thread = world.add_thread("main");
  AccessRecord record = world.access(order, kHeap + 0x1000, 16, 8, Op::kLoad, site);
  record.gc_id = 3;
  World::push(thread, record);
  writer.stop();
  EXPECT_EQ(one("SELECT * FROM access"), "1|" + std::to_string(thread->thread_id) + "|100|3|" + std::to_string(site) +
                                             "|" + std::to_string(order->id) + "|" + std::to_string(total->id) +
                                             "|field||" + std::to_string(kHeap + 0x1000) + "|" +
                                             std::to_string(kHeap + 0x1010) + "|8|load|");
  EXPECT_EQ(one("SELECT * FROM access_count"), std::to_string(thread->thread_id) + "|" + std::to_string(site) + "|" +
                                                   std::to_string(order->id) + "|" + std::to_string(total->id) +
                                                   "|field|load|1|8");
}

TEST_F(Rows, ColumnsAreThoseOfTheContract) {
  start();
  writer.stop();
  auto columns = [&](const char* table) {
    return one(std::string("SELECT group_concat(name, ' ') FROM pragma_table_info('") + table + "')");
  };
  EXPECT_EQ(
      columns("run"),
      "started_at ended_at status pid command jvm_version jvm_vendor gc heap_start heap_size page_size protection "
      "options agent_version");
  EXPECT_EQ(columns("class"), "id name kind super_id instance_size loader");
  EXPECT_EQ(columns("field"), "id class_id name type offset is_static");
  EXPECT_EQ(columns("thread"), "id tid name kind carrier_id started_ns ended_ns");
  EXPECT_EQ(columns("site"), "id pc kind method signature bci line library symbol instruction");
  EXPECT_EQ(columns("access"),
            "seq thread_id t_ns gc_id site_id class_id field_id part element object address size op value");
  EXPECT_EQ(columns("access_count"), "thread_id site_id class_id field_id part op count bytes");
  EXPECT_EQ(columns("gc"), "id start_ns end_ns cause");
  EXPECT_EQ(columns("diagnostic"), "name value unit");
}

TEST_F(Rows, DictionariesHaveNamesTypesAndSuperClasses) {
  order->loader_class_id = world.add_class("jdk/internal/loader/ClassLoaders$AppClassLoader")->id;
  world.publish_fields(base);
  world.publish_fields(order);
  start();
  ThreadState* thread = world.add_thread("main");
  World::push(thread, world.access(order, kHeap, 12, 4, Op::kStore, site));
  writer.stop();
  EXPECT_EQ(
      one("SELECT name, kind, super_id, instance_size, loader FROM class WHERE id = " + std::to_string(order->id)),
      "com.acme.Order|instance|" + std::to_string(base->id) + "|32|jdk.internal.loader.ClassLoaders$AppClassLoader");
  EXPECT_EQ(one("SELECT name, super_id, loader FROM class WHERE id = " + std::to_string(base->id)),
            "com.acme.Base||boot");
  EXPECT_EQ(
      query(
          path,
          "SELECT c.name, f.name, type, offset, is_static FROM field f JOIN class c ON c.id = class_id ORDER BY f.id"),
      (std::vector<std::string>{"com.acme.Base|id|int|12|0", "com.acme.Order|total|long|16|0",
                                "com.acme.Order|name|java.lang.String|24|0", "com.acme.Order|NEXT|int|112|1"}));
  EXPECT_EQ(one("SELECT pc, kind, method, signature, bci, line, library, symbol, instruction FROM site"),
            "140733193392128|c2|com.acme.Order.total|()J|7|107|||mov eax, dword ptr [rsi + 0xc]");
}

TEST_F(Rows, SitesOfNativeCodeAndStubs) {
  start();
  ThreadState* thread = world.add_thread("main");
  uint32_t native = world.add_site(SiteKind::kVm, reinterpret_cast<uint64_t>(&own_function) + 1);
  uint32_t stub = world.add_site(SiteKind::kStub, 0x7fff00002000);
  World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad, native));
  World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad, stub));
  writer.stop();
  EXPECT_EQ(one("SELECT kind, library, symbol, bci, line, method FROM site WHERE id = " + std::to_string(native)),
            "vm|rows_test|classaccess::own_function(int)|||");
  EXPECT_EQ(one("SELECT kind, library, symbol FROM site WHERE id = " + std::to_string(stub)),
            "stub||jint_disjoint_arraycopy");
}

TEST_F(Rows, TheCollectorsWorkOnAThreadIsCountedBesideTheProgramsAccesses) {
  start();
  ThreadState* thread = world.add_thread("main");
  const uint64_t collector = reinterpret_cast<uint64_t>(&ShenandoahCopy) + 1;
  const uint64_t program = reinterpret_cast<uint64_t>(&own_function) + 1;
  uint32_t sites[] = {world.add_site(SiteKind::kVm, collector), world.add_site(SiteKind::kVm, program),
                      world.add_site(SiteKind::kNative, program, 0, -1, 0, collector),
                      world.add_site(SiteKind::kNative, program + 1, 0, -1, 0, program)};
  for (uint32_t at : sites) World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad, at));
  writer.stop();
  EXPECT_EQ(query(path, "SELECT kind, count FROM access_count JOIN site ON site.id = site_id ORDER BY site.id"),
            (std::vector<std::string>{"gc|1", "vm|1", "gc|1", "native|1"}));
}

// Interpreted, VarHandle.setVolatile is an XCHG in libjvm: every field it stores looked loaded too.
TEST_F(Rows, AVolatileStoreOfTheVmIsNoReadModifyWrite) {
  start();
  ThreadState* thread = world.add_thread("main");
  CodeSite code;
  code.kind = SiteKind::kVm;
  const uint64_t pc = reinterpret_cast<uint64_t>(&own_function) + 1;
  const uint8_t swap[] = {0x44, 0x87, 0x20}, compare[] = {0xf0, 0x44, 0x0f, 0xb1, 0x2a};
  World::push(thread, world.access(order, kHeap, 12, 4, Op::kRmw, world.sites.find_or_add(pc, code, swap, 3)));
  World::push(thread, world.access(order, kHeap, 12, 4, Op::kRmw, world.sites.find_or_add(pc + 1, code, compare, 5)));
  code.kind = SiteKind::kC2;  // getAndSet
  World::push(thread, world.access(order, kHeap, 12, 4, Op::kRmw, world.sites.find_or_add(pc + 2, code, swap, 3)));
  writer.stop();
  EXPECT_EQ(query(path, "SELECT op FROM access ORDER BY seq"), (std::vector<std::string>{"store", "rmw", "rmw"}));
}

// C2 17's loop of new String(char[]) has the debug information of the newarray behind it.
TEST_F(Rows, DataStoredAtABytecodeThatCreatesIsNoInitialisation) {
  ClassInfo* chars = world.add_class("[C");
  start();
  ThreadState* thread = world.add_thread("main");
  constexpr uint8_t kNewArray = 188;
  uint32_t zeroes = world.add_site(SiteKind::kC2, 0x7fff00001000, 0, 1, kNewArray);
  uint32_t copies = world.add_site(SiteKind::kC2, 0x7fff00001010, 0, 1, kNewArray);
  world.sites.note_stores_data(copies);
  World::push(thread, world.access(chars, kHeap, 16, 8, Op::kStore, zeroes, 64));
  World::push(thread, world.access(chars, kHeap, 16, 8, Op::kStore, copies, 64));
  writer.stop();
  EXPECT_EQ(query(path, "SELECT part FROM access ORDER BY seq"), (std::vector<std::string>{"init", "element"}));
}

TEST_F(Rows, ElementsHaveTheirIndex) {
  start();
  ThreadState* thread = world.add_thread("main");
  for (uint32_t index : {0, 5, 1000})
    World::push(thread, world.access(ints, kHeap + 64, 16 + index * 4, 4, Op::kStore, site, 8192));
  World::push(thread, world.access(ints, kHeap + 64, 16 + 40, 32, Op::kStore, site, 8192));
  World::push(thread, world.access(ints, kHeap + 64, 12, 4, Op::kLoad, site, 8192));
  writer.stop();
  EXPECT_EQ(query(path, "SELECT part, element, size, address - object FROM access ORDER BY seq"),
            (std::vector<std::string>{"element|0|4|16", "element|5|4|36", "element|1000|4|4016", "element|10|32|56",
                                      "length||4|12"}));
  EXPECT_EQ(one("SELECT count, bytes FROM access_count WHERE part = 'element'"), "4|44");
}

TEST_F(Rows, StaticsAreCreditedToTheDeclaringClass) {
  world.publish_fields(order);
  start();
  ThreadState* thread = world.add_thread("main");
  AccessRecord record = world.access(order, kHeap + 0x2000, 112, 4, Op::kRmw, site, 128);
  record.flags |= kFlagMirror;
  World::push(thread, record);
  writer.stop();
  EXPECT_EQ(
      one("SELECT class_id, field_id, part, op, object FROM access"),
      std::to_string(order->id) + "|" + std::to_string(next->id) + "|static|rmw|" + std::to_string(kHeap + 0x2000));
}

TEST_F(Rows, AddressesOfAllSizesKeepTheirBits) {
  start();
  ThreadState* thread = world.add_thread("main");
  const uint64_t objects[] = {kHeap, kHeap - 8, 0x10, 0x7ffffffffff8, 0xfffffffffffffff0};
  for (uint64_t object : objects) World::push(thread, world.access(order, object, 0, 8, Op::kLoad, site));
  AccessRecord lost = world.access(order, 0, 0, 8, Op::kStore, site);
  lost.class_id = 0;
  lost.address = 0xffffffffff600000;
  World::push(thread, lost);
  writer.stop();
  std::vector<std::string> expected;
  for (uint64_t object : objects) {
    std::string text = std::to_string(static_cast<int64_t>(object));
    expected.push_back(text + "|" + text);
  }
  expected.push_back("|" + std::to_string(static_cast<int64_t>(0xffffffffff600000)));
  EXPECT_EQ(query(path, "SELECT object, address FROM access ORDER BY seq"), expected);
}

TEST_F(Rows, AnUnresolvedAccessHasNoClassAndIsCounted) {
  start();
  ThreadState* thread = world.add_thread("main");
  AccessRecord record = world.access(order, 0, 0, 8, Op::kStore, site);
  record.class_id = 0;
  record.address = kHeap + 8;
  World::push(thread, record);
  World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad, site));
  writer.stop();
  EXPECT_EQ(one("SELECT class_id, part, object, address FROM access WHERE class_id IS NULL"),
            "|||" + std::to_string(kHeap + 8));
  EXPECT_EQ(one("SELECT value, unit FROM diagnostic WHERE name = 'unresolved'"), "1|accesses");
}

TEST_F(Rows, ValuesOnlyWhenAskedFor) {
  start(UINT64_MAX, true);
  world.publish_fields(base);
  world.publish_fields(order);
  ThreadState* thread = world.add_thread("main");
  AccessRecord record = world.access(order, kHeap, 16, 8, Op::kStore, site);
  record.flags |= kFlagValue;
  record.value = 0xfffffffffffffffe;
  World::push(thread, record);
  World::push(thread, world.access(order, kHeap, 16, 8, Op::kLoad, site));  // no value known
  record = world.access(order, kHeap, 12, 8, Op::kStore, site);             // two pieces
  record.flags |= kFlagValue;
  record.value = 0x1122334455667788;
  World::push(thread, record);
  writer.stop();
  EXPECT_EQ(query(path, "SELECT field_id, value FROM access ORDER BY seq"),
            (std::vector<std::string>{std::to_string(total->id) + "|-2", std::to_string(total->id) + "|",
                                      std::to_string(id->id) + "|" + std::to_string(0x55667788),
                                      std::to_string(total->id) + "|" + std::to_string(0x11223344)}));
}

TEST_F(Rows, ValuesOffKeepsNone) {
  start();
  ThreadState* thread = world.add_thread("main");
  AccessRecord record = world.access(order, kHeap, 0, 8, Op::kStore, site);
  record.flags |= kFlagValue;
  record.value = 5;
  World::push(thread, record);
  writer.stop();
  EXPECT_EQ(one("SELECT value IS NULL FROM access"), "1");
}

TEST_F(Rows, CountsAreExactPastTheLimitOfRows) {
  start(1000);
  ThreadState* thread = world.add_thread("main");
  for (int i = 0; i < 25000; ++i)
    World::push(thread, world.access(order, kHeap + 64 * (i % 100), 0, 8, Op::kLoad, site));
  writer.stop();
  EXPECT_EQ(one("SELECT count(*), min(seq), max(seq) FROM access"), "1000|1|1000");
  EXPECT_EQ(one("SELECT sum(count), sum(bytes) FROM access_count"), "25000|200000");
  EXPECT_EQ(one("SELECT value FROM diagnostic WHERE name = 'accesses'"), "25000");
}

TEST_F(Rows, EventsOffKeepsCountsOnly) {
  start(0);
  ThreadState* thread = world.add_thread("main");
  World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad, site));
  writer.stop();
  EXPECT_EQ(one("SELECT count(*) FROM access"), "0");
  EXPECT_EQ(one("SELECT sum(count) FROM access_count"), "1");
}

TEST_F(Rows, PendingStoresBecomeInitOfTheObjectThatAppears) {
  start();
  ThreadState* thread = world.add_thread("main");
  auto pending = [&](uint64_t address) {
    AccessRecord record = world.access(order, 0, 0, 8, Op::kStore, site);
    record.kind = RecordKind::kPending;
    record.class_id = 0;
    record.extent = 0;
    record.flags = 0;
    record.address = address;
    return record;
  };
  World::push(thread, pending(kHeap + 0x100));
  World::push(thread, pending(kHeap + 0x110));
  World::push(thread, pending(kHeap + 0x120));  // beyond the object
  AccessRecord klass_store = world.access(order, kHeap + 0x100, 8, 4, Op::kStore, site);
  klass_store.kind = RecordKind::kKlassStore;
  World::push(thread, klass_store);
  writer.stop();
  std::string klass = std::to_string(order->id), object = std::to_string(kHeap + 0x100);
  EXPECT_EQ(query(path, "SELECT class_id, part, object, address - 0x700000000 FROM access ORDER BY seq"),
            (std::vector<std::string>{klass + "|init|" + object + "|256", klass + "|init|" + object + "|272",
                                      klass + "|init|" + object + "|264", "|||288"}));
  EXPECT_EQ(one("SELECT value FROM diagnostic WHERE name = 'unresolved'"), "1");
}

TEST_F(Rows, PendingStoresOfUnselectedClassesAreDiscarded) {
  start();
  ThreadState* thread = world.add_thread("main");
  AccessRecord store = world.access(order, 0, 0, 8, Op::kStore, site);
  store.kind = RecordKind::kPending;
  store.class_id = 0;
  store.address = kHeap + 0x100;
  World::push(thread, store);
  AccessRecord klass_store = world.access(order, kHeap + 0x100, 8, 4, Op::kStore, site);
  klass_store.kind = RecordKind::kKlassStore;
  klass_store.flags = 0;
  World::push(thread, klass_store);
  World::push(thread, world.access(ints, kHeap, 0, 8, Op::kLoad, site, 64));
  writer.stop();
  EXPECT_EQ(query(path, "SELECT class_id, part FROM access"),
            std::vector<std::string>{std::to_string(ints->id) + "|mark"});
}

TEST_F(Rows, ACollectionEndsTheWaitOfPendingStores) {
  start();
  ThreadState* thread = world.add_thread("main");
  AccessRecord store = world.access(order, 0, 0, 8, Op::kStore, site);
  store.kind = RecordKind::kPending;
  store.class_id = 0;
  store.address = kHeap + 0x100;
  World::push(thread, store);
  AccessRecord klass_store = world.access(order, kHeap + 0x100, 8, 4, Op::kStore, site);
  klass_store.kind = RecordKind::kKlassStore;
  klass_store.gc_id = 1;
  World::push(thread, klass_store);
  writer.stop();
  EXPECT_EQ(query(path, "SELECT class_id, part FROM access ORDER BY seq"),
            (std::vector<std::string>{"|", std::to_string(order->id) + "|init"}));
}

TEST_F(Rows, Collections) {
  start();
  world.add_gc(world.started_ns + 1000, world.started_ns + 3000, "Allocation Failure");
  uint32_t open = world.add_gc(world.started_ns + 5000, 0, "");
  writer.flush();
  EXPECT_EQ(query(path, "SELECT * FROM gc ORDER BY id"),
            (std::vector<std::string>{"1|1000|3000|Allocation Failure", "2|5000||"}));
  world.collections.row(open).end_ns.store(world.started_ns + 6000);
  writer.stop();
  EXPECT_EQ(one("SELECT end_ns FROM gc WHERE id = 2"), "6000");
}

TEST_F(Rows, DiagnosticsSumLiveAndEndedThreadsAndTheProcess) {
  g_counters.heap_walks.store(5);
  start();
  ThreadState* ended = world.add_thread("first");
  ended->counters.traps = 10;
  ended->counters.self_ns = 1000;
  World::end_thread(ended);
  ThreadState* live = world.add_thread("second");
  live->counters.traps = 32;
  writer.flush();
  writer.stop();
  EXPECT_EQ(one("SELECT value, unit FROM diagnostic WHERE name = 'traps'"), "42|traps");
  EXPECT_EQ(one("SELECT value, unit FROM diagnostic WHERE name = 'self_ns'"), "1000|ns");
  EXPECT_EQ(one("SELECT value, unit FROM diagnostic WHERE name = 'heap_walks'"), "5|regions");
  EXPECT_EQ(one("SELECT value, unit FROM diagnostic WHERE name = 'dropped'"), "0|records");
  EXPECT_EQ(
      one("SELECT count(*) FROM diagnostic WHERE name IN ('emulated', 'displaced', 'stepped', 'chained', 'windows', "
          "'unresolved')"),
      "6");
}

TEST_F(Rows, FieldsPublishedAfterTheClassWasWritten) {
  start();
  ThreadState* thread = world.add_thread("main");
  World::push(thread, world.access(order, kHeap, 16, 8, Op::kStore, site));
  writer.flush();
  EXPECT_EQ(one("SELECT part FROM access"), "init");
  EXPECT_EQ(one("SELECT count(*) FROM field"), "0");
  world.publish_fields(base);
  world.publish_fields(order);
  World::push(thread, world.access(order, kHeap, 16, 8, Op::kStore, site));
  writer.stop();
  EXPECT_EQ(one("SELECT f.name FROM access a JOIN field f ON f.id = a.field_id WHERE part = 'field'"), "total");
  EXPECT_EQ(one("SELECT count(*) FROM field"), "4");
}

}  // namespace
}  // namespace classaccess
