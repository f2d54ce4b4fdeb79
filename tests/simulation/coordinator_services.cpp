#include "tests/simulation/coordinator_services.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>

#include "base/runtime/condition.hpp"
#include "server/coordinator/journal/journal_file.hpp"
#include "server/coordinator/leading.hpp"

namespace chorus::simulation {
namespace {

namespace asio = boost::asio;
using asio::awaitable;
using namespace std::chrono_literals;

coordinator::CoordinatorOptions options_of_all() {
  coordinator::CoordinatorOptions options;
  options.lease = 2s;
  options.has_threads = false;
  return options;
}

class WithJournal final : public CoordinatorService {
 public:
  WithJournal(CoordinatorOf const& process, std::string const& path)
      : coordinator_(process.host.io.get_executor(), options_of_all(), coordinator::JournalFile::open(path).value(),
                     process.random, process.log) {}

  Result<std::uint16_t> start(std::uint16_t port) { return coordinator_.start("127.0.0.1", port); }
  awaitable<void> stop(TimePoint until) override { return coordinator_.stop(until); }
  awaitable<void> hand_over(TimePoint until) override { return coordinator_.hand_over(until); }

 private:
  coordinator::Coordinator coordinator_;
};

coordinator::LeadingOptions leading_options(std::uint16_t port, std::vector<std::string> endpoints) {
  coordinator::LeadingOptions options;
  options.host = "127.0.0.1";
  options.port = port;
  options.etcd.endpoints = std::move(endpoints);
  return options;
}

coordinator::CoordinatorOptions with_blocking_store(Host& host) {
  host.blocking = std::make_unique<BlockingThread>();
  auto options = options_of_all();
  options.store_executor = host.blocking->executor();
  return options;
}

class WithEtcd final : public CoordinatorService {
 public:
  WithEtcd(CoordinatorOf const& process, std::vector<std::string> endpoints, std::function<void()> ended)
      : host_(process.host),
        leading_(host_.io.get_executor(), leading_options(process.port, std::move(endpoints)),
                 with_blocking_store(host_), process.random, process.log),
        ended_(std::move(ended)),
        changed_(host_.io.get_executor()) {}

  Result<std::uint16_t> start() {
    auto const port = leading_.start();
    if (!port) return port;
    leads_ = true;
    asio::co_spawn(host_.io, leading_.lead(),
                   asio::bind_cancellation_slot(cancel_.slot(), [this](std::exception_ptr, int) {
                     leads_ = false;
                     changed_.notify_all();
                     if (!is_stopping_) ended_();
                   }));
    return port;
  }
  awaitable<void> stop(TimePoint until) override {
    is_stopping_ = true;
    cancel_.emit(asio::cancellation_type::terminal);
    while (leads_ || hands_over_) co_await changed_.wait_until(TimePoint::max());
    co_await leading_.stop(until);
  }
  awaitable<void> hand_over(TimePoint until) override {
    hands_over_ = true;
    co_await leading_.hand_over(until);
    hands_over_ = false;
    changed_.notify_all();
  }

 private:
  Host& host_;
  coordinator::Leading leading_;
  std::function<void()> const ended_;
  asio::cancellation_signal cancel_;
  bool leads_ = false;  // lead() is running
  bool hands_over_ = false;
  bool is_stopping_ = false;
  http::Condition changed_;
};

}  // namespace

Result<std::unique_ptr<CoordinatorService>> start_with_journal(CoordinatorOf process, std::string const& path) {
  auto service = std::make_unique<WithJournal>(process, path);
  if (auto const started = service->start(process.port); !started) return started.error();
  return std::unique_ptr<CoordinatorService>(std::move(service));
}

Result<std::unique_ptr<CoordinatorService>> start_with_etcd(CoordinatorOf process, std::vector<std::string> endpoints,
                                                            std::function<void()> ended) {
  auto service = std::make_unique<WithEtcd>(process, std::move(endpoints), std::move(ended));
  if (auto const started = service->start(); !started) return started.error();
  return std::unique_ptr<CoordinatorService>(std::move(service));
}

}  // namespace chorus::simulation
