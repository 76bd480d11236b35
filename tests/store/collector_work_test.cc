#include "agent/store/collector_work.h"

#include <gtest/gtest.h>

namespace classaccess {
namespace {

TEST(CollectorWork, IsToldByTheFunction) {
  EXPECT_TRUE(is_collector_work("ShenandoahHeap::try_evacuate_object(oopDesc*, Thread*, ShenandoahHeapRegion*)"));
  EXPECT_TRUE(is_collector_work("ShenandoahRuntime::load_reference_barrier_strong_narrow(oopDesc*, narrowOop*)"));
  EXPECT_TRUE(is_collector_work("oopDesc* ShenandoahBarrierSet::load_reference_barrier<narrowOop>(unsigned long)"));
  EXPECT_TRUE(is_collector_work("G1RemSet::refine_card_concurrently(unsigned char*, unsigned int)"));
  EXPECT_TRUE(is_collector_work("void HeapRegion::oops_on_memregion_seq_iterate_careful<true, G1Closure>(MemRegion)"));
  EXPECT_TRUE(
      is_collector_work("G1DirtyCardQueueSet::refine_completed_buffer_concurrently(unsigned int, unsigned long)"));
  EXPECT_TRUE(
      is_collector_work("void OopOopIterateDispatch<G1ConcurrentRefineOopClosure>::Table::init<InstanceKlass>()"));
  EXPECT_TRUE(is_collector_work("ZBarrierSetRuntime::load_barrier_on_oop_field_preloaded(oopDesc*, oopDesc**)"));
  EXPECT_TRUE(
      is_collector_work("freeze_result freeze_internal<Config<(oop_kind)0, G1BarrierSet> >(JavaThread*, long*)"));
  EXPECT_TRUE(is_collector_work("long* Thaw<Config<(oop_kind)1, ShenandoahBarrierSet> >::thaw_fast<false>(oopDesc*)"));
  EXPECT_TRUE(is_collector_work("void stackChunkOopDesc::do_barriers0<(stackChunkOopDesc::BarrierType)1, X>(X&)"));
  EXPECT_TRUE(is_collector_work("os::pretouch_memory(void*, void*, unsigned long)"));
  EXPECT_TRUE(is_collector_work("StackChunkAllocator::initialize(HeapWordImpl**) const"));
  EXPECT_TRUE(is_collector_work("ThawBase::recurse_thaw_compiled_frame(frame&, frame const&, int, bool)"));
}

TEST(CollectorWork, TheProgramsAccessesAreNot) {
  EXPECT_FALSE(is_collector_work(
      "AccessInternal::PostRuntimeDispatch<ShenandoahBarrierSet::AccessBarrier<1336358ul, ShenandoahBarrierSet>, "
      "(AccessInternal::BarrierType)5, 1336358ul>::oop_access_barrier(oopDesc*, long, oopDesc*, oopDesc*)"));
  EXPECT_FALSE(is_collector_work("ZBarrierSet::AccessBarrier<286822ul, ZBarrierSet>::oop_load_in_heap(oopDesc**)"));
  EXPECT_FALSE(is_collector_work("oopDesc* ShenandoahBarrierSet::AccessBarrier<1ul, X>::oop_atomic_xchg<oopDesc*>(Y)"));
  EXPECT_FALSE(is_collector_work("java_lang_Thread::interrupted(oopDesc*)"));
  EXPECT_FALSE(is_collector_work("ObjArrayAllocator::initialize(HeapWordImpl**) const"));
  EXPECT_FALSE(is_collector_work("memcpy"));
  EXPECT_FALSE(is_collector_work(""));
}

}  // namespace
}  // namespace classaccess
