// Which peers a run waits for, when they are asked for a sign of life, and how the run fails if they are lost or too
// late.
#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "worker/engine/channels/receive_channel.hpp"
#include "worker/engine/channels/send_channel.hpp"
#include "worker/engine/failure/failure.hpp"
#include "worker/engine/liveness/failure_detector.hpp"
#include "worker/engine/program/run_spec.hpp"

namespace chorus::engine {

// Part of a run; used on the data thread only.
class PeerWatch {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Sends = std::vector<std::unique_ptr<SendChannel>>;
  using Receives = std::vector<std::unique_ptr<ReceiveChannel>>;

  // If all suspects are alive, other ranks may know the culprit: they get this long after the deadline to name it.
  static constexpr std::chrono::milliseconds grace{100};

  // spec, sends and receives belong to the same run. inquiry: interval between asks. silence: after this long a peer is
  // lost.
  PeerWatch(RunSpec const& spec, Sends const& sends, Receives const& receives, std::chrono::milliseconds inquiry,
            std::chrono::milliseconds silence, TimePoint started);
  PeerWatch(PeerWatch const&) = delete;
  PeerWatch& operator=(PeerWatch const&) = delete;

  // Starts the watch of the next run of the kind.
  void begin(TimePoint now);
  // Forgets which peers were heard; called before the run hears any.
  void forget();

  // Time from the start of a run to its first ask.
  [[nodiscard]] std::chrono::milliseconds first_inquiry() const {
    return std::max(inquiry_ / 16, std::chrono::milliseconds(1));
  }
  // When to check is_over(), lost_in_silence() and wants_to_ask() next.
  [[nodiscard]] TimePoint next_deadline() const;

  // A sign of life from a peer: its first open, grant or byte.
  void heard(plan::Rank rank) { heard_[rank] = true; }
  // The deadline, plus the grace if it was granted, has passed.
  [[nodiscard]] bool is_over(TimePoint now) const {
    return now >= (in_grace_ ? spec_.deadline + grace : spec_.deadline);
  }
  [[nodiscard]] std::string not_finished() const;
  // Call after is_over(). Empty: the grace has begun.
  [[nodiscard]] std::optional<Failure> expired(TimePoint now);

  // True when the ranks that the run waits for are to be asked again.
  [[nodiscard]] bool wants_to_ask(TimePoint now) const { return now >= next_inquiry_; }
  [[nodiscard]] std::vector<plan::Rank> begin_inquiry(TimePoint now);
  // Call before judging any peer: if the next ask is long overdue, this process itself was stopped.
  void look_for_own_silence(TimePoint now);
  [[nodiscard]] FailureDetector& failure_detector() { return *failure_detector_; }  // after begin_inquiry()
  [[nodiscard]] bool has_asked() const { return failure_detector_.has_value(); }
  // The failure if a rank that the run waits for has owed an answer for too long.
  [[nodiscard]] std::optional<Failure> lost_in_silence(TimePoint now) const;
  // The failure if a rank has ended well, but its link broke before all that it sent arrived.
  [[nodiscard]] std::optional<Failure> lost_on_the_way(std::function<bool(Peer const&)> const& has_link_from) const;
  // What the run is doing if it waits for this rank's open; empty otherwise.
  [[nodiscard]] std::optional<std::string> awaits_open_of(plan::Rank rank) const;

  struct Wait {
    plan::Rank rank = 0;
    std::string where;
  };
  // One entry per rank.
  [[nodiscard]] std::vector<Wait> waits() const;
  // What the run waits for `rank` to do; empty if it does not wait for it.
  [[nodiscard]] std::optional<std::string> waits_where(plan::Rank rank) const;
  [[nodiscard]] std::optional<Suspect> suspect(Wait const& wait, TimePoint now) const;
  // The gravest suspect that keeps the run from ending, as far as known; peers that ask are told.
  [[nodiscard]] std::optional<Suspect> suspect(TimePoint now) const;

 private:
  RunSpec const& spec_;
  Sends const& sends_;
  Receives const& receives_;
  std::chrono::milliseconds const inquiry_, silence_;
  TimePoint started_;
  std::chrono::milliseconds until_inquiry_;  // doubles up to inquiry_
  TimePoint next_inquiry_;
  bool in_grace_ = false;
  std::vector<bool> heard_;                          // by rank
  std::optional<FailureDetector> failure_detector_;  // created by the first ask
};

}  // namespace chorus::engine
