// Which part of the heap is closed: the option heap=.
// Context: any.
#pragma once

namespace classaccess {

enum class HeapScope {
  kAll,
  kOld,    // everything but eden and survivors, as of the last collection
  kYoung,  // eden and survivors
  kRange,  // LO-HI
};

}  // namespace classaccess
