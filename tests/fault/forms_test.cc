// Every form once unarmed and once trapped: same registers, flags, vectors and memory; and
// the records say what it did.
#include "tests/fault/forms.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "tests/fault/world.h"

namespace classaccess::test {
namespace {

struct Snapshot {
  Machine machine;
  std::string object, source, outside;
};

class FormsTest : public testing::Test {
 protected:
  void SetUp() override { NEEDS_WORLD(); }

  void prepare(Snapshot* s, uint64_t object, uint64_t source, uint8_t* outside) {
    World& world = World::get();
    world.fill(object + 12, object + World::kBoxBytes);
    world.fill(source + 12, source + World::kBoxBytes);
    memset(outside, 0x6b, 256);
    memset(static_cast<void*>(&s->machine), 0, sizeof(Machine));
    Machine& m = s->machine;
    m.rax = 0x1122334455667788;
    m.rcx = 100;
    m.rdx = 0x99aabbccddeeff01;
    m.rbx = 3;
    m.rdi = object + 64;
    m.rsi = source + 64;
    m.r8 = reinterpret_cast<uint64_t>(outside);
    m.k1 = 0x0f0f;
    for (int i = 0; i < 64; ++i) m.zmm0[i] = static_cast<uint8_t>(i * 3 + 1);
  }
  void keep(Snapshot* s, uint64_t object, uint64_t source, const uint8_t* outside) {
    World& world = World::get();
    s->object.assign(world.twin(object), World::kBoxBytes);
    s->source.assign(world.twin(source), World::kBoxBytes);
    s->outside.assign(reinterpret_cast<const char*>(outside), 256);
  }
};

TEST_F(FormsTest, ResultsAreTheCpusAndRecordsSayWhatHappened) {
  World& world = World::get();
  uint64_t object = world.make_object(world.box_klass, World::kBoxBytes);
  uint64_t source = world.make_object(world.box_klass, World::kBoxBytes);
  uint32_t box = world.class_of(world.box_klass)->id;
  alignas(64) static uint8_t outside[256];
  int skipped = 0;
  for (int round = 0; round < 2; ++round) {  // the second from warm tables
    for (const Form& form : forms()) {
      SCOPED_TRACE(form.name);
      if (form.needs_avx512 && !has_avx512()) {
        ++skipped;
        continue;
      }
      Snapshot expected, got;
      prepare(&expected, object, source, outside);
      form.run(&expected.machine);
      keep(&expected, object, source, outside);
      prepare(&got, object, source, outside);
      Trace trace = world.trace([&] { form.run(&got.machine); });
      keep(&got, object, source, outside);

      EXPECT_EQ(0, memcmp(&expected.machine, &got.machine, offsetof(Machine, flags)));
      EXPECT_EQ(expected.machine.flags, got.machine.flags);
      EXPECT_EQ(expected.machine.k1, got.machine.k1);
      EXPECT_EQ(0, memcmp(expected.machine.zmm0, got.machine.zmm0, 128)) << "vectors";
      EXPECT_EQ(expected.object, got.object);
      EXPECT_EQ(expected.source, got.source);
      EXPECT_EQ(expected.outside, got.outside);

      ASSERT_EQ(form.accesses.size(), trace.records.size());
      for (size_t i = 0; i < form.accesses.size(); ++i) {
        const Expected& e = form.accesses[i];
        const AccessRecord& r = trace.records[i];
        uint64_t owner = e.source ? source : object;
        EXPECT_EQ(e.offset, static_cast<int64_t>(r.address - owner - 64)) << i;
        EXPECT_EQ(e.size, r.size) << i;
        EXPECT_EQ(e.op, r.op) << i;
        EXPECT_EQ(RecordKind::kAccess, r.kind) << i;
        EXPECT_EQ(owner, r.object) << i;
        EXPECT_EQ(World::kBoxBytes, r.extent) << i;
        EXPECT_EQ(box, r.class_id) << i;
        EXPECT_EQ(kFlagSelected, r.flags) << i;
        EXPECT_EQ(0u, r.gc_id) << i;
        ASSERT_NE(0u, r.site_id) << i;
        const SiteInfo& site = world.sites.row(r.site_id);
        EXPECT_EQ(SiteKind::kNative, site.kind);
        EXPECT_EQ(0, memcmp(site.bytes, reinterpret_cast<void*>(site.pc), site.length)) << i;
      }
      const ThreadCounters& c = trace.counters;
      EXPECT_EQ(trace.records.size(), c.recorded);
      EXPECT_EQ(c.traps, c.emulated + c.displaced + c.stepped);
      EXPECT_EQ(form.how == How::kStepped ? 1u : 0u, c.stepped);
      EXPECT_EQ(form.how == How::kDisplaced ? 1u : 0u, c.displaced);
      EXPECT_EQ(0u, c.unresolved + c.filtered + c.chained + c.waits + c.dropped);
    }
  }
  if (skipped != 0) printf("%d AVX-512 forms left out: this CPU has none\n", skipped);
}

TEST_F(FormsTest, AClassThatIsNotSelectedLeavesNoRecord) {
  World& world = World::get();
  uint64_t object = world.make_object(world.hidden_klass, 64);
  auto* field = reinterpret_cast<volatile uint64_t*>(object + 16);
  Trace trace = world.trace([&] { *field = *field + 1; });
  EXPECT_TRUE(trace.records.empty());
  EXPECT_EQ(2u, trace.counters.filtered);
  EXPECT_EQ(2u, trace.counters.traps);
}

TEST_F(FormsTest, ArraysAndRunsOverSeveralObjects) {
  World& world = World::get();
  // Three arrays side by side, and a copy that runs over all of them.
  const uint64_t bytes = 16 + 4 * 30;
  uint64_t at = world.take_heap(3 * bytes, 64), to = world.take_heap(3 * bytes, 64);
  for (int i = 0; i < 3; ++i) {
    world.put_array(at + i * bytes, world.int_array, 30);
    world.starts.set(at + i * bytes);
  }
  uint32_t ints = world.class_of(world.int_array)->id;
  Trace trace = world.trace([&] {
    uint64_t from = at + 16, dest = to, n = 3 * bytes - 16;
    asm volatile("rep movsb" : "+S"(from), "+D"(dest), "+c"(n) : : "memory");
  });
  ASSERT_EQ(4u, trace.records.size());
  for (uint64_t i = 0; i < 3; ++i) {
    const AccessRecord& r = trace.records[i];
    EXPECT_EQ(at + i * bytes, r.object);
    EXPECT_EQ(at + i * bytes + (i == 0 ? 16 : 0), r.address);
    EXPECT_EQ(i == 0 ? bytes - 16 : bytes, r.size);
    EXPECT_EQ(ints, r.class_id);
    EXPECT_EQ(bytes, r.extent);
  }
  EXPECT_EQ(RecordKind::kPending, trace.records[3].kind) << "no object is there yet";
  EXPECT_EQ(3 * bytes - 16, trace.records[3].size);
  EXPECT_EQ(0, memcmp(world.twin(at + 16), world.twin(to), 3 * bytes - 16));
}

TEST_F(FormsTest, StaticsAreTheMirrorsClass) {
  World& world = World::get();
  uint64_t mirror = world.vm.mirror_of(world.box_klass);
  world.starts.set(mirror);
  auto* field = reinterpret_cast<volatile uint32_t*>(mirror + 0x78);
  Trace trace = world.trace([&] { *field = 12; });
  ASSERT_EQ(1u, trace.records.size());
  EXPECT_EQ(mirror, trace.records[0].object);
  EXPECT_EQ(world.class_of(world.box_klass)->id, trace.records[0].class_id);
  EXPECT_EQ(kFlagMirror | kFlagSelected, trace.records[0].flags);
}

// An array over the end of the closed part of the heap.
class BorderTest : public FormsTest {
 protected:
  void SetUp() override {
    NEEDS_WORLD();
    World& world = World::get();
    array_ = world.armed_end() - 4096;
    world.put_array(array_, world.byte_array, 8192 - 16);
    world.fill(array_ + 16, array_ + 8192);
    world.starts.set(array_);
    before_.assign(world.twin(array_), 8192);
  }
  char* end() { return reinterpret_cast<char*>(World::get().armed_end()); }
  std::string contents() { return {World::get().twin(array_), 8192}; }
  uint64_t array_ = 0;
  std::string before_;
};

TEST_F(BorderTest, AnInstructionOverTheEndIsStepped) {
  World& world = World::get();
  uint64_t value = 0;
  Trace trace = world.trace([&] {
    asm volatile("movq -4(%1), %0\n movq %2, -3(%1)\n" : "=&r"(value) : "r"(end()), "r"(0x0807060504030201) : "memory");
  });
  EXPECT_EQ(0, memcmp(&value, before_.data() + 4092, 8));
  EXPECT_EQ(0, memcmp(contents().data() + 4093, "\1\2\3\4\5\6\7\10", 8));
  ASSERT_EQ(2u, trace.records.size());
  EXPECT_EQ(array_ + 4092, trace.records[0].address);
  EXPECT_EQ(8u, trace.records[0].size);
  EXPECT_EQ(array_, trace.records[0].object);
  EXPECT_EQ(Op::kStore, trace.records[1].op);
  EXPECT_EQ(2u, trace.counters.stepped);
  // And closed again afterwards.
  Trace again = world.trace([&] { asm volatile("movb -1(%0), %%al" : : "r"(end()) : "rax", "memory"); });
  EXPECT_EQ(1u, again.records.size());
  EXPECT_EQ(1u, again.counters.emulated);
}

TEST_F(BorderTest, AStringOverTheEndGoesOn) {
  World& world = World::get();
  for (unsigned offset : {800u, 803u}) {  // 803: a quadword lies over the border
    SCOPED_TRACE(offset);
    memcpy(world.twin(array_), before_.data(), 8192);
    Trace trace = world.trace([&] {
      char* to = end() - offset;
      uint64_t n = 200, value = 0x1111111111111111;
      asm volatile("rep stosq" : "+D"(to), "+c"(n) : "a"(value) : "memory");
      EXPECT_EQ(end() - offset + 1600, to);
      EXPECT_EQ(0u, n);
    });
    std::string expected = before_;
    expected.replace(4096 - offset, 1600, std::string(1600, '\x11'));
    EXPECT_EQ(expected, contents());
    ASSERT_FALSE(trace.records.empty());
    EXPECT_EQ(array_ + 4096 - offset, trace.records[0].address);
    EXPECT_EQ(800u, trace.records[0].size) << "what is closed, in one";
    EXPECT_EQ(offset == 800 ? 1u : 2u, trace.records.size());
    EXPECT_EQ(offset == 800 ? 0u : 1u, trace.counters.stepped);
  }
}

TEST_F(BorderTest, MaskedLanesBehindTheEndDoNotCount) {
  if (!has_avx512()) GTEST_SKIP() << "no AVX-512";
  World& world = World::get();
  Trace trace = world.trace([&] {
    asm volatile(
        "mov $0xff, %%eax\n kmovw %%eax, %%k1\n vpternlogd $0xff, %%zmm0, %%zmm0, %%zmm0\n"
        "vmovdqu32 %%zmm0, -32(%0)%{%%k1%}\n vzeroupper"
        :
        : "r"(end())
        : "rax", "xmm0", "memory");
  });
  std::string expected = before_;
  expected.replace(4064, 32, std::string(32, '\xff'));
  EXPECT_EQ(expected, contents());
  ASSERT_EQ(1u, trace.records.size());
  EXPECT_EQ(32u, trace.records[0].size);
  EXPECT_EQ(1u, trace.counters.displaced);
}

TEST_F(BorderTest, AClosedPageInsideAnotherIsCrossedFreely) {
  World& world = World::get();
  uint64_t big = world.make_array(world.byte_array, 3 * 4096, 1);
  uint64_t border = (big + 16 + 4095) & ~4095ull;
  uint64_t value = 0;
  Trace trace = world.trace([&] { asm volatile("movq -4(%1), %0" : "=r"(value) : "r"(border) : "memory"); });
  EXPECT_EQ(0, memcmp(&value, world.twin(border - 4), 8));
  EXPECT_EQ(1u, trace.counters.emulated);
  ASSERT_EQ(1u, trace.records.size());
  EXPECT_EQ(border - 4, trace.records[0].address);
}

TEST_F(FormsTest, ErrnoIsKept) {
  World& world = World::get();
  uint64_t object = world.make_object(world.box_klass, World::kBoxBytes);
  world.trace([&] {
    for (const Form& form : forms()) {
      if (form.needs_avx512) continue;
      alignas(64) uint8_t outside[256] = {};
      Machine m = {};
      m.rcx = 10;
      m.rbx = 3;
      m.rdi = object + 64;
      m.rsi = object + 512;
      m.r8 = reinterpret_cast<uint64_t>(outside);
      errno = 77;
      *reinterpret_cast<volatile uint64_t*>(World::get().twin(object + 72)) = 0x0101010101010101;  // a divisor
      form.run(&m);
      EXPECT_EQ(77, errno) << form.name;
    }
  });
}

TEST_F(FormsTest, ValuesAreKeptIfAsked) {
  World& world = World::get();
  uint64_t object = world.make_object(world.box_klass, World::kBoxBytes);
  *reinterpret_cast<uint32_t*>(world.twin(object + 64)) = 0xabcd1234;
  world.access.values = true;
  Trace trace = world.trace([&] {
    asm volatile(
        "movl (%0), %%eax\n movb $7, 4(%0)\n lock addl $1, (%0)\n movss (%0), %%xmm0\n movq %%xmm0, 8(%0)\n"
        "movups (%0), %%xmm0\n"
        :
        : "r"(object + 64)
        : "rax", "xmm0", "memory");
  });
  world.access.values = false;
  ASSERT_EQ(6u, trace.records.size());
  const uint64_t expected[] = {0xabcd1234, 7, 0xabcd1235, 0xabcd1235, 0xabcd1235};
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(kFlagValue, trace.records[i].flags & kFlagValue) << i;
    EXPECT_EQ(expected[i], trace.records[i].value) << i;
  }
  EXPECT_EQ(0, trace.records[5].flags & kFlagValue) << "16 bytes";
}

}  // namespace
}  // namespace classaccess::test
