#include "tests/probe/probe_world.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "agent/probe/probe_thread.h"
#include "agent/protect/heap_gate.h"
#include "agent/x86/decode.h"

namespace classaccess {
namespace {

constexpr uint64_t kSide = 2ull << 30;
constexpr long kArchSetGs = 0x1001;

void need(bool ok) {
  if (!ok) abort();
}

struct Data {
  uint64_t plain = 0, twin = 0, buffer = 0;
};

Data make_data() {
  constexpr uint64_t kBytes = ProbeWorld::kDataBytes;
  int fd = static_cast<int>(syscall(SYS_memfd_create, "data", 0));
  need(fd >= 0 && ftruncate(fd, kBytes) == 0);
  // The twin above, so that the distance is positive and arch_prctl takes it.
  void* plain = mmap(reinterpret_cast<void*>(1ull << 40), kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  void* second = mmap(reinterpret_cast<void*>(3ull << 40), kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  need(plain != MAP_FAILED && second != MAP_FAILED && second > plain);
  close(fd);
  void* buffer = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  need(buffer != MAP_FAILED);
  // What a probe does must go to the twin: the plain view is closed.
  need(mprotect(plain, kBytes, PROT_NONE) == 0);
  return {reinterpret_cast<uint64_t>(plain), reinterpret_cast<uint64_t>(second), reinterpret_cast<uint64_t>(buffer)};
}

}  // namespace

ProbeWorld& ProbeWorld::get(ProbeKind kind) {
  static ProbeWorld* compiled = new ProbeWorld(ProbeKind::kCompiled);
  if (kind != ProbeKind::kLibrary) return *compiled;
  static ProbeWorld* library = new ProbeWorld(ProbeKind::kLibrary);
  return *library;
}

ProbeWorld::ProbeWorld(ProbeKind kind) : kind_(kind) {
  constexpr uint64_t kMiddle = 1 << 20;
  void* all = mmap(nullptr, 2 * kSide + 2 * kMiddle, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  need(all != MAP_FAILED);
  uint64_t low = (reinterpret_cast<uint64_t>(all) + kMiddle - 1) & ~(kMiddle - 1);
  code = low + kSide;
  need(mprotect(reinterpret_cast<void*>(code), kCodeBytes, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
  static const Data shared = make_data();
  data = shared.plain;
  twin = shared.twin;
  buffer = shared.buffer;
  need(syscall(SYS_arch_prctl, kArchSetGs, twin - data) == 0);
  t_probe.cursor = buffer;
  watch_this_thread(data, kDataBytes);
  sites = new ProbeSites;
  CodeRoom& room = kind == ProbeKind::kLibrary ? sites->library_room() : sites->room();
  need(room.create(low, low + kSide, code + kMiddle, code + kMiddle + kSide - kMiddle));
  need(sites->create({data, data + kDataBytes, 0, 3, watched_offset()}));
}

uint64_t ProbeWorld::put(const std::vector<uint8_t>& bytes, uint64_t at) {
  memset(reinterpret_cast<void*>(code + at), 0xc3, bytes.size() + 16);
  memcpy(reinterpret_cast<void*>(code + at), bytes.data(), bytes.size());
  return code + at;
}

LayResult ProbeWorld::lay(uint64_t pc, bool patched) {
  auto* in = new Instruction;
  need(decode(reinterpret_cast<const uint8_t*>(pc), 15, in));
  ProbeSites::Request request;
  request.pc = pc;
  request.instruction = in;
  request.kind = kind_;
  request.patched = patched;
  return sites->lay(request);
}

uint64_t ProbeWorld::call(uint64_t pc, uint64_t rdi, uint64_t rsi, uint64_t rdx, uint64_t rcx) {
  return reinterpret_cast<uint64_t (*)(uint64_t, uint64_t, uint64_t, uint64_t)>(pc)(rdi, rsi, rdx, rcx);
}

std::vector<ProbeWorld::Seen> ProbeWorld::take_records() {
  std::vector<Seen> seen;
  for (uint64_t at = buffer; at < t_probe.cursor;) {
    const auto& record = *reinterpret_cast<const ProbeRecord*>(at);
    const Probe& probe = sites->row(probe_id_of(record.head));
    seen.push_back({probe.pc, record.address, probe.shape.record_words > 2 ? record.more[0] : 0});
    at += record_bytes_of(record.head);
  }
  t_probe.cursor = buffer;
  return seen;
}

std::vector<uint8_t> ProbeWorld::bytes(uint64_t pc, size_t count) const {
  const auto* from = reinterpret_cast<const uint8_t*>(pc);
  return std::vector<uint8_t>(from, from + count);
}

}  // namespace classaccess
