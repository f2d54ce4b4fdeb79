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
#include "http/json/json.hpp"
#include "metrics/log_counter.hpp"
#include "worker/api/core/group_requests.hpp"
#include "worker/api/errc.hpp"
#include "worker/memory/pages/errc.hpp"
#include "worker/memory/registered_memory.hpp"
#include "worker/service/surroundings.hpp"

namespace chorus::embedded {
namespace {

constexpr std::size_t plan_cache_bytes = 64 << 20;
// Pauses between attempts double from the shortest to the longest.
constexpr std::chrono::milliseconds shortest_pause{5}, longest_pause{200};

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

Error without_coordinator() {
  return {WorkerErrc::no_coordinator, "this worker was started without a coordinator: nobody makes groups"};
}

bool is_wanted(service::Assignment const& assignment, GroupOptions const* wanted) {
  if (wanted == nullptr || wanted->workers.empty()) return true;
  auto const is_at = [](engine::Peer const& peer, std::string const& id) { return peer.worker == id; };
  auto const& members = assignment.members;
  auto const& ids = wanted->workers;
  if (wanted->order.empty() || wanted->order == "listed")
    return std::equal(members.begin(), members.end(), ids.begin(), ids.end(), is_at);
  return members.size() == ids.size() && std::all_of(members.begin(), members.end(), [&](engine::Peer const& peer) {
           return std::find(ids.begin(), ids.end(), peer.worker) != ids.end();
         });
}

std::string members_of(service::Assignment const& assignment) {
  std::string text;
  for (auto const& peer : assignment.members) text += (text.empty() ? "" : ", ") + peer.worker;
  return text;
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

Result<std::shared_ptr<Member>> Core::join(std::string const& group, TimePoint deadline) {
  return join(group, deadline, nullptr);
}

Result<std::shared_ptr<Member>> Core::join(std::string const& group, TimePoint deadline, GroupOptions const* wanted) {
  if (auto const named = check_name(group); named.has_error()) return named.error();
  if (!has_coordinator_) return without_coordinator();
  std::vector<std::shared_ptr<Member>> former;  // outlive the lock: their ends may take a moment
  std::unique_lock lock(mutex_);
  for (;;) {
    if (ended_) return *ended_;
    if (auto const found = groups_.find(group);
        found != groups_.end() && found->second.assignment && is_wanted(*found->second.assignment, wanted)) {
      auto& [assignment, member] = found->second;
      bool const is_new = !member || member->epoch() != assignment->group.epoch;
      if (is_new && assignment->group.lost.empty()) {
        former.push_back(std::move(member));
        member = std::make_shared<Member>(machinery(), *assignment);
      }
      if (member && member->epoch() == assignment->group.epoch && !member->end().is_over()) return member;
    }
    if (std::chrono::steady_clock::now() >= deadline) break;
    changed_.wait_until(lock, deadline);
  }
  lock.unlock();
  return why_not(group, wanted);
}

std::optional<std::string> Core::unready() {
  std::promise<std::optional<std::string>> answer;
  {
    std::lock_guard const lock(mutex_);  // stop() comes after, and the control thread runs until it has answered
    if (ended_) return std::nullopt;
    boost::asio::post(control_, [this, &answer] { answer.set_value(service_.unready()); });
  }
  return answer.get_future().get();
}

Error Core::why_not(std::string const& group, GroupOptions const* wanted) {
  if (auto const why = unready()) return {WorkerErrc::no_coordinator, *why};
  std::lock_guard const lock(mutex_);
  if (ended_) return *ended_;
  auto const found = groups_.find(group);
  if (found == groups_.end() || !found->second.assignment)
    return {WorkerErrc::not_assigned,
            "nobody has made a group " + group + " with " + identity().id + " in it until the deadline"};
  auto const& [assignment, member] = found->second;
  if (!is_wanted(*assignment, wanted))
    return {WorkerErrc::not_assigned, "group " + group + " has other members: " + members_of(*assignment)};
  auto text = "epoch " + std::to_string(assignment->group.epoch) + " of group " + group;
  if (member && member->end().is_over())
    text += " has failed (" + member->end().why() + ")";
  else
    text += " has lost members";
  return {WorkerErrc::no_new_epoch, text + ", and there was no newer one until the deadline"};
}

Result<std::shared_ptr<Member>> Core::create(std::string const& group, GroupOptions const& options,
                                             TimePoint deadline) {
  auto const& self = identity().id;
  if (auto const checked = check_group(group, options, self); checked.has_error()) return checked.error();
  if (!has_coordinator_) return without_coordinator();
  {
    std::lock_guard const lock(mutex_);
    auto const found = groups_.find(group);
    if (found != groups_.end() && found->second.member && !found->second.member->end().is_over())
      return Error(WorkerErrc::bad_argument, "this worker is a member of group " + group +
                                                 " already: join it, or delete it before it is made anew");
  }
  if (options.workers.empty() || options.workers.front() == self) {
    auto const key = ::chorus::api::to_hex(service::draw_incarnation());
    auto const answer = ask(to_make(service_.coordinator(), group, options, key), deadline);
    if (answer.has_error()) return answer.error();
    auto const made = http::decode<::chorus::api::Group>(*answer, http::UnknownFields::ignore);
    if (!made) return Error(WorkerErrc::no_coordinator, "the coordinator's answer is no group: " + made.error().detail);
    if (std::none_of(made->members.begin(), made->members.end(), [&](auto const& m) { return m.worker == self; }))
      return Error(WorkerErrc::not_assigned, "group " + group + " was made, and this worker, '" + self +
                                                 "', is not one of the " + std::to_string(options.size));
  }
  return join(group, deadline, &options);
}

Status Core::remove(std::string const& group, TimePoint deadline) {
  if (auto const named = check_name(group); named.has_error()) return named.error();
  if (!has_coordinator_) return without_coordinator();
  auto const answer = ask(to_delete(service_.coordinator(), group), deadline);
  if (answer.has_error()) return answer.error();
  return ok();
}

Result<std::string> Core::ask(http::Call const& call, TimePoint deadline) {
  auto pause = shortest_pause;
  std::optional<Error> refusal;  // the last one of the coordinator: it says more than a silence at the deadline
  for (;;) {
    std::unique_lock lock(mutex_);
    if (ended_) return *ended_;
    // Under the lock: stop() comes after, and the control thread runs until this attempt has ended.
    auto ending = boost::asio::co_spawn(control_, attempt(&service_.client(), call, deadline), boost::asio::use_future);
    lock.unlock();
    auto ended = ending.get();
    if (!ended.failure) return std::move(ended.body);
    if (!refusal || ended.failure->code != WorkerErrc::no_coordinator) refusal = ended.failure;
    if (!ended.may_succeed_later || std::chrono::steady_clock::now() + pause >= deadline) {
      lock.lock();
      return ended_ ? *ended_ : *refusal;
    }
    lock.lock();
    changed_.wait_for(lock, pause, [this] { return ended_.has_value(); });
    pause = std::min(2 * pause, longest_pause);
  }
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
