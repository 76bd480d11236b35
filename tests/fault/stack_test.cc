// How deep the handler goes: HotSpot's threads may be close to their guard pages.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

#include "tests/fault/forms.h"
#include "tests/fault/world.h"

namespace classaccess::test {
namespace {

constexpr size_t kStackBytes = 256 << 10;
constexpr size_t kBudget = 16 << 10;

// Deepest use of an alternate stack that `body` makes signals run on.
class PaintedStack {
 public:
  PaintedStack() {
    memory_ =
        static_cast<uint8_t*>(mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    stack_t stack = {memory_, 0, kStackBytes};
    sigaltstack(&stack, &before_);
  }
  ~PaintedStack() {
    sigaltstack(&before_, nullptr);
    munmap(memory_, kStackBytes);
  }
  template <typename Body>
  size_t deepest(Body&& body) {
    memset(memory_, 0xa5, kStackBytes);
    body();
    size_t untouched = 0;
    while (untouched < kStackBytes && memory_[untouched] == 0xa5) ++untouched;
    return kStackBytes - untouched;
  }

 private:
  uint8_t* memory_;
  stack_t before_;
};

// The kernel's frame alone.
size_t frame_bytes(PaintedStack& stack) {
  struct sigaction action {
  }, before;
  action.sa_handler = [](int) {};
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR1, &action, &before);
  size_t bytes = stack.deepest([] { raise(SIGUSR1); });
  sigaction(SIGUSR1, &before, nullptr);
  return bytes;
}

TEST(StackTest, EveryFormStaysInTheBudget) {
  NEEDS_WORLD();
  World& world = World::get();
  uint64_t object = world.make_object(world.box_klass, World::kBoxBytes);
  uint64_t source = world.make_object(world.box_klass, World::kBoxBytes);
  alignas(64) static uint8_t outside[256];
  PaintedStack stack;
  size_t frame = frame_bytes(stack), worst = 0;
  ASSERT_GT(frame, 500u);
  const char* worst_name = "";
  for (const Form& form : forms()) {
    if (form.needs_avx512 && !has_avx512()) continue;
    // Cold, with everything to be looked up and decoded, then warm.
    size_t bytes = stack.deepest([&] {
      world.trace([&] {
        for (int i = 0; i < 2; ++i) {
          Machine m = {};
          m.rcx = 100;
          m.rdx = 1;
          m.rbx = 3;
          m.k1 = 0x0f0f;
          m.rdi = object + 64;
          m.rsi = source + 64;
          m.r8 = reinterpret_cast<uint64_t>(outside);
          *reinterpret_cast<uint64_t*>(world.twin(object + 72)) = 0x0101010101010101;
          form.run(&m);
        }
      });
    });
    EXPECT_TRUE(bytes > frame || form.accesses.empty()) << form.name << ": did not run here";
    if (bytes > worst) worst_name = form.name;
    worst = bytes > worst ? bytes : worst;
  }
  printf("kernel's frame %zu bytes; the handler at most %zu beside it (%s)\n", frame, worst - frame, worst_name);
  EXPECT_LT(worst - frame, kBudget);
}

// The longest way through the tables: a class seen for the first time, with supers and loaders
// that are new too.
TEST(StackTest, AClassAtFirstSightStaysInTheBudget) {
  NEEDS_WORLD();
  World& world = World::get();
  uint64_t loader_data = 0, super = 0;
  for (int i = 0; i < 6; ++i) {
    uint64_t loader = world.vm.make_klass("acme/Loader" + std::to_string(i), 64, 0, loader_data);
    loader_data = world.vm.make_loader(loader);
    super = world.vm.make_klass("acme/Super" + std::to_string(i), 32, super, loader_data);
  }
  uint64_t object = world.make_object(super, 32);
  PaintedStack stack;
  size_t frame = frame_bytes(stack);
  size_t bytes = stack.deepest([&] {
    world.trace([&] { asm volatile("movl 16(%0), %%eax" : : "r"(object) : "rax", "memory"); });
  });
  printf("at most %zu bytes\n", bytes - frame);
  EXPECT_LT(bytes - frame, kBudget);
}

// A safe load that faults inside the handler puts a second frame on the stack.
TEST(StackTest, AFaultInsideTheHandlerStaysInTheBudget) {
  NEEDS_WORLD();
  World& world = World::get();
  uint64_t nonsense = world.take_heap(64, 64);
  world.vm.put_heap(nonsense, 0, uint64_t{1});
  // What looks like a Klass, with its ClassLoaderData where nothing is mapped.
  void* gone = mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(MAP_FAILED, gone);
  uint64_t klass = world.vm.make_klass("acme/Nonsense", 16, 0, reinterpret_cast<uint64_t>(gone));
  world.vm.put_heap(nonsense, 8, static_cast<uint32_t>(klass - world.vm.layout.narrow_klass_base));
  PaintedStack stack;
  size_t frame = frame_bytes(stack);
  Trace trace;
  size_t bytes = stack.deepest([&] {
    trace = world.trace([&] { asm volatile("movl 16(%0), %%eax" : : "r"(nonsense) : "rax", "memory"); });
  });
  EXPECT_EQ(1u, trace.counters.unresolved);
  EXPECT_GT(bytes, 2 * frame) << "there was no second frame: the test tests nothing";
  printf("two frames and %zu bytes\n", bytes - 2 * frame);
  EXPECT_LT(bytes - 2 * frame, kBudget);
}

}  // namespace
}  // namespace classaccess::test
