// The workers, their incarnations and their leases. A state machine without clock or sockets.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/gpu_locality.hpp"
#include "collectives/core/locality.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/message/message.hpp"
#include "server/coordinator/journal/journal_state.hpp"

namespace chorus::coordinator {

using http::TimePoint;

struct Worker {
  std::string id;
  std::uint64_t incarnation = 0;
  std::string url;  // http://host:port, without a path
  Locality locality;
  std::string version;
  bool ready = true;         // false: lost
  std::uint64_t joined = 0;  // order of arrival, from 0
  TimePoint heard;           // time of the last join or renewal
  std::vector<GpuLocality> gpus;
  std::chrono::milliseconds lease{};  // promised to the worker: never shorter than the lease that it may still use
  std::optional<std::uint64_t> term;  // see api::JoinRequest
  TimePoint spared_until{};           // not lost before this time: this process may have been cut off from the worker
};

// Workers of release 0.1 refuse messages with fields that they do not know.
[[nodiscard]] inline bool is_of_release_0_1(Worker const& worker) { return worker.version.starts_with("0.1."); }

// A well-formed join; not yet a member.
struct Newcomer {
  std::string id;
  std::uint64_t incarnation = 0;
  std::string url;
  Locality locality;
  std::string version;
  std::vector<GpuLocality> gpus;
  std::optional<std::uint64_t> term = std::nullopt;
};

// Checks a join. Problems: invalid_field, with every wrong field.
[[nodiscard]] http::Checked<Newcomer> check_join(api::JoinRequest const& request);

class Membership {
 public:
  explicit Membership(std::chrono::milliseconds lease) : lease_(lease) {}

  // The changes that a join made.
  struct Joined {
    bool created = false;                 // the id was new
    bool revived = false;                 // the worker was lost, or considers itself lost
    std::optional<std::uint64_t> fenced;  // the incarnation that was replaced
    bool moved = false;                   // the same incarnation has another address, locality, version or GPUs
    bool taken_over = false;              // the replaced incarnation had a lease
    [[nodiscard]] bool changed() const { return created || revived || fenced || moved; }
  };

  // kept() makes a worker's row for the journal, restore() reads all rows. A worker that was ready gets a whole lease
  // from `now` on, in which it renews as if nothing had happened. This lease is the longer one of the present lease and
  // the one that the previous process promised, because the worker renews at the old pace until it has read a new
  // answer. restore() returns the ids whose new promise is not yet in the journal.
  [[nodiscard]] std::optional<JournalWorker> kept(std::string_view id) const;
  [[nodiscard]] std::vector<std::string> restore(std::vector<JournalWorker> const& workers, TimePoint now);

  // A repeated join of the same incarnation renews its lease. A new incarnation replaces the old one, which is fenced:
  // it can neither renew nor join again. Problems: epoch_fenced; unavailable above 65536 workers.
  [[nodiscard]] http::Checked<Joined> join(Newcomer const& newcomer, TimePoint now);
  // Returns the problems of join() without any change, to avoid a useless probe.
  [[nodiscard]] std::optional<http::Problem> refuse(Newcomer const& newcomer) const;

  struct Renewed {
    std::chrono::milliseconds lease{};  // in use when the worker has read it
    bool promise_changed = false;       // the journal must be written
  };
  // `lives_by_ms`: the lease that the worker has read last; a worker of an earlier release does not send it. Problems:
  // unknown_worker, also for a lost worker, which has to join again; epoch_fenced.
  [[nodiscard]] http::Checked<Renewed> renew(std::string_view id, std::string_view incarnation,
                                             std::optional<std::uint32_t> lives_by_ms, TimePoint now);

  // Problems: unknown_worker; epoch_fenced if `incarnation` is given and is not the current one.
  [[nodiscard]] http::Checked<Worker> leave(std::string_view id, std::optional<std::string_view> incarnation);

  struct Expired {
    std::vector<Worker> lost;
    std::vector<std::string> forgotten;  // ids
  };
  // Marks every worker as lost whose lease has passed, and returns those that became lost. If this process did not run
  // for half a lease since the last call, renewals may be waiting unread, so every worker gets a fresh lease instead.
  // Workers that have been lost for ten minutes are forgotten.
  // `cut_off`: ids of silent() workers that are not declared lost now, because this process may be cut off. They have
  // one more lease after they leave this set, and are lost after verdict_limit leases of silence, those that fell
  // silent up to one lease later at the same time.
  [[nodiscard]] Expired expire(TimePoint now, std::set<std::string, std::less<>> const& cut_off = {});
  static constexpr int verdict_limit = 4;

  // Returns the ready workers that have missed a renewal: they renew every third of a lease, and half of one has
  // passed.
  [[nodiscard]] std::set<std::string, std::less<>> silent(TimePoint now) const;

  // Marks a worker as lost by other evidence than a lease, such as a refused connection. False if that incarnation is
  // not ready.
  bool mark_lost(std::string_view id, std::uint64_t incarnation);

  [[nodiscard]] Worker const* find(std::string_view id) const;  // valid until the next change
  [[nodiscard]] std::map<std::string, Worker, std::less<>> const& all() const { return workers_; }
  [[nodiscard]] std::vector<Worker> ready_in_order_of_arrival() const;
  [[nodiscard]] std::size_t ready_count() const;
  [[nodiscard]] std::chrono::milliseconds lease() const { return lease_; }

  // Returns the form of the REST interface; the caller adds the groups.
  [[nodiscard]] api::Worker show(Worker const& worker, TimePoint now) const;

 private:
  std::chrono::milliseconds const lease_;
  std::map<std::string, Worker, std::less<>> workers_;
  std::map<std::string, std::deque<std::uint64_t>, std::less<>> fenced_;
  struct Takeover {
    TimePoint at;
    std::string from_url;
  };
  std::map<std::string, std::deque<Takeover>, std::less<>> takeovers_;  // by id: replaced processes with a lease
  std::uint64_t arrivals_ = 0;
  std::optional<TimePoint> last_expire_;
};

}  // namespace chorus::coordinator
