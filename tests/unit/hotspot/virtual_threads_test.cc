#include "agent/fault/virtual_threads.h"

#include <gtest/gtest.h>

#include <memory>

#include "agent/base/counters.h"
#include "tests/unit/hotspot/fake_vm.h"

namespace classaccess {
namespace {

// A carrier whose JavaThread, Thread objects and Strings are fabricated.
class VirtualThreadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    VmLayout& l = vm_.layout;
    l.compressed_oops = true;
    l.narrow_oop_shift = 3;
    l.java_thread_object = 16;
    l.java_thread_vthread = 24;
    l.thread_tid = 16;
    l.thread_name = 24;
    l.string_value = 12;
    l.string_coder = 16;
    ASSERT_TRUE(pool_.create());
    carrier_ = pool_.claim(1);
    ASSERT_NE(carrier_, nullptr);
    java_thread_ = vm_.take(64);
    carrier_->hints.java_thread = java_thread_;
    own_ = make_thread(7, "carrier");
    object_handle_ = vm_.take(8);
    vthread_handle_ = vm_.take(8);
    vm_.put(object_handle_, own_);
    vm_.put(java_thread_ + 16, object_handle_);
    vm_.put(java_thread_ + 24, vthread_handle_);
    mount(own_);
  }

  void create(std::vector<std::string_view> globs = {}) {
    globs_ = globs;
    ASSERT_TRUE(threads_.create(&vm_.layout, &pool_, globs_.data(), globs_.size()));
  }

  void put_oop(uint64_t object, uint64_t offset, uint64_t oop) {
    vm_.put_heap(object, offset, static_cast<uint32_t>(oop >> 3));
  }
  uint64_t make_string(const std::u16string& text, bool latin) {
    uint64_t string = vm_.take_heap(24), value = vm_.take_heap(16 + 2 * text.size());
    put_oop(string, 12, value);
    vm_.put_heap(string, 16, static_cast<uint8_t>(latin ? 0 : 1));
    vm_.put_heap(value, 12, static_cast<int32_t>(text.size() * (latin ? 1 : 2)));
    for (size_t i = 0; i < text.size(); i++) {
      if (latin) {
        vm_.put_heap(value, 16 + i, static_cast<uint8_t>(text[i]));
      } else {
        vm_.put_heap(value, 16 + 2 * i, static_cast<uint16_t>(text[i]));
      }
    }
    return string;
  }
  uint64_t make_thread(int64_t tid, const std::string& name) {
    uint64_t thread = vm_.take_heap(64);
    vm_.put_heap(thread, 16, tid);
    put_oop(thread, 24, make_string(std::u16string(name.begin(), name.end()), true));
    return thread;
  }
  void mount(uint64_t thread) { vm_.put(vthread_handle_, thread); }
  std::string name_of(uint32_t id) { return threads_.row(id).name; }

  FakeVm vm_;
  ThreadPool pool_;
  ThreadState* carrier_ = nullptr;
  VirtualThreads threads_;
  std::vector<std::string_view> globs_;
  uint64_t java_thread_ = 0, own_ = 0, object_handle_ = 0, vthread_handle_ = 0;
};

TEST_F(VirtualThreadsTest, ACarrierByItselfHasNone) {
  create();
  EXPECT_EQ(threads_.current(carrier_), 0u);
  // Shenandoah: the same Thread by another address.
  mount(make_thread(7, "carrier"));
  EXPECT_EQ(threads_.current(carrier_), 0u);
  EXPECT_EQ(threads_.end(), 1u);
}

TEST_F(VirtualThreadsTest, OneRowForeverWhereverItLies) {
  create();
  uint64_t first = make_thread(30, "one"), second = make_thread(31, "two");
  mount(first);
  uint32_t one = threads_.current(carrier_);
  ASSERT_NE(one, 0u);
  EXPECT_EQ(threads_.row(one).java_tid, 30);
  EXPECT_EQ(name_of(one), "one");
  EXPECT_EQ(threads_.row(one).carrier_id.load(), carrier_->thread_id);
  mount(second);
  uint32_t two = threads_.current(carrier_);
  EXPECT_NE(two, one);
  EXPECT_NE(threads_.row(two).thread_id, threads_.row(one).thread_id);
  mount(own_);
  EXPECT_EQ(threads_.current(carrier_), 0u);
  // A collection has moved it, and another carrier runs it.
  mount(make_thread(30, "one"));
  ThreadState* other = pool_.claim(2);
  other->hints.java_thread = java_thread_;
  EXPECT_EQ(threads_.current(other), one);
  EXPECT_EQ(threads_.row(one).carrier_id.load(), other->thread_id);
}

TEST_F(VirtualThreadsTest, NamesAreReadAgainWhenTheyChange) {
  create();
  uint64_t thread = make_thread(30, "before");
  mount(thread);
  uint32_t id = threads_.current(carrier_);
  EXPECT_EQ(name_of(id), "before");
  uint32_t version = threads_.row(id).name_version.load();
  EXPECT_EQ(threads_.current(carrier_), id);
  EXPECT_EQ(threads_.row(id).name_version.load(), version) << "not read twice";
  put_oop(thread, 24, make_string(u"w\u00f6rker \u65e5", false));
  EXPECT_EQ(threads_.current(carrier_), id);
  EXPECT_EQ(name_of(id), "w\xC3\xB6rker \xE6\x97\xA5");
  put_oop(thread, 24, make_string(u"\u00e4", true));
  EXPECT_EQ(threads_.current(carrier_), id);
  EXPECT_EQ(name_of(id), "\xC3\xA4") << "Latin-1";
  put_oop(thread, 24, 0);
  EXPECT_EQ(threads_.current(carrier_), id);
  EXPECT_EQ(name_of(id), "");
}

TEST_F(VirtualThreadsTest, LongNamesEndWithAWholeCharacter) {
  create();
  const size_t room = kThreadNameBytes - 1;
  uint64_t thread = make_thread(30, std::string(1000, 'x'));
  mount(thread);
  uint32_t id = threads_.current(carrier_);
  EXPECT_EQ(name_of(id), std::string(room, 'x'));
  put_oop(thread, 24, make_string(std::u16string(300, u'\u00e4'), true));
  threads_.current(carrier_);
  EXPECT_EQ(name_of(id).size(), room - 1) << "two bytes each";
  // Surrogate pairs take six bytes: 42 of them make 252, and three remain.
  std::u16string pairs;
  for (int i = 0; i < 60; i++) pairs += u"\xD83D\xDE00";
  put_oop(thread, 24, make_string(pairs, false));
  threads_.current(carrier_);
  EXPECT_EQ(name_of(id).size(), 252u);
}

TEST_F(VirtualThreadsTest, AreChosenByTheirOwnNames) {
  create({"v-1*", "main"});
  mount(make_thread(30, "v-17"));
  EXPECT_TRUE(threads_.row(threads_.current(carrier_)).recorded);
  mount(make_thread(31, "v-2"));
  EXPECT_FALSE(threads_.row(threads_.current(carrier_)).recorded);
}

TEST_F(VirtualThreadsTest, APauseIsWaitedFor) {
  create();
  mount(make_thread(30, "one"));
  g_gc_id.store(5);
  g_gc_finished.store(4);
  pthread_t thread;
  pthread_create(
      &thread, nullptr,
      [](void*) -> void* {
        timespec pause = {0, 20000000};
        nanosleep(&pause, nullptr);
        g_gc_finished.store(5);
        return nullptr;
      },
      nullptr);
  EXPECT_NE(threads_.current(carrier_), 0u);
  EXPECT_EQ(g_gc_finished.load(), 5u) << "read while objects may move";
  pthread_join(thread, nullptr);
  g_gc_id.store(0);
  g_gc_finished.store(0);
}

TEST_F(VirtualThreadsTest, NoneBefore21) {
  create();
  vm_.layout.java_thread_vthread = 0;
  mount(make_thread(30, "one"));
  EXPECT_EQ(threads_.current(carrier_), 0u);
}

}  // namespace
}  // namespace classaccess
