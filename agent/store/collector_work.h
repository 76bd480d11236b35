// Which functions of libjvm are the collector's (or stack freezing's) own work when they
// run on a Java thread: their sites have kind `gc` (interface.md section 2).
// Context: writer thread.
#pragma once

#include <string>

namespace classaccess {

// `symbol` is demangled, as NativeSymbols gives it. Access-barrier instantiations
// (AccessInternal::PostRuntimeDispatch<...>) are the program's accesses, whatever
// collector their template arguments name.
bool is_collector_work(const std::string& symbol);

}  // namespace classaccess
