#include "worker/service/worker.hpp"

#include <spdlog/logger.h>

#include <algorithm>
#include <boost/asio/post.hpp>

#include "base/logging/log.hpp"
#include "http/openapi/document.hpp"
#include "metrics/build/build.hpp"
#include "worker/devices/nvml/gpu_report.hpp"
#include "worker/links/host_number.hpp"
#include "worker/service/cluster/link_list.hpp"
#include "worker/service/cluster/probe_routes.hpp"
#include "worker/service/own_address.hpp"
#include "worker/service/scraped_state.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using std::chrono::steady_clock;

constexpr std::size_t plan_cache_bytes = 64 << 20;
constexpr std::chrono::seconds leave_timeout{2};
constexpr std::chrono::seconds abort_timeout{2};

http::MessageChecksums checksums_of(links::ChecksumMode mode) {
  switch (mode) {
    case links::ChecksumMode::automatic:
      return http::MessageChecksums::automatic;
    case links::ChecksumMode::on:
      return http::MessageChecksums::on;
    case links::ChecksumMode::off:
      return http::MessageChecksums::off;
  }
  return http::MessageChecksums::automatic;
}

http::ServerLimits limits_of(WorkerOptions const& options) {
  http::ServerLimits limits;
  limits.connections = options.connections;
  return limits;
}

// Twice the addresses of what may be in use, because blocks leave gaps.
std::shared_ptr<memory::Arena> make_arena(WorkerOptions const& options, spdlog::logger& log) {
  if (!options.shares_memory) return nullptr;
  if (auto const removed = memory::remove_abandoned(); removed != 0)
    log.info("removed the shared memory of {} workers that have died", removed);
  // Also addresses, not memory, for blocks whose place is never reused.
  auto const capacity = std::min(options.memory_limit_bytes, std::uint64_t{1} << 44) * 2 + (std::uint64_t{64} << 30);
  auto region = memory::SharedRegion::create(memory::random_ticket(capacity));
  if (region.has_error()) {
    log.warn("no shared memory, other workers are reached over tcp: {}", region.error().detail);
    return nullptr;
  }
  return std::make_shared<memory::Arena>(std::move(*region));
}

std::string first_service(std::string const& urls) {
  auto const services = http::parse_services(urls);
  return services ? services->front() : urls;
}

std::size_t kept_bytes(WorkerOptions const& options) { return options.memory_limit_bytes / 4; }

}  // namespace

// The parts that run collectives, with their routes.
struct Worker::Runs {
  Runs(boost::asio::any_io_executor executor, Worker& worker)
      : plane({.worker = worker.identity_.id,
               .incarnation = worker.identity_.incarnation,
               .spin = worker.options_.spin,
               .loop = worker.options_.has_threads ? nullptr : &worker.control_,
               .arena = worker.arena_.get(),
               .lending_host =
                   worker.options_.lends_gpu_memory && worker.gpus_.size() != 0 ? links::host_number() : std::nullopt,
               .credentials = &worker.security_.credentials(),
               .checksums = worker.options_.link_checksum,
               .flights = &worker.flights_,
               .on_link_without_shm =
                   [log = worker.log_](std::string const& peer, std::string const& why) {
                     log->info("the link with {} goes over tcp: {}", peer, why);
                   },
               .on_link_without_ipc =
                   [log = worker.log_](std::string const& peer, std::string const& why) {
                     log->info("what is on GPUs goes to and from {} through the host's memory: {}", peer, why);
                   }}),
        runner({executor, plane, worker.plans_, worker.store_, worker.pool_, worker.helper_, worker.metrics_,
                worker.flights_, *worker.log_, worker.nccl_.get()}),
        book(executor, runner, {}),
        groups(executor, runner, plane, worker.identity_,
               [&worker](api::Trouble trouble) { worker.report(std::move(trouble)); }),
        run_routes(book, groups, worker.identity_),
        group_routes(groups),
        link_route(plane, worker.identity_),
        link_list(plane),
        flight_routes(executor, plane, worker.flights_, book, worker.identity_),
        probe_routes(worker.client_, worker.identity_, worker.coordinator_) {
    http::Router content;
    run_routes.add_to(content);
    group_routes.add_to(content);
    worker.add_guarded(std::move(content));
    link_route.add_to(worker.router_);
    link_list.add_to(worker.router_);
    flight_routes.add_to(worker.router_);
    probe_routes.add_to(worker.router_);
  }

  engine::DataPlane plane;
  Runner runner;
  RunRegistry book;
  GroupRegistry groups;
  RunRoutes run_routes;
  GroupRoutes group_routes;
  LinkRoute link_route;
  LinkList link_list;
  FlightRoutes flight_routes;
  ProbeRoutes probe_routes;
};

Worker::Worker(boost::asio::io_context& control, WorkerOptions options, devices::FoundGpus gpus,
               std::shared_ptr<spdlog::logger> log, Fenced fenced)
    : control_(control),
      executor_(control.get_executor()),
      options_(std::move(options)),
      coordinator_(first_service(options_.coordinator)),
      log_(std::move(log)),
      fenced_(std::move(fenced)),
      metrics_(metrics::this_build(), options_.start_time_seconds, metrics::log_counter_of(*log_)),
      security_(options_.security, {}, [this](std::string_view reason) { metrics_.refused(reason); }),
      arena_(make_arena(options_, *log_)),
      own_memory_(arena_, *log_),
      gpus_(std::move(gpus), options_.gpu_limits),
      freeing_(instead_of_threads()),
      pool_(kept_bytes(options_), options_.memory_limit_bytes, arena_, elsewhere()),
      keeper_(executor_, pool_, arena_, *log_, {}, instead_of_threads()),
      clients_(options_.allows_client_shm, store_, gpus_, helper_),
      plans_(plan_cache_bytes),
      helper_(executor_, instead_of_threads()),
      flights_(flight_options()),
      client_(executor_, &security_.credentials()),
      server_(
          executor_, router_, limits_of(options_),
          [this](http::Exchange const& exchange) {
            metrics_.request(http::name(exchange.method), exchange.route, exchange.status,
                             std::chrono::duration<double>(exchange.duration).count());
          },
          security_.door()),
      lag_(executor_, [this](double seconds) { metrics_.loop_lag(seconds); }) {
  if (auto coordinators = http::parse_services(options_.coordinator)) client_.take_turns(std::move(*coordinators));
}

Worker::~Worker() = default;

// Empty without threads: a test that owns the time waits for no other thread.
tensors::Pool::Elsewhere Worker::elsewhere() {
  if (!options_.has_threads) return {};
  return [this](std::function<void()> work) { boost::asio::post(freeing_.executor(), std::move(work)); };
}

Result<std::string> Worker::advertised(std::uint16_t port) const {
  if (options_.advertise.empty()) return bound_url(options_, security_.scheme(), port);
  return advertised_url(options_.advertise, security_.scheme(), port);
}

Status Worker::open() {
  if (auto const opened = security_.open(); !opened) return opened;
  // Everything that can fail comes first: a listening server ends only by stop(). The port does not matter yet.
  if (auto const host = http::parse_listen_host(options_.host); !host) return host.error();
  auto const named = advertised(std::max<std::uint16_t>(options_.port, 1));
  if (!named) return named.error();
  auto const url = http::parse_url(*named);
  if (!url) return url.error();
  if (auto const answers = security_.answer_to(url->host); !answers) return answers;
  if (auto const found = find_nccl(); !found) return found;
  auto const port = server_.listen(options_.host, options_.port);
  if (!port) return port.error();
  bound_url_ = bound_url(options_, security_.scheme(), *port);
  identity_.url = advertised(*port).value();
  identity_.id = options_.id.empty() ? default_worker_id(options_.host_name, *port) : options_.id;
  identity_.incarnation = options_.incarnation;
  logging::configure(*log_, options_.log_format, {{"worker", identity_.id}});
  runs_ = std::make_unique<Runs>(executor_, *this);
  add_routes();
  log_->info("{} of incarnation {} listens on {}, others use {}", identity_.id, api::to_hex(identity_.incarnation),
             bound_url_, identity_.url);
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    auto const& gpu = gpus_[i].gpu().info();
    log_->info("{} is {} at {}, with {} MiB", devices::device_name(gpu.index), gpu.name, gpu.pci_address,
               gpu.memory_bytes >> 20);
  }
  if (!gpus_.why_none().empty()) log_->info("{}", gpus_.why_none());
  tell_memory();
  auto locality = options_.locality;
  if (locality.host.empty()) locality.host = options_.host_name;
  metrics_.identified(identity_.id, locality);
  lag_.start();
  keeper_.start();
  start_agent();
  return ok();
}

void Worker::tell_memory() {
  auto const& [bytes, source] = options_.memory;
  if (bytes == 0) return;
  auto const limit = options_.memory_limit_bytes;
  log_->info("tensors and results may take {} MiB, of {} MiB that {} allows", limit >> 20, bytes >> 20, source);
  if (limit > bytes)
    log_->warn(
        "--memory-limit-bytes {} is more than the process may use: {} allows {}, and beyond that the system ends it",
        limit, source, bytes);
}

Status Worker::find_nccl() {
  bool const is_of_use = gpus_.size() > 1;
  if (options_.nccl != NcclUse::on && !is_of_use) return ok();
  if (options_.nccl == NcclUse::off) {
    log_->info("NCCL is not used: --gpu-nccl off");
    return ok();
  }
  auto const library = devices::NcclLibrary::load(options_.nccl_library);
  if (!library) {
    if (options_.nccl == NcclUse::on)
      return Error(library.error().code, "--gpu-nccl on: NCCL cannot be used: " + library.error().detail);
    log_->info("NCCL is not used: {}", library.error().detail);
    return ok();
  }
  log_->info("NCCL {} was found{}", (*library)->version(),
             is_of_use ? "" : ", and has nothing to do: there are not several GPUs");
  auto const tell = [log = log_](std::string const& line, bool is_trouble) {
    log->log(is_trouble ? spdlog::level::warn : spdlog::level::info, "{}", line);
  };
  if (is_of_use) nccl_ = std::make_unique<devices::NcclTeams>(*library, tell);
  return ok();
}

// Called from the threads of runs: a logger may be used by any thread.
engine::FlightRecorder::Options Worker::flight_options() {
  auto const tell = [this](engine::RunProgress const& run, bool stalled) {
    logging::write(*log_, stalled ? spdlog::level::warn : spdlog::level::info, stalled ? "run.stalled" : "run.goes_on",
                   stalled ? describe_stall(run) : run.description + " goes on, or has ended",
                   {run_field(run.run),
                    {"group", run.group},
                    {"epoch", run.epoch},
                    {"rank", run.rank},
                    {"for_s", run.still_seconds}});
  };
  return {.stall = options_.stall, .on_stall = tell};
}

void Worker::add_guarded(http::Router content) {
  router_.add(std::move(content), [this](http::Handler handler) { return own_memory_.guarded(std::move(handler)); });
}

GroupRegistry& Worker::groups() { return runs_->groups; }
engine::DataPlane& Worker::plane() { return runs_->plane; }

void Worker::report(api::Trouble trouble) {
  if (agent_) agent_->report(std::move(trouble));
}

void Worker::add_routes() {
  health_routes_.emplace(identity_, gpus_, metrics::this_build(),
                         HealthRoutes::Sources{[this] { return unready(); }, [this] { return complaint(); },
                                               [this] { return metrics_text(); }});
  tensor_routes_.emplace(store_, pool_, helper_, identity_);
  tensor_upload_.emplace(store_, pool_, gpus_, clients_, helper_, identity_, options_.tensor_limit_bytes);
  parameters_ =
      std::make_unique<ParameterService>(ParameterService::Parts{executor_,
                                                                 instead_of_threads(),
                                                                 client_,
                                                                 checksums_of(options_.link_checksum),
                                                                 pool_,
                                                                 &gpus_,
                                                                 helper_,
                                                                 identity_,
                                                                 metrics_,
                                                                 coordinator_,
                                                                 options_.checkpoint_directory,
                                                                 options_.log_directory,
                                                                 options_.log_snapshot_bytes,
                                                                 options_.fill_bytes_per_second,
                                                                 {options_.disk_patience},
                                                                 coordinator_.empty() ? nullptr : &owner_lease_,
                                                                 *log_});
  health_routes_->add_to(router_);
  http::Router content;
  parameters_->add_to(content);
  tensor_routes_->add_to(content);
  tensor_upload_->add_to(content);
  add_guarded(std::move(content));
  shm_routes_.add_to(router_);
  http::openapi::restrict_queries(router_, http::openapi::Service::worker);
}

std::vector<GpuLocality> Worker::reported_gpus() const {
  std::vector<devices::GpuInfo> used;
  for (std::size_t i = 0; i < gpus_.size(); ++i) used.push_back(gpus_[i].gpu().info());
  auto report = devices::report_gpus(used, options_.nvml_library);
  for (auto const& why : report.unknown) log_->warn("the coordinator hears less of GPUs than there is: {}", why);
  return std::move(report.gpus);
}

void Worker::start_agent() {
  if (coordinator_.empty()) return;
  AgentOptions agent;
  agent.coordinator = coordinator_;
  agent.self.id = identity_.id;
  agent.self.incarnation = api::to_hex(identity_.incarnation);
  agent.self.url = identity_.url;
  agent.self.locality = options_.locality;
  if (agent.self.locality.host.empty()) agent.self.locality.host = options_.host_name;
  agent.self.version = metrics::this_build().version;
  agent.self.gpus = reported_gpus();
  agent_ = std::make_unique<Agent>(executor_, client_, metrics_, log_, std::move(agent), fenced_,
                                   [this] { return calls(); });
  agent_->bind(owner_lease_);
  agent_->start();
}

// Calls over HTTP, and those of the program in this process.
std::vector<api::GroupCalls> Worker::calls() const {
  auto all = runs_->groups.calls();
  if (!calls_beside_) return all;
  for (auto const& more : calls_beside_()) {
    if (more.calls == 0) continue;
    auto const same = std::find_if(all.begin(), all.end(), [&](auto const& known) {
      return known.group == more.group && known.epoch == more.epoch;
    });
    if (same == all.end()) {
      all.push_back(more);
      continue;
    }
    same->calls += more.calls;
    same->seconds += more.seconds;
  }
  return all;
}

std::optional<std::string> Worker::unready() {
  if (draining_) return "the worker is shutting down";
  if (auto why = own_memory_.damage()) return why;
  if (auto why = gpus_.lost()) return "a GPU is lost: " + *why;
  if (auto why = parameters_->trouble()) return why;
  return agent_ ? agent_->unready() : std::nullopt;
}

std::string Worker::metrics_text() {
  metrics::Scrape scrape;
  for (auto const& peer : runs_->plane.traffic()) scrape.links.push_back(scraped(peer));
  for (std::size_t i = 0; i < gpus_.size(); ++i) scrape.gpus.push_back(scraped(gpus_[i]));
  scrape.tensors = store_.count();
  scrape.tensor_bytes = store_.host_bytes();
  scrape.tensor_limit_bytes = options_.memory_limit_bytes;
  scrape.memory = scraped(pool_.use(), store_.residuals());
  scrape.state = {!unready(),
                  draining_,
                  server_.open_connections(),
                  server_.requests_in_flight(),
                  security_.authenticates(),
                  security_.certificate_ends_seconds()};
  scrape.state.memory = {options_.memory.bytes, http::memory_used(options_.memory)};
  auto const shards = parameters_->book().totals();
  scrape.owned = {shards.owned, shards.owned_bytes, shards.owned_rows};
  scrape.backups = {shards.backups, shards.backup_bytes, shards.backup_rows};
  scrape.backups_behind = shards.backups_behind;
  scrape.state.disk_waits = parameters_->disk_waits();
  return metrics_.text(scrape);
}

awaitable<void> Worker::stop() {
  draining_ = true;
  runs_->book.drain();
  runs_->groups.drain();
  auto const deadline = steady_clock::now() + options_.drain_timeout;
  co_await runs_->groups.drained(deadline);
  co_await runs_->book.drained(deadline);
  co_await parameters_->settle(deadline);
  if (agent_) {
    auto const held = parameters_->book().totals();
    if (held.owned + held.backups > 0) co_await agent_->hand_over(deadline);
    co_await agent_->stop(steady_clock::now() + leave_timeout);
    co_await agent_->leave(steady_clock::now() + leave_timeout);
  }
  // Aborted runs end within moments; their callers get answers before the server stops.
  runs_->groups.stop("the worker is shutting down");
  co_await runs_->groups.drained(steady_clock::now() + abort_timeout);
  co_await runs_->book.stop();
  co_await parameters_->stop();
  co_await server_.stop();
  co_await parameters_->leave_disks(steady_clock::now() + abort_timeout);
  co_await keeper_.stop();
  co_await lag_.stop();
  client_.close();
}

}  // namespace chorus::service
