// How fast the writer turns records into rows and counts, and how large a row is.
// The records come ready-made from two threads; the time is from the first push to the
// end of stop(), so checkpoint and close are in it.
//   store_bench [DIRECTORY] [ROWS]
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <thread>

#include "agent/base/clock.h"
#include "query.h"
#include "world.h"

namespace classaccess {
namespace {

constexpr int kThreads = 2, kClasses = 200, kSites = 4000;

struct Mix {
  const char* name;
  uint64_t max_events;
  bool values;
};

void push_records(World* world, ThreadState* thread, const std::vector<ClassInfo*>& classes, uint64_t records,
                  uint32_t seed, bool values) {
  uint64_t random = seed, now = world->started_ns;
  for (uint64_t i = 0; i < records; ++i) {
    random = random * 6364136223846793005u + 1442695040888963407u;
    uint32_t pick = static_cast<uint32_t>(random >> 33);
    AccessRecord r = {};
    uint32_t site = pick % kSites;
    bool array = site % 4 == 0;
    const ClassInfo* klass = classes[array ? kClasses : site % kClasses];
    now += 900;
    r.t_ns = now;
    r.object = kHeap + (random >> 20) % (1u << 26) * 8;  // 512 MB
    r.address = r.object + (array ? 16 + pick / 64 % 200 * 4 : 12 + site % 3 * 4);
    r.extent = array ? 1024 : 32;
    r.value = random;
    r.site_id = 1 + site;
    r.class_id = klass->id;
    r.size = 4;
    r.gc_id = static_cast<uint32_t>(i / 500000);
    r.op = site % 5 == 0 ? Op::kStore : Op::kLoad;
    r.flags = static_cast<uint8_t>(kFlagSelected | (values ? kFlagValue : 0));
    World::push(thread, r);
    if (i % 1024 == 0) wake_writer();
  }
  World::end_thread(thread);
}

void measure(const std::string& directory, const Mix& mix, uint64_t records) {
  std::string path = directory + "/" + mix.name + ".db";
  World world;
  Writer writer;
  std::vector<ClassInfo*> classes;
  for (int i = 0; i < kClasses; ++i) {
    ClassInfo* klass = world.add_class("com/acme/Measured", 32);
    for (uint32_t f = 0; f < 3; ++f) world.add_field(klass, "f", "I", 12 + f * 4, 4);
    classes.push_back(klass);
  }
  for (ClassInfo* klass : classes) world.publish_fields(klass);
  classes.push_back(world.add_class("[I"));
  for (uint32_t i = 0; i < kSites; ++i) world.add_site(SiteKind::kC2, 0x7fff00000000 + i * 16);
  std::string reason = writer.open({path, true, mix.max_events, mix.values});
  if (reason.empty()) reason = writer.start(world.sources(), world.run());
  if (!reason.empty()) {
    fprintf(stderr, "%s\n", reason.c_str());
    exit(1);
  }
  uint64_t start = monotonic_ns();
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    ThreadState* state = world.add_thread("pusher");
    threads.emplace_back(
        [&, state, i] { push_records(&world, state, classes, records / kThreads, i + 1, mix.values); });
  }
  for (std::thread& thread : threads) thread.join();
  writer.stop();
  double seconds = static_cast<double>(monotonic_ns() - start) / 1e9;
  int64_t rows = query_number(path, "SELECT count(*) FROM event");
  double cpu = static_cast<double>(query_number(path, "SELECT value FROM diagnostic WHERE name = 'writer_ns'")) / 1e9;
  double stall =
      static_cast<double>(query_number(path, "SELECT value FROM diagnostic WHERE name = 'longest_commit_ns'")) / 1e6;
  int64_t table = query_number(path, "SELECT sum(pgsize) FROM dbstat WHERE name = 'event'");
  struct stat info = {};
  stat(path.c_str(), &info);
  printf(
      "%-12s %9lu records %6.2f s %9.0f records/s  writer CPU %5.2f s (%4.0f ns/record)  longest commit %4.0f ms  %8ld "
      "rows",
      mix.name, static_cast<unsigned long>(records), seconds, static_cast<double>(records) / seconds, cpu,
      cpu * 1e9 / static_cast<double>(records), stall, static_cast<long>(rows));
  if (rows > 0) {
    printf("  %.1f bytes/row (file %.1f)", static_cast<double>(table) / static_cast<double>(rows),
           static_cast<double>(info.st_size) / static_cast<double>(rows));
  }
  printf("\n");
  fflush(stdout);
  unlink(path.c_str());
}

}  // namespace
}  // namespace classaccess

int main(int argc, char** argv) {
  using namespace classaccess;
  std::string directory = argc > 1 ? argv[1] : make_directory();
  uint64_t records = argc > 2 ? strtoull(argv[2], nullptr, 10) : 5000000;
  for (const Mix& mix :
       {Mix{"rows", UINT64_MAX, false}, Mix{"rows+values", UINT64_MAX, true}, Mix{"counts", 0, false}}) {
    measure(directory, mix, records);
  }
  if (argc <= 1) remove_directories();
  return 0;
}
