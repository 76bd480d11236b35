// mode=pages in the fault handler: a trap is a touch of a closed page. The instruction is performed on the
// twin as in mode=access, so it never needs two pages at once; which pages it has touched is counted.
// Context: enable: before recording. What it puts into AccessPath: signal handler of the thread.
#pragma once

#include "agent/fault/access_path.h"

namespace classaccess {

// The calling thread's rights to page keys are given up, as before it makes a thread that would inherit them.
void drop_page_rights();
// The same, and its window and key: it ends, or is no Java thread any more.
void leave_page_window();

// g_open_pages has been created. From now on accesses make page records instead of access records.
void enable_page_trap(AccessPath* access);

}  // namespace classaccess
