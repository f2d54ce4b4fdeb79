#include "server/cli/text/errc.hpp"

#include <string>

namespace chorus::cli {
namespace {

class Category final : public std::error_category {
 public:
  char const* name() const noexcept override { return "cli"; }
  std::string message(int value) const override {
    switch (static_cast<CliErrc>(value)) {
      case CliErrc::bad_value:
        return "bad value";
      case CliErrc::program_missing:
        return "program missing";
      case CliErrc::bad_file:
        return "bad file";
    }
    return "unknown";
  }
};

}  // namespace

std::error_category const& cli_category() {
  static Category const category;
  return category;
}

}  // namespace chorus::cli
