// The record of one collective, as users read it. A state machine without clock or sockets:
//
//   pending -> planned -> running -> succeeded
//      |          |          |
//      +----------+----------+----> failed, cancelled
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/model/select.hpp"
#include "http/api/collectives.hpp"
#include "http/api/groups.hpp"
#include "http/message.hpp"
#include "server/coordinator/admission.hpp"

namespace chorus::coordinator {

using http::TimePoint;

class Record {
 public:
  Record(std::string id, std::uint64_t run, api::CollectiveRequest request, std::string created_at);
  // As it was kept.
  Record(api::Collective view, bool refused) : view_(std::move(view)), refused_(refused) {}

  // pending -> planned. Seconds count from `now` on.
  void plan(api::Group const& group, Admitted const& admitted, model::Choice const& choice, TimePoint now);
  // planned: it may take so long.
  void given_time(std::chrono::milliseconds timeout);
  // planned -> running: the launches are under way.
  void run();
  // running: this rank's part has ended, as its worker reports. At most once per rank.
  void rank_succeeded(std::uint32_t rank, api::RunReport report, TimePoint now);
  void rank_failed(std::uint32_t rank, std::optional<api::RunReport> report);

  // running -> succeeded: every rank has succeeded and has committed this version.
  void succeed(std::vector<std::uint64_t> const& versions, TimePoint now);
  // succeeded: by how much each rank came later than the middle one.
  void came_late(std::vector<double> const& lateness_s);
  // not ended -> failed, cancelled.
  void fail(http::Problem problem, TimePoint now);
  void cancel(http::Problem problem, TimePoint now);

  // pending, planned, running -> pending: this attempt has failed, and another one is made as another run.
  void begin_again(std::uint64_t run, http::Problem why, std::uint32_t epoch);

  // The same, where nothing has failed but what the launch went by: the record is as if nothing had been done.
  void ask_again(std::uint64_t run);

  // The request's, valid; before it is planned.
  void belongs_to(std::string traceparent) { view_.traceparent = std::move(traceparent); }
  // It does not move, or (nothing) does again.
  void stall(std::optional<api::Stall> stall) { view_.stalled = std::move(stall); }

  // Nothing, or digest_mismatch naming the ranks whose result differs from that of most: the results of all_reduce,
  // broadcast and all_gather are equal on all ranks. Ranks without a digest are not compared.
  [[nodiscard]] std::optional<http::Problem> check_digests() const;

  [[nodiscard]] bool ended() const;
  // It failed before anything was launched: a launch is answered with the problem itself.
  [[nodiscard]] bool refused() const { return refused_; }
  // The same, and it may succeed when it is repeated: a repetition is a new launch.
  [[nodiscard]] bool may_be_repeated() const;
  [[nodiscard]] api::Collective const& view() const { return view_; }

 private:
  void end(char const* state, std::optional<http::Problem> problem, TimePoint now);

  api::Collective view_;
  bool refused_ = false;
  bool has_one_result_ = false;  // the same on all ranks
  std::optional<TimePoint> admitted_;
  std::optional<TimePoint> first_start_, last_start_;  // of ranks, by the coordinator's clock
};

}  // namespace chorus::coordinator
