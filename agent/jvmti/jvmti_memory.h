// Memory that a JVMTI function allocated, given back at the end of the scope.
// Context: JVMTI callbacks and start-up.
#pragma once

#include <jvmti.h>

namespace classaccess {

template <typename T>
class JvmtiMemory {
 public:
  explicit JvmtiMemory(jvmtiEnv* jvmti) : jvmti_(jvmti) {}
  ~JvmtiMemory() {
    if (memory_ != nullptr) jvmti_->Deallocate(reinterpret_cast<unsigned char*>(memory_));
  }
  JvmtiMemory(const JvmtiMemory&) = delete;
  JvmtiMemory& operator=(const JvmtiMemory&) = delete;

  T** out() { return &memory_; }
  T* get() const { return memory_; }
  T& operator[](jint i) const { return memory_[i]; }

 private:
  jvmtiEnv* jvmti_;
  T* memory_ = nullptr;
};

}  // namespace classaccess
