// Fills VmLayout from vmStructs. Nothing is guessed: a name that is needed and missing makes
// the probe fail with one message that lists all of them.
// Context: probe_layout in Agent_OnLoad (or OnAttach), complete_layout in VMInit (or OnAttach);
// then the layout is constant.
#pragma once

#include <string>

#include "agent/heap/vm_layout.h"
#include "agent/hotspot/vm_structs.h"

namespace classaccess {

// Offsets, sizes, constants, version, collector and compression flags, libjvm's text. Empty
// string, or what is missing or not supported.
std::string probe_layout(VmLayout* layout, const VmStructs& vm);

// What exists only once the VM runs: bases and shifts, heap bounds (0..0 with ZGC), code cache,
// code heaps, interpreter, mirror offsets; the flags once more. Empty string or the reason.
std::string complete_layout(VmLayout* layout, const VmStructs& vm);

// All fields, one `name value` a line, for log=debug and bug reports.
std::string dump_layout(const VmLayout& layout);

const char* collector_name(Collector collector);  // "Serial", "G1", ...

// Bytes of MaxHeapSize, known in Agent_OnLoad: the length of the heap's reservation. 0: no such flag.
uint64_t max_heap_size(const VmStructs& vm);

}  // namespace classaccess
