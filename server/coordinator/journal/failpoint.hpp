// A hook at which a test may stop the process: called with the name of the point, before and after everything that must
// survive a crash. main() sets none.
#pragma once

#include <functional>
#include <string_view>

namespace chorus::coordinator {

using Failpoint = std::function<void(std::string_view point)>;

}  // namespace chorus::coordinator
