// Finds the code of the loaded libraries, for the probes there (fault/library_texts.h).
// Context: VMInit, then the writer's tick. Takes the dynamic linker's list lock, during which
// no heap is touched.
#pragma once

namespace classaccess {

// Cheap when no library was loaded or closed since the last call.
void scan_libraries();

}  // namespace classaccess
