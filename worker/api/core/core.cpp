#include "worker/api/core/core.hpp"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <algorithm>
#include <array>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/use_future.hpp>
#include <ctime>
#include <future>
#include <string_view>

#include "base/runtime/environment.hpp"
#include "collectives/core/nearest_name.hpp"
#include "http/client/client.hpp"
#include "metrics/log_counter.hpp"
#include "worker/memory/pages/errc.hpp"
#include "worker/memory/registered_memory.hpp"
#include "worker/service/surroundings.hpp"

namespace chorus::embedded {
namespace {

constexpr std::size_t plan_cache_bytes = 64 << 20;

std::shared_ptr<spdlog::logger> make_log(std::string const& level) {
  auto log = std::make_shared<spdlog::logger>("worker",
                                              spdlog::sinks_init_list{std::make_shared<spdlog::sinks::stderr_sink_mt>(),
                                                                      std::make_shared<metrics::LogCounter>()});
  log->set_level(spdlog::level::from_str(level));
  log->flush_on(spdlog::level::info);
  return log;
}

Status check(WorkerOptions const& options) {
  constexpr std::array<std::string_view, 6> levels{"trace", "debug", "info", "warn", "error", "off"};
  if (!options.coordinator.empty())
    if (auto const url = http::parse_services(options.coordinator); url.has_error())
      return Error(WorkerErrc::bad_argument, "coordinator: " + url.error().detail);
  if (auto const host = http::parse_listen_host(options.host); host.has_error())
    return Error(WorkerErrc::bad_argument, "host: " + host.error().detail);
  if (!options.advertise.empty())
    if (auto const url = service::advertised_url(options.advertise, "http", 7071); url.has_error())
      return Error(WorkerErrc::bad_argument, "advertise: " + url.error().detail);
  if (!options.id.empty() && !service::is_valid_worker_id(options.id))
    return Error(WorkerErrc::bad_argument, "id: '" + options.id + "' is not 1 to 64 letters, digits and ._-");
  if (std::find(levels.begin(), levels.end(), options.log_level) == levels.end())
    return Error(WorkerErrc::bad_argument, unknown_name("log_level", options.log_level, levels));
  if (!links::parse_checksum_mode(options.link_checksum))
    return Error(WorkerErrc::bad_argument, unknown_name("link_checksum", options.link_checksum, {"auto", "on", "off"}));
  return ok();
}

service::WorkerOptions to_service(WorkerOptions options) {
  service::WorkerOptions to;
  to.host = std::move(options.host);
  to.port = options.port;
  to.advertise = std::move(options.advertise);
  to.coordinator = std::move(options.coordinator);
  to.id = std::move(options.id);
  to.locality = std::move(options.locality);
  to.tensor_limit_bytes = options.tensor_limit_bytes;
  to.memory = http::memory_limit();
  to.memory_limit_bytes =
      options.memory_limit_bytes != 0 ? options.memory_limit_bytes : service::default_memory_limit(to.memory.bytes);
  to.shares_memory = options.shares_memory;
  to.link_checksum = links::parse_checksum_mode(options.link_checksum).value();
  to.spin = options.spin;
  to.drain_timeout = options.drain_timeout;
  to.connections = http::prepare_for_connections(options.connections);
  to.security = std::move(options.security);
  to.host_name = service::host_name();
  to.incarnation = service::draw_incarnation();
  to.start_time_seconds = static_cast<double>(std::time(nullptr));
  return to;
}

}  // namespace

Result<std::shared_ptr<Core>> Core::start(WorkerOptions options) {
  if (auto const checked = check(options); checked.has_error()) return checked.error();
  http::ignore_signals_of_writes();
  auto const log_level = options.log_level;
  auto core = std::make_shared<Core>(to_service(std::move(options)), log_level);
  if (auto const opened = core->open(); opened.has_error()) return opened.error();
  return core;
}

Core::Core(service::WorkerOptions options, std::string const& log_level)
    : has_coordinator_(!options.coordinator.empty()),
      service_(control_, std::move(options), {{}, "no GPU: a program's own tensors lie in its memory"},
               make_log(log_level), [this](std::string const& why) { end(Error(WorkerErrc::fenced, why)); }),
      plans_(plan_cache_bytes) {}

Core::~Core() = default;

Status Core::open() {
  if (auto opened = service_.open(); opened.has_error()) return opened;
  service_.groups().listen([this](std::string const& group) { note(group); });
  service_.count_also([this] { return calls(); });
  thread_ = std::thread([this] { control_.run(); });
  return ok();
}

void Core::stop() {
  end(Error(WorkerErrc::stopped, "the worker has stopped"));
  boost::asio::co_spawn(control_, service_.stop(), boost::asio::use_future).get();
  thread_.join();
}

void Core::end(Error why) {
  std::map<std::string, Known> groups;
  {
    std::lock_guard const lock(mutex_);
    groups.swap(groups_);  // their members hold this object
    if (!ended_) ended_ = why;
    changed_.notify_all();
  }
  for (auto const& [name, known] : groups)
    if (known.member) known.member->interrupt(engine::EngineErrc::aborted, why.detail);
}

void Core::note(std::string const& group) {
  auto const epoch = service_.groups().epoch_of(group);
  auto const assignment = epoch != nullptr ? std::make_shared<service::Assignment const>(epoch->assignment()) : nullptr;
  std::shared_ptr<Member> member;  // outlives the lock
  {
    std::lock_guard const lock(mutex_);
    if (ended_) return;
    auto& known = groups_[group];
    known.assignment = assignment;
    member = known.member;
    if (!assignment) groups_.erase(group);
    changed_.notify_all();
  }
  if (member) member->follow(assignment.get());
}

Machinery Core::machinery() {
  return {shared_from_this(),
          &service_.plane(),
          &plans_,
          &regions_,
          service_.arena().get(),
          [this](api::Trouble trouble) { report(std::move(trouble)); },
          [this](std::string const& name, std::vector<std::string> ids, TimePoint deadline) {
            return create(name, {std::move(ids), 0, "listed"}, deadline);
          },
          service_.metrics().open_ledger()};
}

void Core::report(api::Trouble trouble) {
  boost::asio::post(control_, [this, trouble = std::move(trouble)]() mutable { service_.report(std::move(trouble)); });
}

std::vector<api::GroupCalls> Core::calls() {
  std::vector<api::GroupCalls> calls;
  std::lock_guard const lock(mutex_);
  for (auto const& [name, known] : groups_)
    if (known.member) calls.push_back(known.member->calls());
  return calls;
}

Result<Worker::Memory> Core::allocate(std::size_t bytes) {
  auto block = service_.pool().acquire(bytes);
  if (block.has_error()) return block.error();
  auto const memory = (*block)->bytes();
  return Worker::Memory{std::move(*block), memory};
}

Result<std::unique_ptr<memory::RegisteredMemory>> Core::adopt(std::span<std::byte> bytes) {
  if (service_.arena() == nullptr)
    return Error(memory::MemoryErrc::not_shared, "this worker shares no memory with others");
  return memory::RegisteredMemory::make(service_.arena(), bytes);
}

}  // namespace chorus::embedded
