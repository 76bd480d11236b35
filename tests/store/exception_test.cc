// Something throws in the writer's thread: the recording ends, the program does not.
#include <gtest/gtest.h>
#include <unistd.h>

#include "agent/base/counters.h"
#include "query.h"
#include "world.h"

namespace classaccess {
namespace {

class WriterThrows : public ::testing::TestWithParam<int32_t> {};

TEST_P(WriterThrows, EndsTheRecordingOnly) {
  alarm(60);
  std::string path = make_directory() + "/throws.db";
  World world;
  Writer writer;
  ASSERT_EQ(writer.open({path, false, UINT64_MAX, false}), "");
  ASSERT_EQ(writer.start(world.sources(), world.run()), "");
  g_recording.store(RecordingState::kOn);
  ClassInfo* order = world.add_class("com/acme/Order", 32);
  ThreadState* thread = world.add_thread("main");
  World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad));
  writer.flush();
  uint32_t method = world.add_method(order, "total", "()J");
  uint32_t site = world.add_site(SiteKind::kC1, 0x7fff00001000, method, GetParam());
  ::testing::internal::CaptureStderr();
  // More than the ring holds: push() returns only if it is drained after the failure.
  for (int i = 0; i < 100000; ++i) World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad, site));
  writer.flush();
  EXPECT_EQ(g_recording.load(), RecordingState::kClosed);
  for (int i = 0; i < 100000; ++i) World::push(thread, world.access(order, kHeap, 0, 8, Op::kLoad, site));
  World::end_thread(thread);
  while (thread->phase.load() != ThreadPhase::kFree) usleep(1000);
  writer.stop();
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "classaccess: cannot write '" + path +
                "': " + (GetParam() == World::kBciOutOfMemory ? "std::bad_alloc" : "the writer failed") +
                "; recording has ended, the program goes on (what was committed is readable)\n");
  EXPECT_EQ(query_one(path, "PRAGMA integrity_check"), "ok");
  EXPECT_EQ(query_one(path, "SELECT status, (SELECT count(*) FROM access) FROM run"), "running|1");
  g_recording.store(RecordingState::kOff);
  alarm(0);
}

INSTANTIATE_TEST_SUITE_P(, WriterThrows, ::testing::Values(World::kBciOutOfMemory, World::kBciUnknownThrow));

}  // namespace
}  // namespace classaccess
