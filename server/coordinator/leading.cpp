#include "server/coordinator/leading.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>

#include "base/runtime/until_done_there.hpp"
#include "metrics/log_counter.hpp"
#include "server/coordinator/text/wall_clock.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using std::chrono::steady_clock;

constexpr auto patience = std::chrono::seconds(2);
constexpr auto patience_at_the_start = std::chrono::seconds(5);

bool is_wildcard(std::string const& host) { return host == "0.0.0.0" || host == "::"; }

// Returns HOST:PORT as a URL has it. The IPv6 address of a Kubernetes pod comes without brackets.
std::string authority_of(std::string const& advertise) {
  auto const colon = advertise.rfind(':');
  auto const host = advertise.substr(0, colon);
  if (colon == std::string::npos || host.starts_with('[') || host.find(':') == std::string::npos) return advertise;
  return "[" + host + "]" + advertise.substr(colon);
}

asio::awaitable<Status> preload(EtcdStore* store) { co_return store->preload(); }

}  // namespace

Leading::Leading(asio::any_io_executor executor, LeadingOptions options, CoordinatorOptions coordinator, Random random,
                 std::shared_ptr<spdlog::logger> log)
    : executor_(std::move(executor)),
      options_(std::move(options)),
      coordinator_options_(std::move(coordinator)),
      random_(std::move(random)),
      log_(std::move(log)),
      start_seconds_(wall_seconds()),
      traffic_(std::make_shared<EtcdTraffic>(options_.etcd.endpoints)),
      etcd_(executor_, options_.etcd, traffic_),
      election_(etcd_, random_(), options_.election),
      standby_(executor_, election_, standby_options()),
      loading_(coordinator_options_.store_executor),
      ended_(executor_),
      tasks_(executor_) {}

metrics::LeadershipScrape Leading::scrape() const {
  return {election_.leads(), election_.term(), traffic_->endpoints()};
}

StandbyOptions Leading::standby_options() const {
  StandbyOptions options;
  options.security = coordinator_options_.security;
  options.limits = coordinator_options_.http;
  options.process_start_seconds = start_seconds_;
  options.memory = coordinator_options_.memory;
  options.logged = metrics::log_counter_of(*log_);
  options.scraped = [this] { return scrape(); };
  return options;
}

CoordinatorOptions Leading::leader_options() const {
  auto options = coordinator_options_;
  options.process_start_seconds = start_seconds_;
  options.leadership = [this] { return scrape(); };
  return options;
}

Result<std::uint16_t> Leading::start() {
  auto const port = standby_.start(options_.host, options_.port);
  if (port) port_ = *port;
  return port;
}

asio::awaitable<void> Leading::end(std::string why) {
  if (std::exchange(is_ending_, true)) co_return;
  if (coordinator_) coordinator_->drain();
  // Skips the question if etcd does not answer: the lease would end before an answer.
  bool was_emptied = false;
  if (election_.trouble().empty()) was_emptied = co_await election_.was_emptied(steady_clock::now() + patience);
  if (was_emptied) {
    log_->critical(
        "etcd has lost everything that was kept for this cluster; nothing is begun any more. Restore etcd "
        "from a snapshot, or start all coordinators again to begin with nothing");
    co_await outlast_loss();
    why = "etcd has the cluster again";
  }
  log_->error("this coordinator leads no longer ({}): it ends", why);
  status_ = 1;
  ended_.notify_all();
}

// The process stays until etcd has the cluster, because a new one would begin with an empty cluster. Workers and
// clients are refused meanwhile.
asio::awaitable<void> Leading::outlast_loss() {
  if (coordinator_) {
    co_await coordinator_->stop(steady_clock::now());
    is_stopped_ = true;
    after_the_loss_.emplace(executor_, election_, standby_options());
    if (auto const serves = after_the_loss_->start(options_.host, port_); !serves)
      log_->error("{}", serves.error().detail);
  }
  co_await election_.found_again();
}

asio::awaitable<void> Leading::keep() {
  auto why = co_await election_.keep();
  co_await end(std::move(why));
}

asio::awaitable<Result<std::unique_ptr<EtcdStore>>> Leading::load(Leadership leadership) {
  auto deposed = [this] {
    asio::post(executor_, [this] { tasks_.spawn("deposed", end("another one has written its name")); });
  };
  auto store = std::make_unique<EtcdStore>(options_.etcd, std::move(leadership), std::move(deposed), traffic_);
  auto const loaded = co_await asio::co_spawn(loading_.executor(), preload(store.get()), http::until_done_there());
  if (!loaded) co_return loaded.error();
  co_return store;
}

std::string Leading::url() const {
  auto const& host = is_wildcard(options_.host) ? options_.host_name : options_.host;
  auto const bound = host + ":" + std::to_string(port_);
  return std::string(scheme()) + "://" + authority_of(options_.advertise.empty() ? bound : options_.advertise);
}

asio::awaitable<Result<Leadership>> Leading::campaign() {
  for (;;) {
    auto leadership = co_await election_.campaign(url());
    if (leadership || leadership.error().code != EtcdErrc::emptied) co_return leadership;
    log_->error("{}", leadership.error().detail);
    // The process stays, because a new one would begin with an empty cluster.
    co_await election_.found_again();
  }
}

asio::awaitable<int> Leading::lead() {
  if (auto const reached = co_await election_.check_format(steady_clock::now() + patience_at_the_start); !reached) {
    log_->error("{}", reached.error().detail);
    co_return 1;
  }
  log_->info("standing by for cluster {} in {}", options_.etcd.cluster, etcd_.endpoint());
  auto leadership = co_await campaign();
  if (!leadership) {
    log_->error("{}", leadership.error().detail);
    co_return 1;
  }
  tasks_.spawn("leadership", keep());
  auto store = co_await load(*leadership);
  if (!store) {
    log_->error("{}", store.error().detail);
    co_return 1;
  }
  co_await standby_.stop();
  auto options = leader_options();
  options.url = url();
  coordinator_.emplace(executor_, std::move(options), std::move(*store), random_, log_);
  if (auto const serves = coordinator_->start(options_.host, port_); !serves) {
    log_->error("{}", serves.error().detail);
    co_return 1;
  }
  log_->info("this coordinator leads");
  while (!status_) co_await ended_.wait_until(TimePoint::max());
  co_return *status_;
}

asio::awaitable<void> Leading::hand_over(TimePoint until) {
  constexpr auto time_to_resign = std::chrono::seconds(2);
  if (coordinator_ && !is_ending_) co_await coordinator_->hand_over(until);
  is_ending_ = true;
  co_await election_.resign(steady_clock::now() + time_to_resign);
}

asio::awaitable<void> Leading::stop(TimePoint until) {
  is_ending_ = true;
  tasks_.cancel();
  co_await tasks_.join();
  if (coordinator_ && !is_stopped_) co_await coordinator_->stop(until);
  if (after_the_loss_) co_await after_the_loss_->stop();
  co_await standby_.stop();
}

}  // namespace chorus::coordinator
