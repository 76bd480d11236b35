// What lives on the pages that mode=pages has counted: the classes of their objects, and the kinds of regions.
//
// The heap is parsed by our own reader, from the first callback of a JVMTI heap walk: no thread runs then, the VM
// has filled the open TLABs, and no object has moved since the program touched it. (The walk itself would not tell
// addresses.) What cannot be parsed, as dead objects of unloaded classes, has no name.
// Context: a thread that may call JVMTI and holds no lock.
#pragma once

#include <jvmti.h>

#include <string>

#include "agent/heap/class_table.h"
#include "agent/heap/vm_layout.h"
#include "agent/hotspot/heap_regions.h"
#include "agent/store/page_rows.h"

namespace classaccess {

// Needs the capability can_tag_objects. Empty string, or why nothing is known.
std::string read_page_contents(jvmtiEnv* jvmti, const VmLayout& layout, ClassTable* classes, const HeapRegions& regions,
                               PageContents* out);

}  // namespace classaccess
