// `classaccess report`: its options, and where its output goes.
// Context: the classaccess command.
#pragma once

#include <functional>
#include <string>

namespace CLI {
class App;
}

namespace classaccess {

// Options into `command`; what is returned runs it, after they are parsed, and gives the exit status.
std::function<int()> add_report_options(CLI::App* command);

}  // namespace classaccess
