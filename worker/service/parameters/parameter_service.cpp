#include "worker/service/parameters/parameter_service.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <thread>

#include "http/api/cluster/membership.hpp"

namespace chorus::service {
namespace {

std::size_t thread_count() { return std::clamp<std::size_t>(std::thread::hardware_concurrency(), 1, 8); }

}  // namespace

ParameterService::ParameterService(Parts parts)
    : metrics_(parts.metrics),
      executor_(parts.executor),
      threads_(parts.instead, thread_count()),
      checkpoint_disk_(parts.executor, checkpoints::posix_files(), parts.disk_patience),
      log_disk_(parts.executor, checkpoints::posix_files(), parts.disk_patience),
      log_lock_(parts.log_directory),
      log_(parts.log),
      identity_(parts.identity),
      access_(parts.executor, parts.client, parts.checksums, parts.coordinator),
      book_({parts.executor,
             threads_.executor(),
             {parts.client, parts.checksums},
             parts.pool,
             events(),
             parts.fill_bytes_per_second,
             {&log_disk_, parts.log_directory, parts.log_snapshot_bytes},
             parts.gpus,
             parts.lease},
            parts.identity.id, api::to_hex(parts.identity.incarnation)),
      checkpoints_(parts.checkpoint_directory, checkpoint_disk_, book_, {parts.pool, parts.gpus}),
      maker_(
          parts.log_directory, log_disk_, {parts.pool, parts.gpus},
          [this](bool recovered) { metrics_.parameter_log_recovery(recovered ? "recovered" : "refused"); },
          parts.instead),
      routes_(parts.executor, book_, access_, parts.pool, parts.helper, api::to_hex(parts.identity.incarnation),
              {[this] { metrics_.parameter_pulled("sent"); }, [this] { metrics_.parameter_pulled("unchanged"); }}),
      shard_routes_(book_, checkpoints_, maker_, parts.pool, parts.helper),
      checkpoint_routes_(checkpoints_, parts.identity),
      tasks_(parts.executor) {
  tasks_.spawn("leftovers of checkpoints", checkpoints_.sweep());
  tasks_.spawn("leftovers of clients", let_go());
}

ParameterService::~ParameterService() {
  threads_.drop();
  threads_.join();
}

void ParameterService::add_to(http::Router& router) {
  routes_.add_to(router);
  shard_routes_.add_to(router);
  checkpoint_routes_.add_to(router);
}

parameters::ShardEvents ParameterService::events() {
  parameters::ShardEvents events;
  events.pushed = [this](std::string_view kind, std::string_view result, double seconds) {
    metrics_.parameter_pushed(kind, result, seconds);
  };
  events.read_behind = [this](std::uint64_t clocks) { metrics_.parameter_staleness(clocks); };
  events.waited = [this](std::string_view what) { metrics_.parameter_waited(what); };
  events.nonfinite = [this](std::uint64_t elements) { metrics_.parameter_nonfinite(elements); };
  events.log_failed = [this](std::string const& shard, std::string const& why) {
    metrics_.parameter_log_failed();
    log_.error("the log of {}: {}", shard, why);
  };
  events.logged = [this](std::uint64_t records, std::uint64_t bytes, double seconds) {
    metrics_.parameter_logged(records, bytes, seconds);
  };
  events.log_truncated = [this] { metrics_.parameter_log_truncated(); };
  events.rows_created = [this](std::uint64_t rows) { metrics_.parameter_rows_created(rows); };
  events.unreachable = [this](std::string const& worker, std::string const& incarnation) {
    suspect(worker, incarnation);
  };
  events.lost = [this](std::string const& parameter, std::uint32_t shard, std::string const& why) {
    log_.error("shard {} of {} is not here any more: {}", shard, parameter, why);
    tasks_.spawn("loss of a shard of " + parameter, report_loss(parameter, shard));
  };
  return events;
}

// Repeats until the coordinator has got the report; it then looks for the shard's owner.
boost::asio::awaitable<void> ParameterService::report_loss(std::string parameter, std::uint32_t shard) {
  constexpr std::chrono::seconds patience{2};
  constexpr std::chrono::milliseconds before_repeating{200};
  auto const incarnation = api::to_hex(identity_.incarnation);
  for (;;) {
    auto const deadline = std::chrono::steady_clock::now() + patience;
    auto const has_heard =
        co_await access_.directory().report_loss(parameter, shard, identity_.id, incarnation, deadline);
    if (has_heard) co_return;
    boost::asio::steady_timer timer(executor_, before_repeating);
    co_await timer.async_wait(boost::asio::use_awaitable);
  }
}

// Clients that have died in the middle of a read or a push do not say so.
boost::asio::awaitable<void> ParameterService::let_go() {
  constexpr std::chrono::seconds period{5};
  boost::asio::steady_timer timer(executor_);
  for (;;) {
    timer.expires_after(period);
    co_await timer.async_wait(boost::asio::use_awaitable);
    routes_.let_go(std::chrono::steady_clock::now());
  }
}

void ParameterService::suspect(std::string const& worker, std::string const& incarnation) {
  if (suspected_.insert(worker).second) tasks_.spawn("suspect " + worker, tell(worker, incarnation));
}

boost::asio::awaitable<void> ParameterService::tell(std::string worker, std::string incarnation) {
  constexpr std::chrono::seconds patience{2};
  constexpr std::chrono::milliseconds before_repeating{200};
  co_await access_.directory().suspect(worker, incarnation, std::chrono::steady_clock::now() + patience);
  boost::asio::steady_timer timer(executor_, before_repeating);
  co_await timer.async_wait(boost::asio::use_awaitable);
  suspected_.erase(worker);
}

std::optional<std::string> ParameterService::trouble() const {
  if (auto why = checkpoint_disk_.trouble()) return "of checkpoints, " + *why;
  if (auto why = log_disk_.trouble()) return "of logs of pushes, " + *why;
  return book_.log_failure();
}

metrics::DiskWaits ParameterService::disk_waits() const {
  auto const seconds = [](parameters::Disk const& disk) {
    auto const longest = disk.longest();
    return longest ? longest->seconds : 0;
  };
  return {{"checkpoints", seconds(checkpoint_disk_)}, {"logs", seconds(log_disk_)}};
}

boost::asio::awaitable<void> ParameterService::settle(http::TimePoint deadline) {
  co_await checkpoint_disk_.settled(deadline);
}

boost::asio::awaitable<void> ParameterService::leave_disks(http::TimePoint deadline) {
  for (auto* const disk : {&checkpoint_disk_, &log_disk_}) {
    auto const left = co_await disk->stop(deadline);
    for (auto const& what : left) log_.error("a thread is left behind that the disk does not answer: {}", what);
  }
}

boost::asio::awaitable<void> ParameterService::stop() {
  co_await book_.stop();
  tasks_.cancel();
  co_await tasks_.join();
  co_await routes_.stop();
  co_await access_.stop();
}

}  // namespace chorus::service
