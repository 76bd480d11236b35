// JNI critical arrays and strings, handed out as twin addresses.
//
// The pages that Get*Critical would hand out are closed: a system call on them fails
// with EFAULT, and every byte a native library touches would trap. The twin is never
// closed, so the pointer is translated, and the whole array is recorded as one access.
// Release translates it back before it calls the original: 25 computes the string's
// object from it. Pointers that are not in committed heap (-Xcheck:jni's copies)
// pass unchanged. Without a twin (twin=off) a copy is handed out (critical_copy.h).
// Context: install, restore: VMInit. The replaced functions run on the calling thread.
#pragma once

#include <jvmti.h>

#include "agent/fault/access_path.h"

namespace classaccess {

// Replaces the four functions in the JNI function table of every thread. False if the
// JVM refuses. `access` outlives the process's JNI calls.
bool install_jni_critical(jvmtiEnv* jvmti, AccessPath* access);

// The start failed later on, or the recording is over: nothing is translated any more, and
// the original functions are put back. Not while translated pointers are out (waits a while
// for them): then ours stay, for their release; false. Does nothing if they were not replaced.
bool restore_jni_critical(jvmtiEnv* jvmti);

}  // namespace classaccess
