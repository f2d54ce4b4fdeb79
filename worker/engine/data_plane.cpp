#include "worker/engine/data_plane.hpp"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <thread>
#include <utility>

#include "http/client.hpp"
#include "http/task_group.hpp"
#include "worker/engine/engine.hpp"
#include "worker/engine/shm_links.hpp"
#include "worker/links/errc.hpp"
#include "worker/links/handshake.hpp"
#include "worker/links/tcp_link.hpp"

namespace chorus::engine {

namespace asio = boost::asio;

namespace {

// How often a thread that polls looks at shared memory for every time that it asks the system for anything else.
constexpr unsigned rounds_of_memory = 16;

}  // namespace

class DataPlane::Impl final : public Surroundings {
 public:
  explicit Impl(DataPlaneOptions options)
      : options_(std::move(options)),
        work_(asio::make_work_guard(context_)),
        client_(context_.get_executor()),
        tasks_(context_.get_executor()),
        timer_(context_),
        traffic_(options_.on_link_without_shm),
        shm_(options_.arena, traffic_),
        engine_(options_, *this, traffic_),
        thread_([this] { run(); }) {}

  void stop() {
    asio::post(context_, [this] {
      engine_.shut_down();
      shm_.let_go();
      tasks_.cancel();
      client_.close();
      timer_.cancel();
      work_.reset();
    });
    thread_.join();
  }

  void start(RunSpec spec, RunDone done) {
    asio::post(context_, [this, spec = std::move(spec), done = std::move(done)]() mutable {
      engine_.start(std::move(spec), std::move(done));
    });
  }

  void abort(std::uint64_t run, Error why) {
    asio::post(context_, [this, run, why = std::move(why)]() mutable { engine_.abort(run, std::move(why)); });
  }

  http::Response welcome(links::Introduction const& peer) {
    auto loan = shm_.accept(peer);
    if (loan.has_error()) return http::Problem(http::ProblemCode::bad_request, loan.error().detail);
    auto take_over = [this, who = Identity{peer.worker, peer.incarnation}, loan = loan->loan](
                         asio::ip::tcp::socket socket, std::string early_bytes) {
      adopt(std::move(socket), std::move(early_bytes), who, loan);
    };
    return links::switch_protocols(std::move(take_over), loan->answer);
  }

  void fence(std::string worker, std::uint64_t incarnation) {
    asio::post(context_, [this, worker = std::move(worker), incarnation] { engine_.fence(worker, incarnation); });
  }

  [[nodiscard]] std::vector<PeerTraffic> traffic() const { return traffic_.read(); }

  TimePoint now() override { return std::chrono::steady_clock::now(); }

  void dial(std::uint64_t outlet, Peer const& peer, TimePoint deadline) override {
    tasks_.spawn("dial " + peer.url, dial_peer(outlet, peer, deadline));
  }

  void settle_soon() override {
    asio::post(context_, [this] { engine_.settle(); });
  }

  void deadline_changed() override {
    auto const next = engine_.next_deadline();
    if (next < timer_.expiry() || timer_.expiry() <= now()) wait_for_deadline(next);
  }

 private:
  // Any thread.
  void adopt(asio::ip::tcp::socket socket, std::string early_bytes, Identity peer,
             std::shared_ptr<links::ShmLoan> loan) {
    boost::system::error_code error;
    auto const protocol = socket.local_endpoint(error).protocol();
    auto const handle = error ? -1 : socket.release(error);
    if (error) return;  // the peer has gone already; it dials again when it needs the link
    asio::post(context_, [this, protocol, handle, early = std::move(early_bytes), peer = std::move(peer),
                          loan = std::move(loan)]() mutable {
      asio::ip::tcp::socket here(context_, protocol, handle);
      if (loan)
        engine_.adopt(shm_.add(std::make_shared<links::ShmLink>(std::move(here), std::move(*loan))), std::move(peer));
      else
        engine_.adopt(std::make_shared<links::TcpLink>(std::move(here), std::move(early)), std::move(peer));
    });
  }

  void run() {
    while (!context_.stopped()) {
      poll_for_a_while();
      if (shm_.fall_asleep()) context_.run_one();
      shm_.wake_up();
    }
  }

  // Until nothing has moved for options_.spin.
  void poll_for_a_while() {
    auto until = now() + options_.spin;
    for (unsigned round = 0; !context_.stopped(); ++round) {
      bool const looks_further = shm_.empty() || round % rounds_of_memory == 0;
      bool moved = shm_.poll();
      if (moved || looks_further) moved = context_.poll() != 0 || moved;
      if (moved)
        until = now() + options_.spin;
      else if (now() >= until)
        return;
      else if (looks_further)
        std::this_thread::yield();
    }
  }

  asio::awaitable<void> dial_peer(std::uint64_t outlet, Peer peer, TimePoint deadline) {
    co_await asio::post(asio::use_awaitable);  // dial() answers later
    auto offer = shm_.offer(peer);
    // Named, because g++ 12 destroys an aggregate temporary of a full expression with co_await twice.
    auto introduction = links::to_fields({options_.worker, options_.incarnation, described(offer)});
    auto upgraded = co_await client_.upgrade(peer.url + std::string(links::link_path),
                                             std::string(links::link_protocol), std::move(introduction), deadline);
    if (upgraded.has_error())
      engine_.dialed(outlet, Error(links::LinkErrc::closed, upgraded.error().detail));
    else
      engine_.dialed(outlet, link_of(peer, std::move(*upgraded), std::move(offer)));
  }

  static std::optional<links::SharedMemory> described(std::optional<links::ShmOffer> const& offer) {
    return offer ? std::optional(offer->described()) : std::nullopt;
  }

  Result<std::shared_ptr<links::Link>> link_of(Peer const& peer, http::Client::Upgraded upgraded,
                                               std::optional<links::ShmOffer> offer) {
    if (offer) {
      auto const accepted = shm_.is_accepted(peer, upgraded.fields);
      if (accepted.has_error()) return accepted.error();
      if (*accepted) return shm_.add(std::make_shared<links::ShmLink>(std::move(upgraded.socket), std::move(*offer)));
    }
    return std::make_shared<links::TcpLink>(std::move(upgraded.socket), std::move(upgraded.early_bytes));
  }

  void wait_for_deadline(TimePoint next) {
    timer_.expires_at(next);
    if (next == TimePoint::max()) return;
    timer_.async_wait([this](boost::system::error_code error) {
      if (error) return;
      engine_.check_deadlines();
      wait_for_deadline(engine_.next_deadline());
    });
  }

  DataPlaneOptions const options_;
  asio::io_context context_{1};
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  http::Client client_;
  http::TaskGroup tasks_;
  asio::steady_timer timer_;
  TrafficBook traffic_;
  ShmLinks shm_;
  Engine engine_;
  std::thread thread_;
};

DataPlane::DataPlane(DataPlaneOptions options) : impl_(std::make_unique<Impl>(std::move(options))) {}

DataPlane::~DataPlane() { impl_->stop(); }

void DataPlane::start(RunSpec spec, RunDone done) { impl_->start(std::move(spec), std::move(done)); }

void DataPlane::abort(std::uint64_t run, Error why) { impl_->abort(run, std::move(why)); }

http::Response DataPlane::welcome(links::Introduction const& peer) { return impl_->welcome(peer); }

void DataPlane::fence(std::string const& worker, std::uint64_t incarnation) { impl_->fence(worker, incarnation); }

std::vector<PeerTraffic> DataPlane::traffic() const { return impl_->traffic(); }

}  // namespace chorus::engine
