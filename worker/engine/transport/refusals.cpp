#include "worker/engine/transport/refusals.hpp"

#include <algorithm>
#include <utility>

#include "worker/links/frames/errc.hpp"

namespace chorus::engine {

void DroppedRuns::add(std::uint64_t run) {
  if (kept_.size() == kept_max) {
    kept_.erase(kept_.begin());
    has_forgotten_ = true;
  }
  kept_.push_back(run);
}

bool DroppedRuns::may_have(std::uint64_t run) const {
  return has_forgotten_ || std::ranges::find(kept_, run) != kept_.end();
}

void Refusals::refuse(std::uint64_t run, std::uint32_t epoch, std::uint64_t token, Failure const& why) {
  connection_.send_failure_notice(links::FrameType::refuse, run, epoch, to_failure_notice(why, token));
  if (run != 0) drop(run);
}

Status Refusals::bad_frame(std::string why) {
  refuse(0, 0, 0, {EngineErrc::protocol_error, why, {}, {}});
  return Error(links::LinkErrc::bad_frame, std::move(why));
}

}  // namespace chorus::engine
