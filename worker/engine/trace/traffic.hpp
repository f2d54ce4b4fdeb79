// Counters per peer, written by the data thread and read by any thread.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "worker/engine/trace/peer_traffic.hpp"

namespace chorus::engine {

// One writer. A reader may see counters of slightly different moments.
class PeerCounters {
 public:
  void sent(std::uint64_t bytes) { add(sent_bytes_, bytes); }
  void received(std::uint64_t bytes) { add(received_bytes_, bytes); }
  void was_sending(std::chrono::steady_clock::duration time) { add(send_busy_ns_, nanoseconds(time)); }
  void was_receiving(std::chrono::steady_clock::duration time) { add(receive_busy_ns_, nanoseconds(time)); }
  void connected(std::string_view kind) { add(connections(kind), 1); }
  void disconnected(std::string_view kind) { add(connections(kind), std::uint64_t{0} - 1); }
  void dialed() { add(dials_, 1); }
  enum class End : std::uint8_t { unreachable, closed, refused, malformed, corrupt };
  void ended(End end) { add(ends_[static_cast<std::size_t>(end)], 1); }
  void answered(std::chrono::steady_clock::duration time) {
    auto const ns = nanoseconds(time);
    std::size_t k = 0;
    while (k + 1 < round_trips_.size() && ns > std::uint64_t{10000} << k) ++k;
    add(round_trips_[k], 1);
    add(round_trip_ns_, ns);
    last_round_trip_ns_.store(ns, std::memory_order_relaxed);
  }

  [[nodiscard]] PeerTraffic read(std::string worker) const {
    PeerTraffic traffic;
    traffic.worker = std::move(worker);
    traffic.sent_bytes = sent_bytes_.load(std::memory_order_relaxed);
    traffic.received_bytes = received_bytes_.load(std::memory_order_relaxed);
    traffic.send_busy_seconds = static_cast<double>(send_busy_ns_.load(std::memory_order_relaxed)) * 1e-9;
    traffic.receive_busy_seconds = static_cast<double>(receive_busy_ns_.load(std::memory_order_relaxed)) * 1e-9;
    for (auto const& [kind, counter] : {std::pair("shm", &shm_), std::pair("tcp", &tcp_), std::pair("tls", &tls_)}) {
      auto const open = counter->load(std::memory_order_relaxed);
      traffic.connections += static_cast<std::uint32_t>(open);
      if (open != 0) traffic.link += (traffic.link.empty() ? "" : " and ") + std::string(kind);
    }
    traffic.dials = dials_.load(std::memory_order_relaxed);
    auto const ends = [this](End end) { return ends_[static_cast<std::size_t>(end)].load(std::memory_order_relaxed); };
    traffic.ends = {ends(End::unreachable), ends(End::closed), ends(End::refused), ends(End::malformed),
                    ends(End::corrupt)};
    for (std::size_t k = 0; k < round_trips_.size(); ++k)
      traffic.round_trips[k] = round_trips_[k].load(std::memory_order_relaxed);
    traffic.round_trip_seconds = static_cast<double>(round_trip_ns_.load(std::memory_order_relaxed)) * 1e-9;
    traffic.last_round_trip_seconds = static_cast<double>(last_round_trip_ns_.load(std::memory_order_relaxed)) * 1e-9;
    return traffic;
  }

 private:
  using Counter = std::atomic<std::uint64_t>;
  static void add(Counter& counter, std::uint64_t amount) {
    counter.store(counter.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  Counter& connections(std::string_view kind) { return kind == "shm" ? shm_ : kind == "tls" ? tls_ : tcp_; }
  static std::uint64_t nanoseconds(std::chrono::steady_clock::duration time) {
    return static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(time).count());
  }

  Counter sent_bytes_{0}, received_bytes_{0}, send_busy_ns_{0}, receive_busy_ns_{0};
  Counter shm_{0}, tcp_{0}, tls_{0};  // connections
  Counter dials_{0};
  std::array<Counter, 5> ends_{};
  std::array<Counter, std::tuple_size_v<decltype(PeerTraffic::round_trips)>> round_trips_{};
  Counter round_trip_ns_{0}, last_round_trip_ns_{0};
};

enum class Direction : std::uint8_t { to_peer, from_peer };  // of the data on a link

// Thread-safe. Counters live as long as the book.
class TrafficBook {
 public:
  using Told = std::function<void(std::string const& worker, std::string const& why)>;
  explicit TrafficBook(Told on_link_without_shm = {}, Told on_link_without_ipc = {})
      : why_not_shm_(std::move(on_link_without_shm)), why_not_ipc_(std::move(on_link_without_ipc)) {}

  [[nodiscard]] PeerCounters& of(std::string const& worker) {
    std::lock_guard const lock(mutex_);
    return peers_[worker];
  }
  [[nodiscard]] std::vector<PeerTraffic> read() const {
    std::lock_guard const lock(mutex_);
    std::vector<PeerTraffic> all;
    all.reserve(peers_.size());
    for (auto const& [worker, counters] : peers_) {
      auto& traffic = all.emplace_back(counters.read(worker));
      traffic.why_not_shm = why_not_shm_.of(worker);
      traffic.why_not_ipc = why_not_ipc_.of(worker);
    }
    return all;
  }
  // Why a link to or from this worker does not go through shared memory; empty: it does.
  void set_why_not_shm(std::string const& worker, Direction direction, std::string why) {
    std::lock_guard const lock(mutex_);
    why_not_shm_.set(worker, direction, std::move(why));
  }
  // Why GPU memory of this worker or of the peer is not read in place; empty: it is.
  void set_why_not_ipc(std::string const& worker, Direction direction, std::string why) {
    std::lock_guard const lock(mutex_);
    why_not_ipc_.set(worker, direction, std::move(why));
  }

 private:
  // Reasons by worker and direction; calls on_reason for each new one.
  class Reasons {
   public:
    explicit Reasons(Told on_reason) : on_reason_(std::move(on_reason)) {}

    [[nodiscard]] std::string of(std::string const& worker) const {
      for (auto const direction : {Direction::to_peer, Direction::from_peer})
        if (auto const why = reasons_.find({worker, direction}); why != reasons_.end()) return why->second;
      return {};
    }
    void set(std::string const& worker, Direction direction, std::string why) {
      if (why.empty()) {
        reasons_.erase({worker, direction});
        return;
      }
      auto& known = reasons_[{worker, direction}];
      if (known == why) return;
      known = std::move(why);
      if (on_reason_) on_reason_(worker, known);
    }

   private:
    Told const on_reason_;
    std::map<std::pair<std::string, Direction>, std::string> reasons_;
  };

  mutable std::mutex mutex_;
  Reasons why_not_shm_, why_not_ipc_;
  std::map<std::string, PeerCounters> peers_;
};

}  // namespace chorus::engine
