// The record of one collective, as users read it. A state machine without clock or sockets:
//
//   pending -> planned -> running -> succeeded
//      |          |          |
//      +----------+----------+----> failed, cancelled
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "collectives/model/choice/select.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/message/message.hpp"
#include "server/coordinator/admission/admission.hpp"

namespace chorus::coordinator {

using http::TimePoint;

class Record {
 public:
  Record(std::string id, std::uint64_t run, api::CollectiveRequest request, std::string created_at);
  // Restores a record from the journal.
  Record(api::Collective view, bool refused) : view_(std::move(view)), refused_(refused) {}

  // pending -> planned. Seconds are counted from `now`.
  void plan(api::Group const& group, Admitted const& admitted, model::Choice const& choice, TimePoint now);
  // planned: sets the timeout.
  void given_time(std::chrono::milliseconds timeout);
  // planned -> running: the runs are being launched.
  void run();
  // running: the part of this rank has ended, as its worker reports. Called at most once per rank.
  void rank_succeeded(std::uint32_t rank, api::RunReport report, TimePoint now);
  void rank_failed(std::uint32_t rank, std::optional<api::RunReport> report);

  // running -> succeeded: rank r has committed versions[r].
  void succeed(std::vector<std::uint64_t> const& versions, TimePoint now);
  // succeeded: sets by how much each rank came later than the middle rank.
  void came_late(std::vector<double> const& lateness_s);
  // any state before the end -> failed, cancelled.
  void fail(http::Problem problem, TimePoint now);
  void cancel(http::Problem problem, TimePoint now);

  // pending, planned, running -> pending: this attempt has failed, and the next attempt is another run.
  void begin_again(std::uint64_t run, http::Problem why, std::uint32_t epoch);

  // Like begin_again(), without a failure: the known tensors were wrong, and the record is reset.
  void ask_again(std::uint64_t run);

  // Sets format and size of the tensor's codes, none for elements, and what "auto" had to choose from; called before
  // plan().
  void sends(std::optional<WireFormat> format, std::optional<std::uint64_t> wire_bytes,
             std::optional<std::vector<api::ConsideredFormat>> considered);
  // Sets a valid traceparent of the request; called before plan().
  void belongs_to(std::string traceparent) { view_.traceparent = std::move(traceparent); }
  // Sets the stall; empty when the collective moves again.
  void stall(std::optional<api::Stall> stall) { view_.stalled = std::move(stall); }

  // Returns digest_mismatch with the ranks whose result differs from that of most ranks, or nothing. The results of
  // all_reduce, broadcast and all_gather are equal on all ranks. Ranks without a digest are not compared.
  [[nodiscard]] std::optional<http::Problem> check_digests() const;

  [[nodiscard]] bool ended() const;
  // True if the collective failed before anything was launched: a launch is then answered with the problem itself.
  [[nodiscard]] bool refused() const { return refused_; }
  // True for a refused collective that may succeed when it is repeated: a repetition is a new launch.
  [[nodiscard]] bool may_be_repeated() const;
  [[nodiscard]] api::Collective const& view() const { return view_; }

 private:
  void end(char const* state, std::optional<http::Problem> problem, TimePoint now);

  api::Collective view_;
  bool refused_ = false;
  bool has_one_result_ = false;  // the result is the same on all ranks
  std::optional<TimePoint> admitted_;
  std::optional<TimePoint> first_start_, last_start_;  // of the ranks, by the coordinator's clock
};

}  // namespace chorus::coordinator
