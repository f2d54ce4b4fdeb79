#include "worker/parameters/log/errc.hpp"

#include <string>

namespace chorus::parameters {
namespace {

class LogCategory final : public std::error_category {
 public:
  char const* name() const noexcept override { return "log"; }
  std::string message(int value) const override {
    switch (static_cast<LogErrc>(value)) {
      case LogErrc::not_found:
        return "no log";
      case LogErrc::damaged:
        return "the log is damaged";
      case LogErrc::misfit:
        return "the log is of another shard";
    }
    return "unknown log error";
  }
};

}  // namespace

std::error_category const& log_category() {
  static LogCategory const category;
  return category;
}

}  // namespace chorus::parameters
