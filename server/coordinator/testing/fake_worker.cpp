#include "server/coordinator/testing/fake_worker.hpp"
#include "server/coordinator/journal/journal_file.hpp"

#include <spdlog/sinks/ostream_sink.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <stdexcept>

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
using http::Body;
using http::Request;
using http::Response;
using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds patience{5};

std::uint64_t run_of(Request const& request) {
  auto const& text = request.parameter("run");
  std::uint64_t run = 0;
  std::from_chars(text.data(), text.data() + text.size(), run);
  return run;
}

// One sequence per world, also over restarts, because ids of collectives are drawn, too.
Random counting() {
  return [next = std::make_shared<std::uint64_t>(100)] { return ++*next; };
}

}  // namespace

FakeWorker::FakeWorker(asio::any_io_executor executor, std::string name, std::uint64_t number)
    : id(std::move(name)), incarnation(number), changed_(executor), server_(executor, router_, {}, {}) {
  tensors["x"];
  router_.add(http::Method::get, "/livez", http::Access::open, handler(this, &FakeWorker::live));
  router_.add(http::Method::get, "/v1/tensors/{name}", http::Access::open, handler(this, &FakeWorker::look));
  router_.add(http::Method::put, "/v1/runs/{run}", http::Access::open, handler(this, &FakeWorker::run));
  router_.add(http::Method::get, "/v1/runs/{run}", http::Access::open, handler(this, &FakeWorker::status));
  router_.add(http::Method::delete_, "/v1/runs/{run}", http::Access::open, handler(this, &FakeWorker::drop));
  router_.add(http::Method::post, "/v1/runs/{run}/commit", http::Access::open, handler(this, &FakeWorker::commit));
  router_.add(http::Method::put, "/v1/groups/{name}", http::Access::open, handler(this, &FakeWorker::assign));
  router_.add(http::Method::post, "/v1/probes", http::Access::open, handler(this, &FakeWorker::measure));
  router_.add(http::Method::get, "/v1/parameters", http::Access::open, handler(this, &FakeWorker::list_shards));
  auto const* const shard = "/v1/parameters/{name}/shards/{shard}";
  router_.add(http::Method::get, shard, http::Access::open, handler(this, &FakeWorker::show_shard));
  router_.add(http::Method::put, shard, http::Access::open, handler(this, &FakeWorker::assign_shard));
  router_.add(http::Method::post, "/v1/shards", http::Access::open, handler(this, &FakeWorker::assign_shards));
  router_.add(http::Method::delete_, shard, http::Access::open, handler(this, &FakeWorker::drop_shard));
  router_.add(http::Method::get, "/v1/checkpoints/{name}", http::Access::open, handler(this, &FakeWorker::newest));
  port_ = server_.listen("127.0.0.1", 0).value();
}

bool FakeWorker::is_dropped(std::uint64_t number) const { return std::ranges::find(dropped, number) != dropped.end(); }

void FakeWorker::release() {
  released_ = runs.size();
  changed_.notify_all();
}

asio::awaitable<bool> FakeWorker::until_runs(std::size_t count) {
  auto const deadline = Clock::now() + patience;
  while (runs.size() < count && Clock::now() < deadline) co_await changed_.wait_until(deadline);
  co_return runs.size() >= count;
}

asio::awaitable<bool> FakeWorker::until_asked_to_measure(std::size_t count) {
  auto const deadline = Clock::now() + patience;
  while (asked_to_measure.size() < count && Clock::now() < deadline) co_await changed_.wait_until(deadline);
  co_return asked_to_measure.size() >= count;
}

void FakeWorker::hear() { changed_.notify_all(); }

asio::awaitable<Response> FakeWorker::measure(Request const&, Body& body) {
  auto const message = co_await read_message<api::ProbeRequest>(body);
  if (message.has_error()) co_return message.error();
  asked_to_measure.push_back(message.value().worker);
  changed_.notify_all();
  co_await while_set(&deaf_to_probes);
  auto const way = ways.find(message.value().worker);
  if (way == ways.end()) co_return http::Problem(http::ProblemCode::worker_unreachable, "nobody answers there");
  co_return Response::json(200, http::encode(way->second));
}

asio::awaitable<void> FakeWorker::die() {
  if (dead_) co_return;
  dead_ = true;
  co_await server_.stop();
}

asio::awaitable<void> FakeWorker::while_set(bool const* deaf) {
  while (*deaf) co_await changed_.wait_until(http::Condition::TimePoint::max());
}

asio::awaitable<Response> FakeWorker::live(Request const&, Body&) {
  ++probes;
  co_return Response::text(200, "ok\n");
}

asio::awaitable<Response> FakeWorker::look(Request const& request, Body&) {
  ++looks;
  co_await while_set(&deaf_to_heads);
  auto const found = tensors.find(request.parameter("name"));
  if (found == tensors.end()) co_return http::Problem(http::ProblemCode::unknown_tensor, "no such tensor");
  Response response(200);
  response.head_length = 16;
  response.fields.set("Tensor-Dtype", found->second.dtype);
  response.fields.set("Tensor-Shape", found->second.shape);
  response.fields.set("Tensor-Version", std::to_string(found->second.version));
  response.fields.set("Tensor-Device", found->second.device);
  co_return response;
}

asio::awaitable<Response> FakeWorker::run(Request const&, Body& body) {
  auto const message = co_await read_message<api::RunRequest>(body);
  if (message.has_error()) co_return message.error();
  auto const& order = message.value();
  auto const number = runs.size();
  runs.push_back(order);
  changed_.notify_all();
  co_await while_set(&deaf_to_runs);
  if (auto problem = refusal(order)) {
    refused.push_back(order);
    co_return *problem;
  }
  api::RunReport report{.run = order.run, .rank = order.rank, .worker = id, .state = "failed"};
  report.seconds = seconds;
  auto const deadline = Clock::now() + std::chrono::milliseconds(order.timeout_ms);
  while (hold_runs && number >= released_ && !is_dropped(order.run) && Clock::now() < deadline)
    co_await changed_.wait_until(deadline);
  if (fail_runs) {
    report.error = fail_runs;
  } else if (is_dropped(order.run)) {
    report.error = http::Problem(http::ProblemCode::cancelled, "aborted by the coordinator");
  } else if (Clock::now() >= deadline) {
    report.error = http::Problem(http::ProblemCode::deadline_exceeded, "no chunk came");
    report.error->ranks = waits_for;
  } else {
    report.state = "succeeded";
    report.output_digest = digest;
  }
  co_return Response::json(200, http::encode(report));
}

std::optional<http::Problem> FakeWorker::refusal(api::RunRequest const& order) const {
  if (order.op == "barrier" || order.result) return std::nullopt;
  auto const found = tensors.find(order.tensor);
  if (found == tensors.end()) return http::Problem(http::ProblemCode::unknown_tensor, "no such tensor");
  if (found->second.version == order.version) return std::nullopt;
  return http::Problem(http::ProblemCode::mismatch, "admitted was version " + std::to_string(order.version));
}

asio::awaitable<Response> FakeWorker::status(Request const& request, Body&) {
  if (refuse_looks) co_return *refuse_looks;
  auto const run = run_of(request);
  auto const order = std::ranges::find(runs, run, &api::RunRequest::run);
  if (order == runs.end()) co_return http::Problem(http::ProblemCode::unknown_run, "no such run");
  api::RunStatus status;
  status.run = run;
  auto const is_committed = std::ranges::find(committed, run) != committed.end();
  status.state = is_committed ? "committed" : is_dropped(run) ? "dropped" : "held";
  api::RunReport report;
  report.run = run;
  report.rank = order->rank;
  report.worker = id;
  report.state = "succeeded";
  report.version = tensors[order->tensor].version;
  status.report = report;
  co_return Response::json(200, http::encode(status));
}

asio::awaitable<Response> FakeWorker::commit(Request const& request, Body&) {
  if (refuse_commits) co_return *refuse_commits;
  auto const run = run_of(request);
  for (auto const& order : runs)
    if (order.run == run && repeats_commits && std::ranges::find(committed, run) != committed.end())
      co_return Response::json(200, http::encode(api::CommitAnswer{tensors[order.tensor].version}));
  for (auto const& order : runs)
    if (order.run == run && std::ranges::find(committed, run) == committed.end()) {
      committed.push_back(run);
      ++tensors[order.tensor].version;
      co_return Response::json(200, http::encode(api::CommitAnswer{tensors[order.tensor].version}));
    }
  co_return http::Problem(http::ProblemCode::unknown_run, "no such run");
}

asio::awaitable<Response> FakeWorker::drop(Request const& request, Body&) {
  co_await while_set(&deaf_to_runs);
  dropped.push_back(run_of(request));
  changed_.notify_all();
  co_return Response(204);
}

asio::awaitable<Response> FakeWorker::assign(Request const&, Body& body) {
  auto const message = co_await read_message<api::GroupAssignment>(body);
  if (message.has_error()) co_return message.error();
  auto const epoch = message.value().group.epoch;
  auto& epoch_seen = epochs_seen[message.value().group.name];
  if (epoch <= epoch_seen) {
    http::Problem problem(http::ProblemCode::epoch_fenced, "a later epoch was seen");
    problem.errors.push_back({"/group/epoch", std::to_string(epoch_seen)});
    co_return problem;
  }
  epoch_seen = epoch;
  assignments.push_back(message.value());
  co_return Response(204);
}

namespace {

api::ShardStatus status_of(api::ShardAssignment const& assignment, bool backups_are_complete, bool fills_backups) {
  api::ShardStatus status;
  status.parameter = assignment.parameter.name;
  status.shard = assignment.shard;
  status.begin = assignment.begin;
  status.end = assignment.end;
  status.epoch = assignment.epoch;
  status.role = assignment.role;
  status.complete = assignment.role == "owner" || backups_are_complete;
  if (fills_backups)
    for (auto const& backup : assignment.backups) status.backups_complete.push_back(backup.worker);
  return status;
}

std::pair<std::string, std::uint32_t> key_of(Request const& request) {
  auto const& text = request.parameter("shard");
  std::uint32_t shard = 0;
  std::from_chars(text.data(), text.data() + text.size(), shard);
  return {request.parameter("name"), shard};
}

}  // namespace

asio::awaitable<Response> FakeWorker::list_shards(Request const&, Body&) {
  co_await while_set(&deaf_to_shards);
  api::ShardStatusList list;
  for (auto const& [key, assignment] : shards) {
    list.items.push_back(status_of(assignment, !has_incomplete_backups, !fills_nobody));
    list.items.back().unconfirmed = is_unconfirmed && assignment.role == "owner";
  }
  co_return Response::json(200, http::encode(list));
}

asio::awaitable<Response> FakeWorker::show_shard(Request const& request, Body&) {
  auto const found = shards.find(key_of(request));
  if (found == shards.end()) co_return http::Problem(http::ProblemCode::unknown_parameter, "no such shard");
  co_return Response::json(200, http::encode(status_of(found->second, !has_incomplete_backups, !fills_nobody)));
}

asio::awaitable<Response> FakeWorker::assign_shard(Request const& request, Body& body) {
  auto const message = co_await read_message<api::ShardAssignment>(body);
  if (message.has_error()) co_return message.error();
  co_await while_set(&deaf_to_shards);
  co_await while_set(&is_slow_with_shards);
  if (has_lost_shards && message.value().role == "owner")
    co_return http::Problem(http::ProblemCode::parameter_lost, "this worker does not have it");
  if (has_no_gpu && message.value().parameter.device == "cuda")
    co_return http::Problem(http::ProblemCode::unsupported, "cuda: no GPU here");
  if (why_no_log && message.value().parameter.durability == "log" && message.value().role == "owner") {
    ++log_refusals;
    co_return *why_no_log;
  }
  shards[key_of(request)] = message.value();
  is_unconfirmed = false;
  changed_.notify_all();
  co_await while_set(&takes_shards_silently);
  co_return Response(204);
}

asio::awaitable<Response> FakeWorker::assign_shards(Request const&, Body& body) {
  if (takes_one_at_a_time) co_return http::Problem(http::ProblemCode::not_found, "no such route");
  auto const list = co_await read_message<api::ShardAssignmentList>(body);
  if (list.has_error()) co_return list.error();
  co_await while_set(&deaf_to_shards);
  api::ShardAssignmentOutcomeList outcomes;
  for (auto const& assignment : list.value().items) shards[{assignment.parameter.name, assignment.shard}] = assignment;
  is_unconfirmed = false;
  changed_.notify_all();
  co_await while_set(&takes_shards_silently);
  outcomes.items.resize(list.value().items.size());
  orders_at_a_time.push_back(outcomes.items.size());
  co_return Response::json(200, http::encode(outcomes));
}

asio::awaitable<Response> FakeWorker::drop_shard(Request const& request, Body&) {
  co_await while_set(&deaf_to_shards);
  ++drops;
  auto const epoch = request.query_number("epoch", UINT32_MAX);
  auto const found = shards.find(key_of(request));
  if (found == shards.end()) co_return http::Problem(http::ProblemCode::unknown_parameter, "no such shard");
  if (epoch.value().value_or(UINT32_MAX) < found->second.epoch)
    co_return http::Problem(http::ProblemCode::epoch_fenced, "it has been placed here again");
  shards.erase(found);
  co_return Response(204);
}

asio::awaitable<Response> FakeWorker::newest(Request const&, Body&) {
  co_return Response::json(200, http::encode(api::CheckpointNumber{newest_checkpoint}));
}

CoordinatorOptions impatient_options() {
  CoordinatorOptions options;
  options.execution.report = std::chrono::milliseconds(100);
  options.execution.abort = std::chrono::milliseconds(300);
  options.cluster.assignment = std::chrono::milliseconds(500);
  return options;
}

World::World(std::size_t count, CoordinatorOptions options, std::string journal)
    : options_(std::move(options)), journal_(std::move(journal)), random_(counting()), client_(io.get_executor()) {
  for (std::size_t i = 0; i < count; ++i)
    workers.push_back(std::make_unique<FakeWorker>(io.get_executor(), "w" + std::to_string(i)));
  begin();
}

void World::begin() {
  auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(log);
  auto logger = std::make_shared<spdlog::logger>("test", std::move(sink));
  auto file = journal_.empty() ? nullptr : JournalFile::open(journal_).value();
  coordinator = std::make_unique<Coordinator>(io.get_executor(), options_, std::move(file), random_, std::move(logger));
  port_ = coordinator->start("127.0.0.1", 0).value();
  url_ = "http://127.0.0.1:" + std::to_string(port_);
}

std::string World::Said::text(std::string const& pointer) const {
  boost::system::error_code missing;
  auto const* value = json.find_pointer(pointer, missing);
  if (value == nullptr) return "";
  return value->is_string() ? std::string(value->as_string()) : boost::json::serialize(*value);
}

asio::awaitable<World::Said> World::call(http::Method method, std::string path, std::string body, http::Fields fields) {
  http::Call call;
  call.method = method;
  call.url = url_ + path;
  call.body = std::move(body);
  call.fields = std::move(fields);
  auto const answer = co_await client_.send(std::move(call), Clock::now() + 2 * patience);
  if (answer.has_error()) throw std::runtime_error(answer.error().detail);
  boost::system::error_code not_json;
  co_return Said{answer.value().status, answer.value().fields, boost::json::parse(answer.value().body, not_json),
                 answer.value().body};
}

asio::awaitable<World::Said> World::join_as(FakeWorker& worker) {
  auto const self = api::to_hex(worker.incarnation);
  api::JoinRequest request{worker.id, self, worker.url(), worker.locality, worker.version, worker.gpus, worker.term};
  co_return co_await post("/v1/workers", http::encode(request));
}

asio::awaitable<void> World::stand() {
  for (std::size_t i = 0; i < workers.size(); ++i)
    if ((co_await join(i)).status != 201) throw std::runtime_error("a worker could not join");
  auto const group = co_await put("/v1/groups/g", R"({"size":)" + std::to_string(workers.size()) + "}");
  if (group.status != 201) throw std::runtime_error("no group: " + group.body);
}

asio::awaitable<void> World::restart() {
  co_await restart_after([] {});
}

asio::awaitable<void> World::restart_after(std::function<void()> nobody_is_there) {
  co_await coordinator->stop(Clock::now());
  coordinator.reset();
  nobody_is_there();
  begin();
}

asio::awaitable<bool> World::until(std::string path, std::string pointer, std::string value) {
  for (auto const deadline = Clock::now() + patience; Clock::now() < deadline;)
    if ((co_await get(path)).text(pointer) == value) co_return true;
  co_return false;
}

asio::awaitable<void> World::live(asio::awaitable<void> story) {
  std::exception_ptr failure;
  try {
    co_await std::move(story);
  } catch (...) { failure = std::current_exception(); }
  co_await coordinator->stop(Clock::now());
  for (auto const& worker : workers) co_await worker->die();
  client_.close();
  if (failure) std::rethrow_exception(failure);
}

void World::tell(asio::awaitable<void> story) {
  std::exception_ptr failure;
  asio::co_spawn(io, live(std::move(story)), [&failure](std::exception_ptr thrown) { failure = thrown; });
  io.run();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace chorus::coordinator
