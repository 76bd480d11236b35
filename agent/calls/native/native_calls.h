// Native functions of `calls=`: finds them, hooks their entries, takes the hooks out again.
// Context: no signal handler.
#pragma once

#include <string>
#include <vector>

namespace classaccess {

// After start_call_sink. `patterns`: the items of calls= that have a `!`, as written. Hooks what is
// loaded. Empty string, or why no native function can be timed here (user shadow stacks, text
// that cannot be written); then nothing is hooked.
std::string start_native_calls(const std::vector<std::string>& patterns);
// Functions of libraries loaded since. At every dlsym, and the writer's tick. Cheap if there are none.
void hook_new_libraries();
// Entries are as they were. Calls under way end as usual, through code that stays; later ones
// are not seen.
void stop_native_calls();
// Patterns of the last start that matched no function so far.
std::vector<std::string> unmatched_native_patterns();

}  // namespace classaccess
