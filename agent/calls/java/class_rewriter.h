// A class file with calls of ours in some of its methods.
//
// Native methods get a wrapper: the method is renamed with a prefix that JVMTI's SetNativeMethodPrefix has told the
// VM, and one of its name calls it. Methods can be added only while the class is being loaded.
// Context: class-load hook of JVMTI, on any Java thread. Pure: no VM, no heap.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "agent/calls/java/class_bytes.h"

namespace classaccess {

// Binary name of the class that the calls go to; methods enter, leave and thrown, (I)V.
inline constexpr char kProbeClass[] = "java/lang/ClassaccessCalls";
inline constexpr char kNativePrefix[] = "$$classaccess_";

struct MethodOfClass {
  std::string_view name, descriptor;  // of the class file, while it lives
  uint16_t access = 0;
  bool overloaded = false;  // another method of the class has the name
  bool intrinsic = false;   // @IntrinsicCandidate: compilers may put code of their own in place of a call

  static constexpr uint16_t kNative = 0x0100, kAbstract = 0x0400;
  bool native() const { return (access & kNative) != 0; }
  bool abstract() const { return (access & kAbstract) != 0; }
};

class TimedMethods {
 public:
  virtual ~TimedMethods() = default;
  // The id that the method's calls carry, not 0; 0: it stays as it is. Not asked of abstract methods.
  virtual uint32_t choose(const MethodOfClass& method) = 0;
  // A native method gets its wrapper; of a class that is loaded already one that has it must keep it, whether it is
  // chosen or not, and no other may get one.
  virtual bool wrapped(const MethodOfClass& method, uint32_t id) = 0;
  // A chosen method cannot be rewritten.
  virtual void refuse(uint32_t id, const std::string& why) = 0;
};

// Empty vector: the class stays as it is (nothing was chosen, or it is malformed, which the VM will say).
std::vector<uint8_t> rewrite_class(Bytes class_file, TimedMethods* methods);

// The class file of kProbeClass: the three native methods, and `measure(II)V`, which calls enter and leave in a loop.
std::vector<uint8_t> probe_class();

}  // namespace classaccess
