#include "worker/api/members/call_frame.hpp"

#include <utility>

#include "collectives/core/errc.hpp"
#include "worker/api/members/call_options.hpp"
#include "worker/service/requests/problems.hpp"

namespace chorus::embedded {

Result<std::chrono::milliseconds> CallFrame::meet(std::chrono::milliseconds allowed) {
  if (auto status = end_.standing(); status.has_error()) return status.error();
  auto const timeout = limited(allowed);
  if (has_met_) return timeout;  // a look at the clock would cost as much as a tenth of a small call
  auto const deadline = std::chrono::steady_clock::now() + timeout;
  auto met = group_.meet(timeout);
  has_met_ = met.status.has_value();
  if (auto status = finish(std::move(met)); status.has_error()) return status.error();
  return time_left(deadline);
}

Status CallFrame::finish(engine::RunResult result) {
  if (result.status.has_value()) return ok();
  auto const& why = result.status.error();
  // Refused before anything was sent: the others wait for a corrected call.
  if (why.code.category() == plan_category()) return why;
  end_.end_by(why, result.culprits);
  group_.fail(engine::code_of(why), why.detail);  // a call that failed before it entered has told nobody
  return why;
}

void CallFrame::count(metrics::FinishedRun& run, engine::RunResult const& result) {
  if (result.status.has_value() && !is_rooted(run.op)) {
    calls_ns_.fetch_add(static_cast<std::uint64_t>(result.statistics.duration / std::chrono::nanoseconds(1)),
                        std::memory_order_relaxed);
    calls_.fetch_add(1, std::memory_order_release);
  }
  auto const code = result.status.has_value() ? http::ProblemCode::internal
                                              : service::to_problem(result.status.error(), result.culprits).code;
  run.result = result.status.has_value() ? "succeeded" : code == http::ProblemCode::cancelled ? "cancelled" : "failed";
  run.kind = http::kind(code).name;
  run.ranks = place_.size;
  run.statistics = result.statistics;
  ledger_.ended(run);
  begun_.reset();
}

Status CallFrame::give_up(std::error_code code, char const* why) noexcept {
  try {
    auto result = engine::failed(Error(code, why));
    result.culprits = {place_.rank};
    if (begun_) {
      metrics::FinishedRun run{*begun_};
      run.algorithm = "none";
      count(run, result);
    }
    return finish(std::move(result));
  } catch (std::exception const&) {
    end_.end(Error(code, {}), {});  // takes no memory: the others wait until their deadline, but no call goes wrong
    return Error(code, {});
  }
}

}  // namespace chorus::embedded
