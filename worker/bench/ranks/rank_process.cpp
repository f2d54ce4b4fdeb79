#include "worker/bench/ranks/rank_process.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_future.hpp>
#include <ctime>
#include <sstream>
#include <thread>

#include "collectives/algorithms/catalogue.hpp"
#include "http/auth/credentials.hpp"
#include "http/server/server.hpp"
#include "http/tls/context.hpp"
#include "metrics/runs/run_ledger.hpp"
#include "worker/bench/ranks/vectors.hpp"
#include "worker/bench/timing/bound_thread.hpp"
#include "worker/engine/groups/fused_calls.hpp"
#include "worker/engine/groups/group.hpp"
#include "worker/links/handshake.hpp"
#include "worker/links/host_number.hpp"

namespace chorus::bench {
namespace {

namespace asio = boost::asio;
using Clock = std::chrono::steady_clock;

constexpr std::uint64_t arena_bytes = std::uint64_t{1} << 36;  // address space
// Checking a vector on a GPU takes hundreds of times as long as a call: after it every call would find device and
// threads asleep.
constexpr std::uint64_t gpu_turns_per_check = 8;

engine::DataPlaneOptions plane_options(Options const& options, plan::Rank rank, http::Credentials const& credentials,
                                       engine::FlightRecorder& flights) {
  engine::DataPlaneOptions plane;
  plane.credentials = &credentials;
  plane.worker = "bench-" + std::to_string(rank);
  plane.incarnation = rank + 1;
  if (options.spin.count() >= 0) plane.spin = plane.call_spin = options.spin;
  if (options.has_checksums) plane.checksums = links::ChecksumMode::on;
  if (options.records_flights) plane.flights = &flights;
  if (options.eager_bytes != 0) plane.eager_bytes = options.eager_bytes;
  if (options.device != "cpu" && options.has_gpu_ipc) plane.lending_host = links::host_number();
  return plane;
}

// The data plane and the one route that it needs.
class Worker {
 public:
  Worker(Options const& options, plan::Rank rank)
      : scheme_(options.link == "tls" ? "https" : "http"),
        credentials_("", {"", "", options.tls_certificate}),
        tls_(http::TlsContext::Side::server, {options.tls_certificate, options.tls_key, ""}),
        plane_(plane_options(options, rank, credentials_, flights_)) {
    http::Door door;
    if (options.link == "tls") {
      tls_.open().value();
      door.tls = &tls_;
    }
    router_.add(http::Method::get, links::link_path, http::Access::open,
                [this](http::Request const& request, http::Body& body) { return link(request, body); });
    server_.emplace(
        io_.get_executor(), router_, http::ServerLimits{}, [](http::Exchange const&) {}, door);
    port_ = server_->listen("127.0.0.1", 0).value();
    thread_ = std::thread([this] { io_.run(); });
  }
  ~Worker() {
    asio::co_spawn(io_, server_->stop(), asio::use_future).get();
    thread_.join();
  }
  Worker(Worker const&) = delete;
  Worker& operator=(Worker const&) = delete;

  [[nodiscard]] std::string url() const { return scheme_ + "://127.0.0.1:" + std::to_string(port_); }
  [[nodiscard]] engine::DataPlane& plane() { return plane_; }

 private:
  asio::awaitable<http::Response> link(http::Request const& request, http::Body&) {
    auto peer = links::read_introduction(request.fields);
    if (peer.has_error()) co_return http::Problem(http::ProblemCode::bad_request, peer.error().detail);
    co_return plane_.welcome(*peer);
  }

  std::string const scheme_;
  http::Credentials credentials_;
  http::TlsContext tls_;
  engine::FlightRecorder flights_;
  engine::DataPlane plane_;
  asio::io_context io_{1};
  http::Router router_;
  std::optional<http::Server> server_;
  std::uint16_t port_ = 0;
  std::thread thread_;
};

double cpu_seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

class Bench {
 public:
  Bench(Options const& options, Group& group, Place place, StartLine& start_line, plan::Rank rank, std::uint32_t ranks)
      : group_(group),
        place_(place),
        must_share_(options.link == "shm"),
        link_without_shm_(options.link == "tls" ? "tls" : "tcp"),
        start_line_(start_line),
        rank_(rank),
        ranks_(ranks),
        tensors_(std::max(options.fused, 1U)),
        overwrites_(tensors_ > 1 || options.in_place),
        fused_(group, rank, place.arena) {
    call_.timeout = std::chrono::minutes(1);
    call_.gpu = place.gpu;
    call_.segment_bytes = segment_bytes_of(options, ranks);
    if (options.window != 0) call_.window = options.window;
  }

  // One answer line per order. An Error ends the benchmark.
  Result<std::string> obey(std::istringstream order) {
    std::string verb;
    order >> verb;
    if (verb == "prepare") return prepare(order);
    if (verb == "iterate") return iterate(order, overwrites_ ? &Bench::call_for_each : &Bench::call_once);
    if (verb == "iterate_counted") return iterate(order, &Bench::call_and_count);
    if (verb == "iterate_fused") return iterate(order, &Bench::call_for_all);
    return Error(std::make_error_code(std::errc::invalid_argument), "unknown order " + verb);
  }

 private:
  Result<std::string> prepare(std::istringstream& order) {
    auto const task = read_task(order);
    if (task.has_error()) return task.error();
    task_ = *task;
    vectors_.clear();
    vectors_.reserve(tensors_);
    try {
      for (std::uint32_t i = 0; i < tensors_; ++i) vectors_.emplace_back(task_, rank_, ranks_, place_);
    } catch (UnexpectedError const& no_room) { return no_room.error; }
    return "ready " + std::string(name(task_.op));
  }

  using Call = engine::RunResult (Bench::*)(std::uint64_t turn);

  Result<std::string> iterate(std::istringstream& order, Call how) {
    std::uint64_t iterations = 0;
    order >> iterations;
    auto const spec = read_spec(order, task_.op, ranks_);
    if (spec.has_error()) return spec.error();
    auto const algorithm = algorithms::find(spec->algorithm);
    if (algorithm.has_error()) return algorithm.error();
    call_.algorithm = *algorithm;
    call_.root = spec->root;
    call_.arity = spec->arity;
    call_.shape = spec->shape;
    call_.compression = task_.compression;
    call_.in_place = how == &Bench::call_for_each;

    Batch batch;
    auto const cpu_before = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
    for (std::uint64_t i = 0; i < iterations; ++i)
      if (auto const status = call(batch, how); status.has_error()) return status.error();
    batch.cpu_seconds = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_before;
    batch.cpu_seconds -= check_seconds(batch) * static_cast<double>(iterations);
    std::ostringstream answer;
    answer.precision(9);
    answer << "times " << link_of(batch) << ' ' << (batch.right ? 1 : 0) << ' ' << batch.cpu_seconds;
    for (auto const seconds : batch.seconds) answer << ' ' << seconds;
    return answer.str();
  }

  struct Batch {
    std::vector<double> seconds;
    double cpu_seconds = 0;  // of all threads, without the check
    bool right = true;
    bool is_in_place = true;  // all data was read in place on the sender's GPU
  };

  std::string link_of(Batch const& batch) const {
    if (batch.is_in_place) return "ipc";
    return group_.path() == "shm" ? "shm" : link_without_shm_;
  }

  engine::RunResult call_once(std::uint64_t turn) { return call(vectors_[0], vectors_[0].input(turn)); }

  engine::RunResult call(Vectors& vectors, std::span<std::byte const> input) {
    return group_.run(task_.op, input, vectors.output(), task_.dtype, ReduceOp::sum, task_.elements, call_);
  }

  // In place, with one call per tensor as with one for all: the inputs were copied into the outputs.
  engine::RunResult call_for_each(std::uint64_t) {
    for (std::size_t t = 0; t + 1 < vectors_.size(); ++t)
      if (auto result = call(vectors_[t], vectors_[t].output()); result.status.has_error()) return result;
    return call(vectors_.back(), vectors_.back().output());
  }

  // Counts as a worker counts the calls of a program that embeds it.
  engine::RunResult call_and_count(std::uint64_t turn) {
    ledger_.begun(task_.op);
    auto result = call_once(turn);
    metrics::FinishedRun run{task_.op, call_.algorithm->name, result.status.has_value() ? "succeeded" : "failed"};
    run.ranks = ranks_;
    run.bytes = task_.bytes();
    run.dtype = task_.dtype;
    run.statistics = result.statistics;
    ledger_.ended(run);
    return result;
  }

  engine::RunResult call_for_all(std::uint64_t) {
    list_.clear();
    for (auto& vectors : vectors_) list_.push_back({vectors.output(), task_.dtype});
    return fused_.run(task_.op, list_, ReduceOp::sum,
                      [this](std::uint64_t, Dtype) -> Result<CallOptions> { return call_; });
  }

  Status call(Batch& batch, Call how) {
    auto const turn = calls_++;
    if (overwrites_)
      for (auto& vectors : vectors_) std::ranges::copy(vectors.input(turn), vectors.output().begin());
    start_line_.wait();
    auto const begin = Clock::now();
    auto const result = (this->*how)(turn);
    auto const end = Clock::now();
    if (result.status.has_error()) return result.status.error();
    if (must_share_ && group_.path() != "shm")
      return Error(std::make_error_code(std::errc::not_supported), "no shared memory: " + group_.why_not_shared());
    batch.is_in_place = batch.is_in_place && place_.gpu != nullptr && was_in_place(result);
    batch.seconds.push_back(std::chrono::duration<double>(end - begin).count());
    // Ranks that check must not take cores from ranks that still add (a tenth of 1 MiB at p = 8 on two).
    start_line_.wait();
    if (place_.gpu == nullptr || turn % gpu_turns_per_check == 0) batch.right = batch.right && is_right(turn);
    return ok();
  }

  [[nodiscard]] bool is_right(std::uint64_t turn) const {
    return std::ranges::all_of(vectors_, [&](Vectors const& vectors) { return vectors.is_right(turn); });
  }

  // CPU time of one check, averaged over a few. Reading that clock is a system call, after which the processor has
  // forgotten the branches of a call of a few hundred nanoseconds: so it is not read between calls.
  [[nodiscard]] double check_seconds(Batch& batch) const {
    constexpr int few = 3;
    auto const before = cpu_seconds(CLOCK_THREAD_CPUTIME_ID);
    for (int i = 0; i < few; ++i) batch.right = is_right(calls_ - 1) && batch.right;
    return (cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - before) / few;
  }

  static bool was_in_place(engine::RunResult const& result) {
    auto const& gpu = result.trace->gpu;
    return gpu.in_bytes == 0 && gpu.out_bytes == 0;
  }

  Group& group_;
  Place const place_;
  bool const must_share_;
  std::string const link_without_shm_;
  StartLine& start_line_;
  plan::Rank const rank_;
  std::uint32_t const ranks_;
  CallOptions call_;
  Task task_;
  std::uint32_t const tensors_;
  bool const overwrites_;  // calls overwrite the vectors
  std::vector<Vectors> vectors_;
  engine::FusedCalls fused_;
  std::vector<engine::FusedTensor> list_;
  std::uint64_t calls_ = 0;
  metrics::RunLedger ledger_;
};

// The rank's GPU among the existing ones. Errors: GpuErrc::unavailable.
Result<devices::GpuUnit*> gpu_of(Options const& options, plan::Rank rank, devices::Gpus const& gpus) {
  auto const chosen = devices::parse_device(options.device);
  if (chosen.has_value()) return gpus.find(chosen->value());
  if (gpus.size() == 0) return Error(devices::GpuErrc::unavailable, gpus.why_none());
  return &gpus[rank % gpus.size()];
}

}  // namespace

int run_rank(Options const& options, plan::Rank rank, LineReader orders, LineWriter answers, StartLine start_line) {
  if (binds_ranks(options, start_line.ranks(), std::thread::hardware_concurrency())) stay_on_core(rank);
  std::optional<devices::Gpus> gpus;
  Place place;
  if (options.device != "cpu") {
    gpus.emplace(devices::find_gpus(), devices::GpuLimits{});
    auto const gpu = gpu_of(options, rank, *gpus);
    if (gpu.has_error()) {
      answers.put("failed " + gpu.error().detail);
      return 1;
    }
    place.gpu = *gpu;
  }
  std::optional<Worker> worker;
  try {
    worker.emplace(options, rank);
  } catch (UnexpectedError const& unusable) {
    answers.put("failed " + unusable.error.detail);
    return 1;
  }
  answers.put("url " + worker->url());
  std::istringstream peers(orders.next().value_or(""));
  std::string word;
  peers >> word;
  GroupMembership membership;
  membership.name = "bench";
  membership.rank = rank;
  for (plan::Rank r = 0; peers >> word; ++r)
    membership.members.push_back({r, "bench-" + std::to_string(r), r + 1, word});
  auto const ranks = static_cast<std::uint32_t>(membership.members.size());
  if (rank >= ranks) return 1;

  engine::PlanCache cache(64 << 20);
  memory::RegionRegistry regions;
  std::optional<memory::Arena> arena;
  if (may_share(options)) {
    memory::remove_abandoned();
    auto region = memory::SharedRegion::create(memory::random_ticket(arena_bytes));
    if (region.has_value()) arena.emplace(std::move(*region));
  }
  GroupMemory memory;
  memory.introduction = &algorithms::direct;
  memory.arena = arena ? &*arena : nullptr;
  memory.regions = &regions;
  memory.may_share = place.gpu == nullptr;
  place.arena = memory.arena;
  Group group(std::move(membership), worker->plane(), cache, memory);
  Bench bench(options, group, place, start_line, rank, ranks);
  while (auto const order = orders.next()) {
    if (*order == "end") return 0;
    auto const answer = bench.obey(std::istringstream(*order));
    answers.put(answer.has_value() ? *answer : "failed " + answer.error().detail);
    if (answer.has_error()) return 1;
  }
  return 1;
}

}  // namespace chorus::bench
