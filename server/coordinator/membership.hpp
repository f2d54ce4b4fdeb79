// Who takes part: workers, their incarnations and their leases. A state machine without clock or sockets.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "collectives/core/gpu_locality.hpp"
#include "collectives/core/locality.hpp"
#include "http/api/membership.hpp"
#include "http/message.hpp"
#include "server/coordinator/kept.hpp"

namespace chorus::coordinator {

using http::TimePoint;

struct Worker {
  std::string id;
  std::uint64_t incarnation = 0;
  std::string url;  // http://host:port, without a path
  Locality locality;
  std::string version;
  bool ready = true;         // false: lost
  std::uint64_t joined = 0;  // the order of arrival, from 0
  TimePoint heard;           // last join or renewal
  std::vector<GpuLocality> gpus;
};

// A join that is well-formed; not yet a member.
struct Newcomer {
  std::string id;
  std::uint64_t incarnation = 0;
  std::string url;
  Locality locality;
  std::string version;
  std::vector<GpuLocality> gpus;
};

// Problems: invalid_field, with every field that is wrong.
[[nodiscard]] http::Checked<Newcomer> check_join(api::JoinRequest const& request);

class Membership {
 public:
  explicit Membership(std::chrono::milliseconds lease) : lease_(lease) {}

  // What a join changed.
  struct Joined {
    bool created = false;                 // the id was not there
    bool revived = false;                 // it was lost
    std::optional<std::uint64_t> fenced;  // this incarnation was replaced
    bool moved = false;                   // the same incarnation has another address, locality, version or GPUs
    [[nodiscard]] bool changed() const { return created || revived || fenced || moved; }
  };

  // For the journal, and back: a worker that was ready gets a whole lease from `now` on, in which it renews without
  // having noticed anything.
  [[nodiscard]] std::optional<KeptWorker> kept(std::string_view id) const;
  void restore(std::vector<KeptWorker> const& workers, TimePoint now);

  // A repeated join of the same incarnation renews its lease. A new incarnation replaces the old one, which is fenced:
  // it can neither renew nor join again. Problems: epoch_fenced; unavailable above 65536 workers.
  [[nodiscard]] http::Checked<Joined> join(Newcomer const& newcomer, TimePoint now);
  // The same refusals without the change, to spare a probe that would be in vain.
  [[nodiscard]] std::optional<http::Problem> refuse(Newcomer const& newcomer) const;

  // Problems: unknown_worker, also for one that is lost (it is to join again); epoch_fenced.
  [[nodiscard]] http::Checked<std::chrono::milliseconds> renew(std::string_view id, std::string_view incarnation,
                                                               TimePoint now);

  // Problems: unknown_worker; epoch_fenced if `incarnation` is given and is not the present one.
  [[nodiscard]] http::Checked<Worker> leave(std::string_view id, std::optional<std::string_view> incarnation);

  struct Expired {
    std::vector<Worker> lost;
    std::vector<std::string> forgotten;  // ids
  };
  // Makes every worker lost whose lease has passed, and gives those that it made lost. If this process itself did not
  // run for half a lease since the last call, renewals may be waiting unread: everybody gets a fresh lease instead.
  // Workers that have been lost for ten minutes are forgotten.
  [[nodiscard]] Expired expire(TimePoint now);

  // For evidence other than a lease, such as a refused connection. False if that incarnation is not ready.
  bool mark_lost(std::string_view id, std::uint64_t incarnation);

  [[nodiscard]] Worker const* find(std::string_view id) const;  // valid until the next change
  [[nodiscard]] std::map<std::string, Worker, std::less<>> const& all() const { return workers_; }
  [[nodiscard]] std::vector<Worker> ready_in_order_of_arrival() const;
  [[nodiscard]] std::size_t ready_count() const;
  [[nodiscard]] std::chrono::milliseconds lease() const { return lease_; }

  // As in the REST interface; the caller adds the groups.
  [[nodiscard]] api::Worker show(Worker const& worker, TimePoint now) const;

 private:
  std::chrono::milliseconds const lease_;
  std::map<std::string, Worker, std::less<>> workers_;
  std::map<std::string, std::deque<std::uint64_t>, std::less<>> fenced_;
  std::uint64_t arrivals_ = 0;
  std::optional<TimePoint> last_expire_;
};

}  // namespace chorus::coordinator
