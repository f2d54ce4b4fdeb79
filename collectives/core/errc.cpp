#include "collectives/core/errc.hpp"

namespace chorus {
namespace {

class PlanCategory final : public std::error_category {
 public:
  char const* name() const noexcept override { return "plan"; }
  std::string message(int value) const override {
    switch (static_cast<PlanErrc>(value)) {
      case PlanErrc::unknown_algorithm:
        return "unknown algorithm";
      case PlanErrc::unsupported_operation:
        return "the algorithm cannot do this operation";
      case PlanErrc::rank_out_of_range:
        return "rank out of range";
      case PlanErrc::bad_parameter:
        return "bad parameter";
      case PlanErrc::malformed_text:
        return "malformed text";
    }
    return "unknown plan error";
  }
};

}  // namespace

std::error_category const& plan_category() {
  static PlanCategory const category;
  return category;
}

}  // namespace chorus
