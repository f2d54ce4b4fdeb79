#include "worker/engine/data_plane.hpp"

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <optional>
#include <semaphore>
#include <thread>
#include <utility>

#include "http/auth/credentials.hpp"
#include "http/client.hpp"
#include "http/task_group.hpp"
#include "worker/engine/courtesy.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/interruption.hpp"
#include "worker/engine/loop_baton.hpp"
#include "worker/engine/run_kind.hpp"
#include "worker/engine/shm_links.hpp"
#include "worker/engine/tcp_links.hpp"
#include "worker/links/errc.hpp"
#include "worker/links/handshake.hpp"
#include "worker/links/tcp_link.hpp"
#include "worker/links/two_way.hpp"

namespace chorus::engine {

namespace asio = boost::asio;

namespace {

// How often a thread that polls looks at memory and at a few sockets for every time that it asks the system for
// anything else; and while it has found something there within so many rounds.
constexpr unsigned rounds_alone = 64, rounds_alone_lately = 16, lately = 4096;

// While GPUs are at work: how long the thread polls at least, and how often it looks at them when nothing else moves.
// What they are asked for takes them up to a millisecond, where other processes use them, too.
constexpr std::chrono::microseconds device_spin{2000};
constexpr std::chrono::microseconds device_pause{50};
// What peers' GPUs still read of runs that are over takes them no longer, unless they hang.
constexpr std::chrono::seconds returns_within{1};

}  // namespace

class DataPlane::Impl final : public Surroundings {
 public:
  explicit Impl(DataPlaneOptions options)
      : options_(std::move(options)),
        context_(options_.loop != nullptr ? *options_.loop : own_context_),
        work_(asio::make_work_guard(context_)),
        client_(context_.get_executor(), options_.credentials),
        tasks_(context_.get_executor()),
        timer_(context_),
        device_timer_(context_),
        end_timer_(context_),
        traffic_(options_.on_link_without_shm, options_.on_link_without_ipc),
        shm_(options_.arena, traffic_),
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

  // What a handler throws ends the process here as it does on the data thread: the loop is not left half way.
  RunResult run(std::shared_ptr<RunKind> const& kind, RunCall const& call, Interruption const* interruption) noexcept {
    if (!baton_.borrow()) return start_and_wait(kind, call, interruption);
    std::optional<RunResult> result;
    begin(kind, call, interruption, [&result](RunResult ended) { result = std::move(ended); });
    while (!result) serve([&result] { return result.has_value(); }, options_.call_spin);
    baton_.give_back(engine_.is_busy(), result->duration);
    return std::move(*result);
  }

  void abort(std::uint64_t run, Error why) {
    submit([this, run, why = std::move(why)]() mutable { engine_.abort(run, std::move(why)); });
  }

  http::Response welcome(links::Introduction const& peer) {
    auto loan = shm_.accept(peer);
    if (loan.has_error()) return http::Problem(http::ProblemCode::bad_request, loan.error().detail);
    bool const has_checksums = !loan->answer.accepted && links::takes_checksums(options_.checksums, peer.checksums);
    if (!loan->answer.accepted && !has_checksums && insists_on_checksums())
      return http::Problem(http::ProblemCode::bad_request, options_.worker + " takes links with checksums only");
    bool const lends = options_.lending_host && peer.lending_host == options_.lending_host;
    bool const both_ways = peer.both_ways && !loan->answer.accepted;
    auto take_over = [this, who = Identity{peer.worker, peer.incarnation}, loan = loan->loan,
                      framing = framing_of(has_checksums), lends, both_ways](http::Connection connection) {
      adopt(std::move(connection), who, loan, framing, lends, both_ways);
    };
    return links::switch_protocols(
        std::move(take_over), {loan->answer, has_checksums, lends ? options_.lending_host : std::nullopt, both_ways});
  }

  void give_up(RunSpec spec, plan::Rank rank, Error why) {
    submit([this, spec = std::move(spec), rank, why = std::move(why)] { engine_.give_up(spec, rank, why); });
  }

  void fence(std::string worker, std::uint64_t incarnation) {
    submit([this, worker = std::move(worker), incarnation] { engine_.fence(worker, incarnation); });
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

  void dial(std::uint64_t outlet, Peer const& peer, TimePoint deadline) override {
    tasks_.spawn("dial " + peer.url, dial_peer(outlet, peer, deadline));
  }

  void settle_soon() override {
    asio::post(context_, [this] { engine_.settle(); });
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
  // Peers that read memory of GPUs here hear that their runs have ended, and say when they read no more.
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

  // What was posted before this has been done when the loop has nothing more to do at once.
  void end_in_the_loop() {
    begin_end();
    context_.restart();
    while (context_.poll() != 0 || tasks_.size() != 0 || !has_ended_) {}
  }

  // Any thread.
  template <typename Work>
  void submit(Work work) {
    asio::post(context_, std::move(work));
    baton_.nudge();
  }

  // The caller may be gone with everything that it owns while the thread that ends the run is still about to return.
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

  // With the loop in hand, so that an abort which follows the interruption finds the run, or nothing to end.
  void begin(std::shared_ptr<RunKind> kind, RunCall const& call, Interruption const* interruption, RunDone done) {
    auto const why = interruption != nullptr ? interruption->failure() : std::nullopt;
    if (!why) return engine_.start(std::move(kind), call, std::move(done));
    RunResult result;
    result.status = Error(why->code, why->detail());
    done(std::move(result));
  }

  // Any thread.
  void adopt(http::Connection connection, Identity peer, std::shared_ptr<links::ShmLoan> loan, links::Framing framing,
             bool lends, bool both_ways) {
    boost::system::error_code error;
    auto const protocol = connection.socket.local_endpoint(error).protocol();
    auto const handle = error ? -1 : connection.socket.release(error);
    if (error) return;  // the peer has gone already; it dials again when it needs the link
    submit([this, protocol, handle, tls = std::move(connection.tls), early = std::move(connection.early_bytes),
            peer = std::move(peer), loan = std::move(loan), framing, lends, both_ways]() mutable {
      http::Connection here{asio::ip::tcp::socket(context_, protocol, handle), std::move(tls), std::move(early)};
      // Through shared memory the connection carries nothing but bells: those need no TLS.
      if (loan)
        return engine_.adopt(shm_.add(std::make_shared<links::ShmLink>(std::move(here.socket), std::move(*loan))),
                             std::move(peer), lends);
      bool const has_small = !both_ways || links::is_for_small(peer.worker, options_.worker);
      auto link = tcp_.add(std::make_shared<links::TcpLink>(std::move(here), framing), brings(has_small));
      if (!both_ways) return engine_.adopt(std::move(link), std::move(peer), lends);
      auto [there, back] = links::two_way(std::move(link));
      engine_.adopt(std::move(there), std::move(peer), lends, std::move(back));
    });
  }

  static TcpLinks::Brings brings(bool small_messages) {
    return small_messages ? TcpLinks::Brings::small_messages : TcpLinks::Brings::others;
  }

  void live() {
    auto const gives_up = [this] { return context_.stopped() || baton_.is_wanted(); };
    while (!context_.stopped()) {
      baton_.take();
      while (!gives_up()) serve(gives_up, options_.spin);
      baton_.give();
    }
  }

  // Whoever has the baton: polls until nothing has moved for `spin`, then sleeps until something happens.
  template <typename Enough>
  void serve(Enough const& is_enough, std::chrono::microseconds spin) {
    poll_for_a_while(is_enough, spin);
    if (is_enough()) return;
    tcp_.sweep();
    if (shm_.fall_asleep()) context_.run_one();
    shm_.wake_up();
  }

  // Some of what is ready: handlers that go on with a long transfer put themselves behind the others, for ever if need
  // be.
  bool run_some() {
    constexpr int at_once = 16;
    int ran = 0;
    while (ran < at_once && context_.poll_one() != 0) ++ran;
    return ran != 0;
  }

  // Rounds are counted over the calls: a short one asks the system for nothing but what it waits for.
  template <typename Enough>
  void poll_for_a_while(Enough const& is_enough, std::chrono::microseconds spin) {
    // What moves at once costs no look at the clock.
    std::optional<TimePoint> until;
    auto spins = spin;
    while (!is_enough()) {
      auto const round = round_++;
      auto const alone = round - loop_moved_ < lately ? rounds_alone_lately : rounds_alone;
      bool const looks_further = (shm_.empty() && !tcp_.are_few()) || round % alone == 0;
      bool moved = shm_.poll();
      if (tcp_.are_few()) moved = tcp_.poll(round) || moved;
      if (looks_further && run_some()) {
        loop_moved_ = round;
        moved = true;
      }
      bool const awaits_devices = engine_.awaits_devices();
      if (awaits_devices) moved = engine_.poll_devices() || moved;
      if (moved) {
        until.reset();
        spins = awaits_devices ? std::max(spin, device_spin) : spin;
        continue;
      }
      auto const looked = now();
      if (!until) until = looked + spins;
      if (looked >= *until) return;
      if (looks_further || shm_.empty()) courtesy_.give_way(looked);
    }
  }

  asio::awaitable<void> dial_peer(std::uint64_t outlet, Peer peer, TimePoint deadline) {
    co_await asio::post(asio::use_awaitable);  // dial() answers later
    auto offer = shm_.offer(peer);
    // Named, because g++ 12 destroys an aggregate temporary of a full expression with co_await twice.
    auto introduction =
        links::to_fields({options_.worker, options_.incarnation, described(offer),
                          links::checksum_offer(options_.checksums, peer.url), options_.lending_host, true});
    auto upgraded = co_await client_.upgrade(peer.url + std::string(links::link_path),
                                             std::string(links::link_protocol), std::move(introduction), deadline);
    if (upgraded.has_error()) {
      engine_.dialed(outlet, Error(links::LinkErrc::closed, upgraded.error().detail));
      co_return;
    }
    bool const lends = options_.lending_host && links::read_borrows_answer(upgraded->fields) == options_.lending_host;
    bool const both_ways = links::read_both_ways_answer(upgraded->fields);
    auto link = link_of(peer, std::move(*upgraded), std::move(offer), both_ways);
    if (link.has_error() || !both_ways) {
      engine_.dialed(outlet, std::move(link), lends);
    } else {
      auto [there, back] = links::two_way(std::move(*link));
      engine_.dialed(outlet, std::move(there), lends, std::move(back));
    }
  }

  static std::optional<links::SharedMemory> described(std::optional<links::ShmOffer> const& offer) {
    return offer ? std::optional(offer->described()) : std::nullopt;
  }

  Result<std::shared_ptr<links::Link>> link_of(Peer const& peer, http::Client::Upgraded upgraded,
                                               std::optional<links::ShmOffer> offer, bool both_ways) {
    if (offer) {
      auto const accepted = shm_.is_accepted(peer, upgraded.fields);
      if (accepted.has_error()) return accepted.error();
      if (*accepted)
        return shm_.add(std::make_shared<links::ShmLink>(std::move(upgraded.connection.socket), std::move(*offer)));
    }
    auto const has_checksums = links::read_checksums_answer(upgraded.fields);
    if (has_checksums.has_error()) return has_checksums.error();
    if (!*has_checksums && insists_on_checksums())
      return Error(links::LinkErrc::bad_handshake, peer.url + " does not take links with checksums");
    auto const framing = framing_of(*has_checksums);
    return tcp_.add(std::make_shared<links::TcpLink>(std::move(upgraded.connection), framing),
                    brings(both_ways && links::is_for_small(options_.worker, peer.worker)));
  }

  [[nodiscard]] bool insists_on_checksums() const { return options_.checksums == links::ChecksumMode::on; }
  static links::Framing framing_of(bool has_checksums) {
    return has_checksums ? links::Framing::checksummed : links::Framing::plain;
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
  asio::io_context own_context_{1};
  asio::io_context& context_;  // run by one thread at a time: whoever has the baton
  LoopBaton baton_{[this] { asio::post(context_, [] {}); }};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  http::Client client_;
  http::TaskGroup tasks_;
  asio::steady_timer timer_;
  bool awaits_deadline_ = false;
  asio::steady_timer device_timer_;
  bool polls_devices_soon_ = false;
  asio::steady_timer end_timer_;
  bool has_ended_ = false;
  TrafficBook traffic_;
  TcpLinks tcp_;
  ShmLinks shm_;
  Engine engine_;
  // Of whoever polls with the baton:
  unsigned round_ = 0;
  unsigned loop_moved_ = 0;  // in which round
  Courtesy courtesy_;
  std::thread thread_;
};

DataPlane::DataPlane(DataPlaneOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

DataPlane::~DataPlane() { impl_->stop(); }

void DataPlane::start(RunSpec spec, RunDone done) { impl_->start(std::move(spec), std::move(done)); }

RunResult DataPlane::run(std::shared_ptr<RunKind> const& kind, RunCall const& call, Interruption const* interruption) {
  return impl_->run(kind, call, interruption);
}

void DataPlane::give_up(RunSpec const& spec, plan::Rank rank, Error const& why) { impl_->give_up(spec, rank, why); }

void DataPlane::abort(std::uint64_t run, Error why) { impl_->abort(run, std::move(why)); }

http::Response DataPlane::welcome(links::Introduction const& peer) { return impl_->welcome(peer); }

void DataPlane::fence(std::string const& worker, std::uint64_t incarnation) { impl_->fence(worker, incarnation); }

void DataPlane::retire(Retired epoch) { impl_->retire(std::move(epoch)); }

std::vector<PeerTraffic> DataPlane::traffic() const { return impl_->traffic(); }

FlightRecorder* DataPlane::flights() const { return impl_->flights(); }

void DataPlane::ask_progress(std::optional<std::uint64_t> run, std::function<void(std::vector<RunProgress>)> answer) {
  impl_->ask_progress(run, std::move(answer));
}

}  // namespace chorus::engine
