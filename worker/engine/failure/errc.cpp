#include "worker/engine/failure/errc.hpp"

#include <string>

namespace chorus::engine {
namespace {

class EngineCategory final : public std::error_category {
 public:
  char const* name() const noexcept override { return "engine"; }
  std::string message(int value) const override {
    switch (static_cast<EngineErrc>(value)) {
      case EngineErrc::peer_lost:
        return "a peer was lost";
      case EngineErrc::deadline_exceeded:
        return "the deadline has passed";
      case EngineErrc::aborted:
        return "the run was aborted";
      case EngineErrc::plan_mismatch:
        return "the ranks do not run the same thing";
      case EngineErrc::forbidden:
        return "a wrong token";
      case EngineErrc::epoch_fenced:
        return "an older epoch or incarnation";
      case EngineErrc::protocol_error:
        return "a frame that cannot be";
      case EngineErrc::corrupt_frame:
        return "bytes were changed on the way";
      case EngineErrc::device_failed:
        return "a GPU failed";
    }
    return "unknown engine error";
  }
};

}  // namespace

std::error_category const& engine_category() {
  static EngineCategory const category;
  return category;
}

}  // namespace chorus::engine
