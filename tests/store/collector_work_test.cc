#include "agent/store/collector_work.h"

#include <gtest/gtest.h>

namespace classaccess {
namespace {

TEST(CollectorWork, IsToldByTheFunction) {
  EXPECT_TRUE(is_collector_work("ShenandoahHeap::try_evacuate_object(oopDesc*, Thread*, ShenandoahHeapRegion*)"));
  EXPECT_TRUE(is_collector_work("ShenandoahRuntime::load_reference_barrier_strong_narrow(oopDesc*, narrowOop*)"));
  EXPECT_TRUE(is_collector_work("oopDesc* ShenandoahBarrierSet::load_reference_barrier<narrowOop>(unsigned long)"));
  EXPECT_TRUE(is_collector_work("G1RemSet::refine_card_concurrently(unsigned char*, unsigned int)"));
  EXPECT_TRUE(is_collector_work("ThawBase::recurse_thaw_compiled_frame(frame&, frame const&, int, bool)"));
}

TEST(CollectorWork, TheProgramsAccessesAreNot) {
  EXPECT_FALSE(is_collector_work(
      "AccessInternal::PostRuntimeDispatch<ShenandoahBarrierSet::AccessBarrier<1336358ul, ShenandoahBarrierSet>, "
      "(AccessInternal::BarrierType)5, 1336358ul>::oop_access_barrier(oopDesc*, long, oopDesc*, oopDesc*)"));
  EXPECT_FALSE(is_collector_work("java_lang_Thread::interrupted(oopDesc*)"));
  EXPECT_FALSE(is_collector_work("ObjArrayAllocator::initialize(HeapWordImpl**) const"));
  EXPECT_FALSE(is_collector_work("memcpy"));
  EXPECT_FALSE(is_collector_work(""));
}

}  // namespace
}  // namespace classaccess
