#include "agent/jvmti/heap_system_calls.h"

#include <errno.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/base/counters.h"
#include "agent/base/safe_load.h"
#include "agent/base/terminal_line.h"
#include "agent/fault/fault_handler.h"
#include "agent/jvmti/library_hooks.h"
#include "agent/protect/armed_pages.h"
#include "agent/protect/heap_gate.h"
#include "agent/protect/protection_key.h"
#include "agent/protect/twin_view.h"

namespace classaccess {
namespace {

AccessPath* g_access = nullptr;
constexpr int kMostPieces = 1024;  // IOV_MAX

bool in_heap(const void* pointer) { return g_committed.armed(reinterpret_cast<uint64_t>(pointer)); }

template <typename T>
T* on_twin(T* pointer) {
  auto address = reinterpret_cast<uint64_t>(pointer);
  return g_committed.armed(address) ? reinterpret_cast<T*>(g_twin.at(address)) : pointer;
}

// The kernel has touched these bytes.
void note(const void* from, size_t bytes, Op op, const void* caller) {
  auto address = reinterpret_cast<uint64_t>(from);
  ThreadState* thread = FaultHandler::this_thread();
  if (bytes == 0 || g_recording.load(std::memory_order_relaxed) != RecordingState::kOn || !g_armed.armed(address) ||
      t_agent_depth != 0 || thread == nullptr ||
      thread->choice.load(std::memory_order_relaxed) == ThreadChoice::kExcluded) {
    return;
  }
  int saved_errno = errno;
  AgentScope scope;
  g_access->record_kernel_run(thread, address, bytes, op, reinterpret_cast<uint64_t>(caller));
  count(g_counters.kernel_runs);
  errno = saved_errno;
}

// Without a twin the key is open for this thread during the call. (With mprotect as well
// there is nothing to be done: EFAULT, as the README says.)
class OpenKey {
 public:
  explicit OpenKey(bool needed) : opened_(needed && !g_twin.created() && g_gate.per_thread() && g_key.denied_here()) {
    if (opened_) g_key.allow_here();
  }
  ~OpenKey() {
    if (opened_) g_key.deny_here();
  }
  OpenKey(const OpenKey&) = delete;
  OpenKey& operator=(const OpenKey&) = delete;

 private:
  bool opened_;
};

size_t done(ssize_t result) { return result > 0 ? static_cast<size_t>(result) : 0; }

// Pieces of a readv or sendmsg, translated; their memory is the caller's.
class Pieces {
 public:
  Pieces(const iovec* pieces, size_t count) : given_(on_twin(const_cast<iovec*>(pieces))), count_(count) {
    if (count > kMostPieces) return;  // EINVAL
    for (size_t i = 0; i < count; ++i) translated_[i] = {on_twin(given_[i].iov_base), given_[i].iov_len};
  }
  iovec* get() { return count_ > kMostPieces ? given_ : translated_; }
  void note_done(ssize_t result, Op op, const void* caller) const {
    size_t left = done(result);
    for (size_t i = 0; i < count_ && left != 0; ++i) {
      size_t bytes = given_[i].iov_len < left ? given_[i].iov_len : left;
      note(given_[i].iov_base, bytes, op, caller);
      left -= bytes;
    }
  }
  static bool needed(const iovec* pieces, size_t count) {
    if (count == 0 || count > kMostPieces || pieces == nullptr) return false;
    if (in_heap(pieces)) return true;
    // A pointer of the program's own that may be bad: only the kernel may find out.
    for (size_t i = 0; i < count; ++i) {
      uint64_t base = 0;
      if (!safe_load(reinterpret_cast<uint64_t>(&pieces[i].iov_base), &base)) return false;
      if (g_committed.armed(base)) return true;
    }
    return false;
  }

 private:
  iovec* given_;
  size_t count_;
  iovec translated_[kMostPieces];
};

#define CALLER __builtin_return_address(0)

// call(buffer) with the buffer's twin; what the kernel moved is recorded.
template <typename Pointer, typename Call>
ssize_t with_buffer(Pointer buffer, Op op, const void* caller, Call call) {
  OpenKey key(in_heap(buffer));
  ssize_t result = call(on_twin(buffer));
  if (in_heap(buffer)) note(buffer, done(result), op, caller);
  return result;
}

// The same for the pieces of a vector. Not inlined: a call without heap pieces does not pay
// for the stack.
template <typename Call>
__attribute__((noinline)) ssize_t with_heap_pieces(const iovec* given, int n, Op op, const void* caller, Call call) {
  OpenKey key(true);
  Pieces pieces(given, static_cast<size_t>(n));
  ssize_t result = call(pieces.get());
  pieces.note_done(result, op, caller);
  return result;
}
template <typename Call>
ssize_t with_pieces(const iovec* given, int n, Op op, const void* caller, Call call) {
  if (!Pieces::needed(given, static_cast<size_t>(n))) return call(given);
  return with_heap_pieces(given, n, op, caller, call);
}

ssize_t (*o_read)(int, void*, size_t);
ssize_t h_read(int fd, void* to, size_t bytes) {
  return with_buffer(to, Op::kStore, CALLER, [=](void* twin) { return o_read(fd, twin, bytes); });
}

ssize_t (*o_write)(int, const void*, size_t);
ssize_t h_write(int fd, const void* from, size_t bytes) {
  return with_buffer(from, Op::kLoad, CALLER, [=](const void* twin) {
    before_output(fd);
    ssize_t result = o_write(fd, twin, bytes);
    after_output(fd, twin, done(result));
    return result;
  });
}

// pread and pread64 are two names: each has its own original.
template <int kName>
struct At {
  static ssize_t (*o_pread)(int, void*, size_t, off_t);
  static ssize_t pread(int fd, void* to, size_t bytes, off_t at) {
    return with_buffer(to, Op::kStore, CALLER, [=](void* twin) { return o_pread(fd, twin, bytes, at); });
  }
  static ssize_t (*o_pwrite)(int, const void*, size_t, off_t);
  static ssize_t pwrite(int fd, const void* from, size_t bytes, off_t at) {
    return with_buffer(from, Op::kLoad, CALLER, [=](const void* twin) { return o_pwrite(fd, twin, bytes, at); });
  }
  static ssize_t (*o_preadv)(int, const iovec*, int, off_t);
  static ssize_t preadv(int fd, const iovec* to, int n, off_t at) {
    return with_pieces(to, n, Op::kStore, CALLER, [=](const iovec* pieces) { return o_preadv(fd, pieces, n, at); });
  }
  static ssize_t (*o_pwritev)(int, const iovec*, int, off_t);
  static ssize_t pwritev(int fd, const iovec* from, int n, off_t at) {
    return with_pieces(from, n, Op::kLoad, CALLER, [=](const iovec* pieces) { return o_pwritev(fd, pieces, n, at); });
  }
};
template <int kName>
ssize_t (*At<kName>::o_pread)(int, void*, size_t, off_t);
template <int kName>
ssize_t (*At<kName>::o_pwrite)(int, const void*, size_t, off_t);
template <int kName>
ssize_t (*At<kName>::o_preadv)(int, const iovec*, int, off_t);
template <int kName>
ssize_t (*At<kName>::o_pwritev)(int, const iovec*, int, off_t);

ssize_t (*o_readv)(int, const iovec*, int);
ssize_t h_readv(int fd, const iovec* to, int n) {
  return with_pieces(to, n, Op::kStore, CALLER, [=](const iovec* pieces) { return o_readv(fd, pieces, n); });
}

ssize_t (*o_writev)(int, const iovec*, int);
ssize_t h_writev(int fd, const iovec* from, int n) {
  return with_pieces(from, n, Op::kLoad, CALLER, [=](const iovec* pieces) { return o_writev(fd, pieces, n); });
}

ssize_t (*o_send)(int, const void*, size_t, int);
ssize_t h_send(int fd, const void* from, size_t bytes, int flags) {
  return with_buffer(from, Op::kLoad, CALLER, [=](const void* twin) { return o_send(fd, twin, bytes, flags); });
}

ssize_t (*o_sendto)(int, const void*, size_t, int, const sockaddr*, socklen_t);
ssize_t h_sendto(int fd, const void* from, size_t bytes, int flags, const sockaddr* to, socklen_t to_bytes) {
  OpenKey key(in_heap(from) || in_heap(to));
  ssize_t result = o_sendto(fd, on_twin(from), bytes, flags, on_twin(to), to_bytes);
  if (in_heap(from)) note(from, done(result), Op::kLoad, CALLER);
  if (in_heap(to) && result >= 0) note(to, to_bytes, Op::kLoad, CALLER);
  return result;
}

// A flag says that the result is the packet's whole length, of which `bytes` fitted.
size_t received(ssize_t result, size_t bytes) { return done(result) < bytes ? done(result) : bytes; }

ssize_t (*o_recv)(int, void*, size_t, int);
ssize_t h_recv(int fd, void* to, size_t bytes, int flags) {
  OpenKey key(in_heap(to));
  ssize_t result = o_recv(fd, on_twin(to), bytes, flags);
  if (in_heap(to)) note(to, received(result, bytes), Op::kStore, CALLER);
  return result;
}

ssize_t (*o_recvfrom)(int, void*, size_t, int, sockaddr*, socklen_t*);
ssize_t h_recvfrom(int fd, void* to, size_t bytes, int flags, sockaddr* from, socklen_t* from_bytes) {
  OpenKey key(in_heap(to) || in_heap(from) || in_heap(from_bytes));
  socklen_t* length = on_twin(from_bytes);
  socklen_t room = in_heap(from) && length != nullptr ? *length : 0;
  ssize_t result = o_recvfrom(fd, on_twin(to), bytes, flags, on_twin(from), length);
  if (in_heap(to)) note(to, received(result, bytes), Op::kStore, CALLER);
  if (in_heap(from) && result >= 0) note(from, *length < room ? *length : room, Op::kStore, CALLER);
  if (in_heap(from_bytes) && result >= 0) note(from_bytes, sizeof(socklen_t), Op::kRmw, CALLER);
  return result;
}

// What of a message is in the heap. `given` is readable only if it is safe to load.
bool message_in_heap(const msghdr* given) {
  if (given == nullptr) return false;
  if (in_heap(given)) return true;
  uint64_t name = 0, pieces = 0, count = 0, control = 0;
  if (!safe_load(reinterpret_cast<uint64_t>(&given->msg_name), &name) ||
      !safe_load(reinterpret_cast<uint64_t>(&given->msg_iov), &pieces) ||
      !safe_load(reinterpret_cast<uint64_t>(&given->msg_iovlen), &count) ||
      !safe_load(reinterpret_cast<uint64_t>(&given->msg_control), &control)) {
    return false;
  }
  return g_committed.armed(name) || g_committed.armed(control) ||
         Pieces::needed(reinterpret_cast<const iovec*>(pieces), count);
}

void note_message(const msghdr* given, const msghdr& now, Op op, const void* caller) {
  if (in_heap(given)) note(given, sizeof(msghdr), op == Op::kStore ? Op::kRmw : op, caller);
  if (in_heap(now.msg_iov)) note(now.msg_iov, now.msg_iovlen * sizeof(iovec), Op::kLoad, caller);
  if (in_heap(now.msg_name)) note(now.msg_name, now.msg_namelen, op, caller);
  if (in_heap(now.msg_control)) note(now.msg_control, now.msg_controllen, op, caller);
}

ssize_t (*o_sendmsg)(int, const msghdr*, int);
__attribute__((noinline)) ssize_t heap_sendmsg(int fd, const msghdr* given, int flags, const void* caller) {
  OpenKey key(true);
  const msghdr message = *on_twin(given);
  msghdr translated = message;
  Pieces pieces(message.msg_iov, message.msg_iovlen);
  translated.msg_name = on_twin(message.msg_name);
  translated.msg_iov = pieces.get();
  translated.msg_control = on_twin(message.msg_control);
  ssize_t result = o_sendmsg(fd, &translated, flags);
  if (result >= 0) note_message(given, message, Op::kLoad, caller);
  pieces.note_done(result, Op::kLoad, caller);
  return result;
}
ssize_t h_sendmsg(int fd, const msghdr* given, int flags) {
  return message_in_heap(given) ? heap_sendmsg(fd, given, flags, CALLER) : o_sendmsg(fd, given, flags);
}

ssize_t (*o_recvmsg)(int, msghdr*, int);
__attribute__((noinline)) ssize_t heap_recvmsg(int fd, msghdr* given, int flags, const void* caller) {
  OpenKey key(true);
  msghdr message = *on_twin(given);
  msghdr translated = message;
  Pieces pieces(message.msg_iov, message.msg_iovlen);
  translated.msg_name = on_twin(message.msg_name);
  translated.msg_iov = pieces.get();
  translated.msg_control = on_twin(message.msg_control);
  ssize_t result = o_recvmsg(fd, &translated, flags);
  if (result < 0) return result;
  // What the kernel writes into the message itself.
  msghdr* visible = on_twin(given);
  visible->msg_namelen = translated.msg_namelen;
  visible->msg_controllen = translated.msg_controllen;
  visible->msg_flags = translated.msg_flags;
  if (message.msg_namelen > translated.msg_namelen) message.msg_namelen = translated.msg_namelen;
  message.msg_controllen = translated.msg_controllen;
  note_message(given, message, Op::kStore, caller);
  pieces.note_done(result, Op::kStore, caller);
  return result;
}
ssize_t h_recvmsg(int fd, msghdr* given, int flags) {
  return message_in_heap(given) ? heap_recvmsg(fd, given, flags, CALLER) : o_recvmsg(fd, given, flags);
}

// Large blocks go straight from and to the kernel, inside the C library.
size_t (*o_fread)(void*, size_t, size_t, FILE*);
size_t h_fread(void* to, size_t size, size_t n, FILE* file) {
  OpenKey key(in_heap(to));
  size_t result = o_fread(on_twin(to), size, n, file);
  if (in_heap(to)) note(to, result * size, Op::kStore, CALLER);
  return result;
}

size_t (*o_fwrite)(const void*, size_t, size_t, FILE*);
size_t h_fwrite(const void* from, size_t size, size_t n, FILE* file) {
  OpenKey key(in_heap(from));
  size_t result = o_fwrite(on_twin(from), size, n, file);
  if (in_heap(from)) note(from, result * size, Op::kLoad, CALLER);
  return result;
}

ssize_t (*o_getrandom)(void*, size_t, unsigned);
ssize_t h_getrandom(void* to, size_t bytes, unsigned flags) {
  OpenKey key(in_heap(to));
  ssize_t result = o_getrandom(on_twin(to), bytes, flags);
  if (in_heap(to)) note(to, done(result), Op::kStore, CALLER);
  return result;
}

template <typename F>
LibraryHook hook(const char* name, F* replacement, F** original) {
  return {name, reinterpret_cast<void*>(replacement), reinterpret_cast<void**>(original)};
}

}  // namespace

bool add_system_call_hooks(AccessPath* access) {
  g_access = access;
  using Off = At<0>;
  using Off64 = At<1>;
  const LibraryHook hooks[] = {
      hook("read", h_read, &o_read),
      hook("write", h_write, &o_write),
      hook("pread", Off::pread, &Off::o_pread),
      hook("pread64", Off64::pread, &Off64::o_pread),
      hook("pwrite", Off::pwrite, &Off::o_pwrite),
      hook("pwrite64", Off64::pwrite, &Off64::o_pwrite),
      hook("readv", h_readv, &o_readv),
      hook("writev", h_writev, &o_writev),
      hook("preadv", Off::preadv, &Off::o_preadv),
      hook("preadv64", Off64::preadv, &Off64::o_preadv),
      hook("pwritev", Off::pwritev, &Off::o_pwritev),
      hook("pwritev64", Off64::pwritev, &Off64::o_pwritev),
      hook("send", h_send, &o_send),
      hook("sendto", h_sendto, &o_sendto),
      hook("sendmsg", h_sendmsg, &o_sendmsg),
      hook("recv", h_recv, &o_recv),
      hook("recvfrom", h_recvfrom, &o_recvfrom),
      hook("recvmsg", h_recvmsg, &o_recvmsg),
      hook("fread", h_fread, &o_fread),
      hook("fwrite", h_fwrite, &o_fwrite),
      hook("getrandom", h_getrandom, &o_getrandom),
  };
  return add_library_hooks(hooks, sizeof(hooks) / sizeof(hooks[0]));
}

}  // namespace classaccess
