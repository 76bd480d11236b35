#include "agent/calls/java/class_rewriter.h"

#include <map>

#include "agent/calls/java/code_rewriter.h"
#include "agent/calls/java/instructions.h"

namespace classaccess {
namespace {

constexpr char kNotWrapped[] = "a native method of a class that was loaded already";
constexpr uint32_t kMagic = 0xcafebabe;
constexpr uint16_t kPublic = 1, kPrivate = 2, kProtected = 4, kStatic = 8, kFinal = 0x10, kSynchronized = 0x20,
                   kSynthetic = 0x1000, kSuper = 0x20;

struct Method {
  MethodOfClass shape;
  uint16_t name_index = 0, descriptor_index = 0;
  uint32_t attribute_count = 0;
  Bytes attributes;
  uint32_t id = 0;  // chosen
  bool wrapped = false;
};

// Argument slots, and what the method returns: its descriptor's last type.
struct Signature {
  std::vector<char> arguments;  // I J F D A
  char result = 'V';
};

char kind_of(char first) {
  switch (first) {
    case 'J':
    case 'F':
    case 'D':
    case 'V': return first;
    case 'L':
    case '[': return 'A';
    default: return 'I';
  }
}

bool read_signature(std::string_view descriptor, Signature* to) {
  if (descriptor.empty() || descriptor[0] != '(') return false;
  size_t at = 1;
  while (at < descriptor.size() && descriptor[at] != ')') {
    to->arguments.push_back(kind_of(descriptor[at]));
    while (at < descriptor.size() && descriptor[at] == '[') ++at;
    if (at < descriptor.size() && descriptor[at] == 'L') at = descriptor.find(';', at);
    if (at >= descriptor.size()) return false;
    ++at;
  }
  if (at + 1 >= descriptor.size()) return false;
  to->result = kind_of(descriptor[at + 1]);
  return true;
}

class ClassRewriter {
 public:
  ClassRewriter(Bytes class_file, TimedMethods* methods) : file_(class_file), timed_(methods) {}

  std::vector<uint8_t> run() {
    if (!read() || !choose()) return {};
    add_entries();
    ByteWriter methods;
    uint32_t count = 0, rewritten = 0;
    for (const Method& method : methods_) {
      count += put_method(method, &methods, &rewritten);
    }
    if (rewritten == 0 || pool_.full() || count > 65535) {
      for (const Method& method : methods_) {
        if (rewritten != 0 && method.id != 0) timed_->refuse(method.id, "its class has no room for more constants");
      }
      return {};
    }
    ByteWriter out;
    out.u4(kMagic);
    out.put(version_);
    pool_.write(&out);
    out.put(middle_);
    out.u2(count);
    out.put(methods.bytes());
    out.put(tail_);
    return {out.bytes().begin(), out.bytes().end()};
  }

 private:
  bool read() {
    ByteReader reader(file_);
    if (reader.u4() != kMagic) return false;
    version_ = reader.take(4);
    if (!reader.ok() || !pool_.read(&reader)) return false;
    major_ = static_cast<uint16_t>(version_[2] << 8 | version_[3]);
    const size_t middle = reader.at();
    class_access_ = reader.u2();
    name_ = pool_.class_name(reader.u2());
    const uint16_t super = reader.u2();
    is_object_ = super == 0;
    reader.skip(2u * reader.u2());
    for (uint32_t left = reader.u2(); left > 0 && reader.ok(); --left) {
      reader.skip(6);
      skip_attributes(&reader);
    }
    middle_ = file_.subspan(middle, reader.ok() ? reader.at() - middle : 0);
    uint32_t count = reader.u2();
    if (!reader.ok()) return false;
    for (; count > 0; --count) {
      Method method;
      method.shape.access = reader.u2();
      method.name_index = reader.u2();
      method.descriptor_index = reader.u2();
      method.shape.name = pool_.utf8(method.name_index);
      method.shape.descriptor = pool_.utf8(method.descriptor_index);
      const size_t start = reader.at() + 2;
      method.attribute_count = skip_attributes(&reader);
      if (!reader.ok()) return false;
      method.attributes = file_.subspan(start, reader.at() - start);
      method.shape.intrinsic = is_intrinsic(method);
      methods_.push_back(method);
    }
    tail_ = reader.take(reader.left());
    return true;
  }

  static uint32_t skip_attributes(ByteReader* reader) {
    const uint32_t count = reader->u2();
    for (uint32_t i = 0; i < count && reader->ok(); ++i) {
      reader->skip(2);
      reader->skip(reader->u4());
    }
    return count;
  }

  // Of the JDK's own classes. Its annotations have no elements, so that the first ones can be read.
  bool is_intrinsic(const Method& method) const {
    if (!name_.starts_with("java/") && !name_.starts_with("jdk/") && !name_.starts_with("sun/")) return false;
    ByteReader reader(method.attributes);
    for (uint32_t i = 0; i < method.attribute_count; ++i) {
      const std::string_view name = pool_.utf8(reader.u2());
      ByteReader body(reader.take(reader.u4()));
      if (name != "RuntimeVisibleAnnotations") continue;
      for (uint32_t left = body.u2(); left > 0 && body.ok(); --left) {
        if (pool_.utf8(body.u2()) == "Ljdk/internal/vm/annotation/IntrinsicCandidate;") return true;
        if (body.u2() != 0) break;
      }
    }
    return false;
  }

  bool choose() {
    std::map<std::string_view, int> times;
    for (const Method& method : methods_) ++times[method.shape.name];
    bool any = false;
    for (Method& method : methods_) {
      method.shape.overloaded = times[method.shape.name] > 1;
      if (method.shape.abstract()) continue;
      method.id = timed_->choose(method.shape);
      method.wrapped = method.shape.native() && timed_->wrapped(method.shape, method.id);
      any |= method.id != 0 || method.wrapped;
    }
    return any;
  }

  void add_entries() {
    entries_.enter = pool_.add_method(kProbeClass, "enter", "(I)V");
    entries_.leave = pool_.add_method(kProbeClass, "leave", "(I)V");
    entries_.thrown = pool_.add_method(kProbeClass, "thrown", "(I)V");
    entries_.throwable = pool_.add_class("java/lang/Throwable");
    entries_.stack_map_table = pool_.add_utf8("StackMapTable");
  }

  // Methods written.
  uint32_t put_method(const Method& method, ByteWriter* to, uint32_t* rewritten) {
    ByteWriter changed;
    uint32_t count = 1;
    std::string problem;
    if (method.wrapped) {
      problem = put_wrapped(method, &changed);
      count = 2;
    } else if (method.id != 0) {
      problem = method.shape.native() ? kNotWrapped : put_rewritten(method, &changed);
    }
    if ((method.id != 0 || method.wrapped) && problem.empty()) {
      ++*rewritten;
      to->put(changed.bytes());
      return count;
    }
    if (method.id != 0) timed_->refuse(method.id, problem);
    put_head(method.shape.access, method.name_index, method, to);
    to->u2(method.attribute_count);
    to->put(method.attributes);
    return 1;
  }

  static void put_head(uint16_t access, uint16_t name_index, const Method& method, ByteWriter* to) {
    to->u2(access);
    to->u2(name_index);
    to->u2(method.descriptor_index);
  }

  std::string put_rewritten(const Method& method, ByteWriter* to) {
    put_head(method.shape.access, method.name_index, method, to);
    to->u2(method.attribute_count);
    ByteReader reader(method.attributes);
    std::string problem = "it has no code";
    for (uint32_t i = 0; i < method.attribute_count; ++i) {
      const uint16_t name_index = reader.u2();
      const Bytes body = reader.take(reader.u4());
      to->u2(name_index);
      const size_t start = to->open_length();
      if (pool_.utf8(name_index) == "Code") {
        MethodCode code;
        code.attribute = body;
        code.class_major = major_;
        code.constructor = method.shape.name == "<init>" && !is_object_;
        code.id_constant = pool_.add_integer(static_cast<int32_t>(method.id));
        problem = rewrite_code(code, pool_, entries_, to);
        if (!problem.empty()) return problem;
      } else {
        to->put(body);
      }
      to->close_length(start);
    }
    return problem;
  }

  // The native method under its new name, and one of its old name that calls it.
  std::string put_wrapped(const Method& method, ByteWriter* to) {
    if ((class_access_ & 0x0200) != 0) return "a native method of an interface";
    Signature signature;
    if (!read_signature(method.shape.descriptor, &signature)) return "its descriptor is not understood";
    const std::string renamed = std::string(kNativePrefix).append(method.shape.name);
    const bool is_static = (method.shape.access & kStatic) != 0;
    const uint16_t kept = method.shape.access & static_cast<uint16_t>(~(kPublic | kProtected));
    put_head(kept | kPrivate | kFinal | kSynthetic, pool_.add_utf8(renamed), method, to);
    to->u2(0);

    constexpr uint16_t kLeftOut = MethodOfClass::kNative | kSynchronized;
    put_head(method.shape.access & static_cast<uint16_t>(~kLeftOut), method.name_index, method, to);
    to->u2(method.attribute_count + 1);
    to->put(method.attributes);
    to->u2(pool_.add_utf8("Code"));
    const size_t start = to->open_length();
    MethodCode code;
    ByteWriter plain = call_of(renamed, method.shape.descriptor, signature, is_static);
    code.attribute = plain.bytes();
    code.class_major = major_;
    code.id_constant = pool_.add_integer(static_cast<int32_t>(method.id));
    std::string problem;
    if (method.id != 0) {
      problem = rewrite_code(code, pool_, entries_, to);
    } else {
      to->put(plain.bytes());
    }
    to->close_length(start);
    return problem;
  }

  // A Code attribute that passes the arguments on and returns the result.
  ByteWriter call_of(const std::string& name, std::string_view descriptor, const Signature& signature, bool is_static) {
    constexpr std::string_view kKinds = "IJFDA";
    constexpr uint8_t kLoad = 21, kReturn = 172, kReturnVoid = 177;
    ByteWriter code;
    uint32_t slot = 0;
    auto load = [&](char kind) {
      code.u1(bytecode::kWide);
      code.u1(kLoad + kKinds.find(kind));
      code.u2(slot);
      slot += kind == 'J' || kind == 'D' ? 2 : 1;
    };
    if (!is_static) load('A');
    for (char kind : signature.arguments) load(kind);
    code.u1(is_static ? bytecode::kInvokeStatic : bytecode::kInvokeSpecial);
    code.u2(pool_.add_method(name_, name, descriptor));
    code.u1(signature.result == 'V' ? kReturnVoid : kReturn + kKinds.find(signature.result));
    ByteWriter attribute;
    attribute.u2(slot < 2 ? 2 : slot);
    attribute.u2(slot);
    attribute.u4(code.size());
    attribute.put(code.bytes());
    attribute.u2(0);
    attribute.u2(0);
    return attribute;
  }

  Bytes file_;
  TimedMethods* timed_;
  ConstantPool pool_;
  ProbeEntries entries_;
  uint16_t major_ = 0, class_access_ = 0;
  std::string_view name_;
  bool is_object_ = false;
  Bytes version_, middle_, tail_;  // middle: from the access flags to the fields
  std::vector<Method> methods_;
};

}  // namespace

std::vector<uint8_t> rewrite_class(Bytes class_file, TimedMethods* methods) {
  return ClassRewriter(class_file, methods).run();
}

namespace {

// static void measure(int times, int id) { do { enter(id); leave(id); } while (--times > 0); }
void put_measure(ConstantPool* pool, ByteWriter* to) {
  constexpr uint8_t kILoad0 = 26, kILoad1 = 27, kIfGt = 157, kReturnVoid = 177;
  ByteWriter code;
  for (const char* name : {"enter", "leave"}) {
    code.u1(kILoad1);
    code.u1(bytecode::kInvokeStatic);
    code.u2(pool->add_method(kProbeClass, name, "(I)V"));
  }
  code.u1(bytecode::kIinc);
  code.u1(0);
  code.u1(0xff);
  code.u1(kILoad0);
  const size_t branch = code.size();
  code.u1(kIfGt);
  code.u2(0 - branch);
  code.u1(kReturnVoid);
  to->u2(kPublic | kStatic);
  to->u2(pool->add_utf8("measure"));
  to->u2(pool->add_utf8("(II)V"));
  to->u2(1);
  to->u2(pool->add_utf8("Code"));
  const size_t start = to->open_length();
  to->u2(1);
  to->u2(2);
  to->u4(code.size());
  to->put(code.bytes());
  to->u2(0);
  to->u2(1);
  to->u2(pool->add_utf8("StackMapTable"));
  to->u4(3);
  to->u2(1);  // one frame, at the start, of the same locals
  to->u1(0);
  to->close_length(start);
}

}  // namespace

std::vector<uint8_t> probe_class() {
  constexpr uint16_t kJava17 = 61;
  ByteWriter none;
  none.u2(1);
  ByteReader empty(none.bytes());
  ConstantPool pool;
  pool.read(&empty);
  const uint16_t self = pool.add_class(kProbeClass), super = pool.add_class("java/lang/Object");
  ByteWriter methods;
  for (const char* name : {"enter", "leave", "thrown"}) {
    methods.u2(kPublic | kStatic | MethodOfClass::kNative);
    methods.u2(pool.add_utf8(name));
    methods.u2(pool.add_utf8("(I)V"));
    methods.u2(0);
  }
  put_measure(&pool, &methods);
  ByteWriter out;
  out.u4(kMagic);
  out.u2(0);
  out.u2(kJava17);
  pool.write(&out);
  out.u2(kPublic | kFinal | kSuper | kSynthetic);
  out.u2(self);
  out.u2(super);
  out.u2(0);
  out.u2(0);
  out.u2(4);
  out.put(methods.bytes());
  out.u2(0);
  return {out.bytes().begin(), out.bytes().end()};
}

}  // namespace classaccess
