#include "agent/calls/native/make_hook.h"

#include <string.h>

#include <map>

#include "agent/calls/native/stub_memory.h"
#include "agent/calls/native_hooks.h"

namespace classaccess {
namespace {

std::map<uint64_t, uint32_t> g_hook_of;  // by entry

}  // namespace

std::string make_hook(uint64_t low, uint64_t high, const FunctionCode& code, uint32_t* id_out) {
  Prologue prologue;
  std::string why = plan_prologue(code, &prologue);
  if (!why.empty()) return why;
  if (auto known = g_hook_of.find(code.entry); known != g_hook_of.end()) {
    const NativeHook& hook = g_native_hooks.row(known->second);
    if (hook.moved == prologue.moved && memcmp(hook.original, prologue.original, hook.moved) == 0) {
      *id_out = known->second;
      return "";
    }
    return "another function was hooked at its address before";
  }
  constexpr size_t kStubBytes = 48;
  StubPlace place = take_stub(low, high, kStubBytes + kMaxCopy);
  if (place.at == 0) return "no free memory within 2 GB of it";
  uint32_t id = g_native_hooks.claim();
  if (id == 0) return "too many functions are hooked";
  // See native_hooks.h. The two addresses come first.
  uint64_t entry = native_entry_address(), trampoline = return_trampoline(id);
  uint8_t stub[kStubBytes + kMaxCopy];
  memset(stub, 0xcc, sizeof(stub));
  memcpy(stub, &entry, 8);
  memcpy(stub + 8, &trampoline, 8);
  size_t at = 16;
  auto put = [&](const void* bytes, size_t count) {
    memcpy(stub + at, bytes, count);
    at += count;
  };
  auto put_32 = [&](int64_t value) {
    auto word = static_cast<int32_t>(value);
    put(&word, 4);
  };
  put("\x68", 1);
  put_32(id);
  put("\xff\x15", 2);
  put_32(-static_cast<int64_t>(at + 4));
  put("\x48\x8d\x64\x24\x10", 5);
  put("\xff\x25", 2);
  put_32(8 - static_cast<int64_t>(at + 4));
  const size_t untimed = at;
  put("\x48\x8d\x64\x24\x08", 5);
  const size_t body = at;
  const size_t length = write_copy(&prologue, place.at + body, stub + body);
  if (length == 0) return "what its first instructions refer to is out of reach of their copy";
  memcpy(place.write, stub, body + length);
  NativeHook& hook = g_native_hooks.row(id);
  hook.entry = code.entry;
  hook.patch = prologue.patch;
  hook.stub = place.at + 16;
  hook.untimed = place.at + untimed;
  hook.body = place.at + body;
  hook.moved = prologue.moved;
  memcpy(hook.original, prologue.original, prologue.moved);
  for (const Prologue::Item& item : prologue.items) {
    if (item.from > 0 && item.from < kJumpBytes) hook.inner[item.from] = item.to;
  }
  const auto distance = static_cast<int64_t>(hook.stub - (hook.patch + kJumpBytes));
  if (distance != static_cast<int32_t>(distance)) return "no free memory within 2 GB of it";
  const auto word = static_cast<int32_t>(distance);
  hook.jump[0] = 0xe9;
  memcpy(hook.jump + 1, &word, 4);
  publish_hook(id);
  g_hook_of[code.entry] = id;
  *id_out = id;
  return "";
}

}  // namespace classaccess
