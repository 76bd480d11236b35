#include "tests/unit/hotspot/layout_agent.h"

namespace classaccess::layout_test {

void check_spaces() {}

}  // namespace classaccess::layout_test
