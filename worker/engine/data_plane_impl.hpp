// The data thread of DataPlane, and what callers do in its place.
#pragma once

#include <algorithm>
#include <atomic>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <memory>
#include <optional>
#include <semaphore>
#include <span>
#include <thread>
#include <utility>

#include "base/runtime/task_group.hpp"
#include "http/auth/credentials.hpp"
#include "http/client/client.hpp"
#include "worker/engine/data_plane.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/failure/interruption.hpp"
#include "worker/engine/loop/adaptive_yield.hpp"
#include "worker/engine/loop/link_handshakes.hpp"
#include "worker/engine/loop/loop_baton.hpp"
#include "worker/engine/loop/poll_rounds.hpp"
#include "worker/engine/loop/shm_links.hpp"
#include "worker/engine/loop/tcp_links.hpp"
#include "worker/engine/run/run_kind.hpp"
#include "worker/links/handshake.hpp"

namespace chorus::engine {
class DataPlane::Impl final : public Surroundings {
 public:
  explicit Impl(DataPlaneOptions options)
      : options_(std::move(options)),
        context_(options_.loop != nullptr ? *options_.loop : own_context_),
        work_(boost::asio::make_work_guard(context_)),
        client_(context_.get_executor(), options_.credentials),
        tasks_(context_.get_executor()),
        timer_(context_),
        device_timer_(context_),
        end_timer_(context_),
        traffic_(options_.on_link_without_shm, options_.on_link_without_ipc),
        shm_(options_.arena, traffic_),
        handshakes_(options_, context_, client_, shm_, tcp_),
        engine_(options_, *this, traffic_) {
    if (options_.loop == nullptr) thread_ = std::thread([this] { live(); });
  }

  void stop() {
    if (!thread_.joinable()) return end_in_the_loop();
    submit([this] { begin_end(); });
    thread_.join();
  }

  void start(RunSpec spec, RunDone done) {
    submit([this, spec = std::move(spec), done = std::move(done)]() mutable {
      engine_.start(std::move(spec), std::move(done));
    });
  }

  // noexcept: an exception of a handler ends the process, as on the data thread; the loop is never left half way.
  RunResult run(std::shared_ptr<RunKind> const& kind, RunCall const& call, Interruption const* interruption) noexcept {
    if (!baton_.borrow()) return start_and_wait(kind, call, interruption);
    meet_fences();
    std::optional<RunResult> result;
    begin(kind, call, interruption, [&result](RunResult ended) { result = std::move(ended); });
    while (!result) serve([&result] { return result.has_value(); }, options_.call_spin);
    baton_.give_back(engine_.is_busy(), result->statistics.duration);
    return std::move(*result);
  }

  std::optional<std::uint64_t> run_at_once(MessageGroup& group, MessageRequest const& request) noexcept {
    // What was handed over before begins before.
    if (group.handed_over != 0 || !baton_.borrow()) return std::nullopt;
    meet_fences();
    auto const bytes =
        request.way == MessageWay::send ? engine_.send_at_once(group, request) : receive_at_once(group, request);
    // Otherwise the caller goes on with run_messages(), which must not wait for the data thread.
    baton_.give_back(bytes && engine_.is_busy(), {});
    return bytes;
  }

  void run_messages(std::shared_ptr<MessageGroup> const& group, std::span<MessageRequest> requests,
                    std::chrono::milliseconds timeout, std::span<MessageResult> results) noexcept {
    // What was handed over before begins before.
    bool const is_held = group->handed_over == 0 && baton_.borrow();
    if (is_held) meet_fences();
    auto const began = now();
    for (auto& request : requests) request.deadline = began + timeout;
    if (!is_held) return begin_messages_and_wait(group, requests, results);
    auto left = requests.size();
    for (std::size_t i = 0; i < requests.size(); ++i)
      engine_.begin_message(group, requests[i], [&left, result = &results[i]](MessageResult ended) {
        *result = std::move(ended);
        --left;
      });
    if (left == 0) return baton_.give_back(engine_.is_busy(), {});
    while (left != 0) serve([&left] { return left == 0; }, options_.call_spin);
    baton_.give_back(engine_.is_busy(), now() - began);
  }

  void begin_message(std::shared_ptr<MessageGroup> group, MessageRequest const& request, MessageDone done) {
    ++group->handed_over;
    submit([this, group = std::move(group), request, done = std::move(done)]() mutable {
      --group->handed_over;
      engine_.begin_message(group, request, std::move(done));
    });
  }

  void close_messages(std::shared_ptr<MessageGroup> group, Error why) {
    submit([this, group = std::move(group), why = std::move(why)] {
      engine_.close_messages(*group, {code_of(why), why.detail, {}, {}});
    });
  }

  void abort(std::uint64_t run, Error why) {
    submit([this, run, why = std::move(why)]() mutable { engine_.abort(run, std::move(why)); });
  }

  http::Response welcome(links::Introduction const& peer) {
    return handshakes_.welcome(peer, [this](LinkHandshakes::Incoming incoming) {
      submit([this, incoming = std::move(incoming)]() mutable {
        auto who = incoming.peer;
        auto made = handshakes_.take(std::move(incoming));
        engine_.adopt(std::move(made.link), std::move(who), made.lends, std::move(made.back));
      });
    });
  }

  void give_up(RunSpec spec, plan::Rank rank, Error why) {
    submit([this, spec = std::move(spec), rank, why = std::move(why)] { engine_.give_up(spec, rank, why); });
  }

  void fence(std::string worker, std::uint64_t incarnation) {
    ++fences_;
    submit([this, worker = std::move(worker), incarnation] {
      engine_.fence(worker, incarnation);
      --fences_;
    });
  }

  void retire(Retired epoch) {
    submit([this, epoch = std::move(epoch)]() mutable { engine_.retire(std::move(epoch)); });
  }

  [[nodiscard]] std::vector<PeerTraffic> traffic() const { return traffic_.read(); }
  [[nodiscard]] FlightRecorder* flights() const { return options_.flights; }

  void ask_progress(std::optional<std::uint64_t> run, std::function<void(std::vector<RunProgress>)> answer) {
    submit([this, run, answer = std::move(answer)] { answer(engine_.progress(run)); });
  }

  TimePoint now() override { return std::chrono::steady_clock::now(); }

  void dial(std::uint64_t send_connection, Peer const& peer, TimePoint deadline) override {
    tasks_.spawn("dial " + peer.url, dial_peer(send_connection, peer, deadline));
  }

  void settle_soon() override {
    boost::asio::post(context_, [this] { engine_.settle(); });
  }

  void watch_soon() override {
    if (options_.loop != nullptr) boost::asio::post(context_, [this] { engine_.watch_receives(true); });
  }

  void deadline_changed() override {
    auto const next = engine_.next_deadline();
    if (!awaits_deadline_ || next < timer_.expiry()) wait_for_deadline(next);
  }

  void poll_devices_soon() override {
    if (std::exchange(polls_devices_soon_, true)) return;
    device_timer_.expires_after(device_pause);
    device_timer_.async_wait([this](boost::system::error_code error) {
      polls_devices_soon_ = false;
      if (!error) engine_.poll_devices();
    });
  }

 private:
  // While GPUs are at work: the minimum time of polling, and the interval of polling them when nothing else moves. Work
  // takes a GPU up to a millisecond where other processes use it too.
  static constexpr std::chrono::microseconds device_spin{2000};
  static constexpr std::chrono::microseconds device_pause{50};
  // Limit for reads by peers' GPUs of runs that are over; they take longer only if a GPU hangs.
  static constexpr std::chrono::seconds returns_within{1};
  // Polls of one link for a small message, before a receive begins in the ordinary way: one or two microseconds.
  static constexpr unsigned polls_at_once = 2048;

  // Peers that read memory of GPUs here are told that their runs have ended, and report when they have stopped reading.
  void begin_end() {
    engine_.stop();
    end_when_returned(now() + returns_within);
  }

  void end_when_returned(TimePoint until) {
    if (!engine_.has_lent() || now() >= until) return end();
    end_timer_.expires_after(device_pause);
    end_timer_.async_wait([this, until](boost::system::error_code error) {
      if (!error) end_when_returned(until);
    });
  }

  void end() {
    has_ended_ = true;
    engine_.shut_down();
    shm_.let_go();
    tasks_.cancel();
    client_.close();
    timer_.cancel();
    device_timer_.cancel();
    work_.reset();
  }

  // All work posted before is done when the loop has no ready handlers left.
  void end_in_the_loop() {
    begin_end();
    context_.restart();
    while (context_.poll() != 0 || tasks_.size() != 0 || !has_ended_) {}
  }

  // Any thread.
  template <typename Work>
  void submit(Work work) {
    boost::asio::post(context_, std::move(work));
    rounds_.ask();
    baton_.nudge();
  }

  // Shared: the caller may return while the thread that ends the run still holds the semaphore.
  RunResult start_and_wait(std::shared_ptr<RunKind> const& kind, RunCall const& call,
                           Interruption const* interruption) {
    struct Call {
      std::binary_semaphore ended{0};  // half the system calls of a condition variable
      RunResult result;
    };
    auto const made = std::make_shared<Call>();
    submit([this, kind = kind, call, interruption, made]() mutable {
      begin(std::move(kind), call, interruption, [made](RunResult result) {
        made->result = std::move(result);
        made->ended.release();
      });
    });
    made->ended.acquire();
    return std::move(made->result);
  }

  void begin_messages_and_wait(std::shared_ptr<MessageGroup> const& group, std::span<MessageRequest const> requests,
                               std::span<MessageResult> results) {
    struct Ended {
      explicit Ended(std::size_t count) : results(count) {}
      std::counting_semaphore<> ended{0};
      std::vector<MessageResult> results;
    };
    auto const made = std::make_shared<Ended>(requests.size());
    for (std::size_t i = 0; i < requests.size(); ++i)
      begin_message(group, requests[i], [made, i](MessageResult ended) {
        made->results[i] = std::move(ended);
        made->ended.release();
      });
    for (std::size_t i = 0; i < requests.size(); ++i) made->ended.acquire();
    std::move(made->results.begin(), made->results.end(), results.begin());
  }

  // Call with the baton, before a run begins: the data thread may not have had its turn since the fence that came
  // before the run, and then the run's peers would be taken for fenced ones.
  void meet_fences() {
    while (fences_.load(std::memory_order_acquire) != 0 && context_.poll_one() != 0) {}
  }

  // Call with the baton: then an abort after the interruption either finds the run, or the run never begins.
  void begin(std::shared_ptr<RunKind> kind, RunCall const& call, Interruption const* interruption, RunDone done) {
    auto const why = interruption != nullptr ? interruption->failure() : std::nullopt;
    if (!why) return engine_.start(std::move(kind), call, std::move(done));
    RunResult result;
    result.status = Error(why->code, why->detail());
    done(std::move(result));
  }

  void live() {
    auto const gives_up = [this] { return context_.stopped() || baton_.is_wanted(); };
    while (!context_.stopped()) {
      baton_.take();
      while (!gives_up()) serve(gives_up, options_.spin);
      baton_.give();
    }
  }

  // Called by the holder of the baton: polls until nothing has moved for `spin`, then sleeps until something happens.
  template <typename Enough>
  void serve(Enough const& is_enough, std::chrono::microseconds spin) {
    poll_for_a_while(is_enough, spin);
    if (is_enough()) return;
    if (engine_.has_unwatched_receives()) engine_.watch_receives(true);
    tcp_.sweep();
    if (shm_.fall_asleep()) context_.run_one();
    shm_.wake_up();
  }

  std::optional<std::uint64_t> receive_at_once(MessageGroup& group, MessageRequest const& request) {
    if (shm_.empty()) return std::nullopt;
    // All other links and work have their turn in some of the calls.
    begin_round();
    if (rounds_.looks_further()) rounds_.ask();
    if (rounds_.looks_further() || rounds_.number() % PollRounds::per_look == 0) return std::nullopt;
    return engine_.receive_at_once(group, request, polls_at_once);
  }

  void begin_round() {
    rounds_.begin(tcp_.are_few() ? PollRounds::LooksAt::few_sockets
                  : shm_.empty() ? PollRounds::LooksAt::nothing
                                 : PollRounds::LooksAt::memory);
  }

  // Runs a limited number of ready handlers: those of a long transfer post themselves again, possibly for ever.
  bool run_some() {
    constexpr int at_once = 16;
    int ran = 0;
    while (ran < at_once && context_.poll_one() != 0) ++ran;
    return ran != 0;
  }

  template <typename Enough>
  void poll_for_a_while(Enough const& is_enough, std::chrono::microseconds spin) {
    std::optional<TimePoint> until;
    auto spins = spin;
    while (!is_enough()) {
      begin_round();
      bool moved = shm_.poll();
      if (tcp_.are_few()) moved = tcp_.poll(rounds_.number()) || moved;
      if (rounds_.looks_further() && run_some()) {
        rounds_.further_moved();
        moved = true;
      }
      if (rounds_.looks_further() && engine_.has_unwatched_receives()) engine_.watch_receives(false);
      bool const awaits_devices = engine_.awaits_devices();
      if (awaits_devices) moved = engine_.poll_devices() || moved;
      if (moved) {
        until.reset();
        spins = awaits_devices ? std::max(spin, device_spin) : spin;
        continue;
      }
      if (until && !rounds_.reads_clock()) continue;
      auto const looked = now();
      if (!until) until = looked + spins;
      if (looked >= *until) return;
      if (rounds_.looks_further() || shm_.empty()) adaptive_yield_.give_way(looked);
    }
  }

  boost::asio::awaitable<void> dial_peer(std::uint64_t send_connection, Peer peer, TimePoint deadline) {
    auto made = co_await handshakes_.dial(std::move(peer), deadline);
    if (made.has_error())
      engine_.dialed(send_connection, made.error());
    else
      engine_.dialed(send_connection, std::move(made->link), made->lends, std::move(made->back));
  }

  void wait_for_deadline(TimePoint next) {
    timer_.expires_at(next);
    awaits_deadline_ = next != TimePoint::max();
    if (!awaits_deadline_) return;
    timer_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      awaits_deadline_ = false;
      engine_.check_deadlines();
      wait_for_deadline(engine_.next_deadline());
    });
  }

  DataPlaneOptions const options_;
  boost::asio::io_context own_context_{1};
  boost::asio::io_context& context_;  // run by the holder of the baton, one thread at a time
  std::atomic<unsigned> fences_{0};   // submitted and not done
  LoopBaton baton_{[this] { boost::asio::post(context_, [] {}); }};
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work_;
  http::Client client_;
  http::TaskGroup tasks_;
  boost::asio::steady_timer timer_;
  bool awaits_deadline_ = false;
  boost::asio::steady_timer device_timer_;
  bool polls_devices_soon_ = false;
  boost::asio::steady_timer end_timer_;
  bool has_ended_ = false;
  TrafficBook traffic_;
  TcpLinks tcp_;
  ShmLinks shm_;
  LinkHandshakes handshakes_;
  Engine engine_;
  // Used by the holder of the baton while it polls:
  PollRounds rounds_;
  AdaptiveYield adaptive_yield_;
  std::thread thread_;
};

}  // namespace chorus::engine
