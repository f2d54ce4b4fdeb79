#include "tests/simulation/life.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>
#include <cstring>
#include <filesystem>

namespace chorus::simulation {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using asio::awaitable;
using namespace std::chrono_literals;

constexpr std::uint16_t coordinator_port = 7070;
constexpr std::uint16_t first_worker_port = 7100;
constexpr Duration time_of_faults = 20s;
constexpr Duration time_to_recover = 90s;
std::string const coordinator_url = "http://127.0.0.1:" + std::to_string(coordinator_port);

// Brought by worker i: a sum tells who took part.
float contribution(std::size_t index) { return static_cast<float>(1U << index); }

std::string bytes_of(float value, std::size_t elements) {
  std::string bytes(elements * sizeof value, '\0');
  for (std::size_t i = 0; i < elements; ++i) std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  return bytes;
}

// 0: of a tensor that is not there.
std::uint64_t version_in(std::string const& text) {
  std::uint64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

std::size_t index_of(std::string_view worker) { return static_cast<std::size_t>(worker.at(1) - '0'); }

}  // namespace

Life::Life(std::uint64_t seed, std::string directory, std::shared_ptr<spdlog::logger> log)
    : random_(seed),
      directory_(std::move(directory)),
      log_(std::move(log)),
      machine_(seed),
      shrinks_(one_in(2)),
      elements_(1 + below(one_in(4) ? 60000 : 500)),
      seats_(2 + below(4)) {
  machine_.add(client_host_);
  machine_.run_as(client_host_, [this] { client_ = std::make_unique<http::Client>(client_host_.io.get_executor()); });
  start_coordinator();
  for (std::size_t i = 0; i < seats_.size(); ++i) start_worker(i);
}

Life::~Life() = default;

void Life::start_coordinator() {
  auto const process = std::make_shared<CoordinatorProcess>("coordinator");
  machine_.add(process->host);
  coordinator::CoordinatorOptions options;
  options.lease = 2s;
  options.has_threads = false;
  auto const path = directory_ + "/journal" + std::to_string(journals_);
  machine_.run_as(process->host, [&] {
    process->service = std::make_unique<coordinator::Coordinator>(
        process->host.io.get_executor(), options, coordinator::JournalFile::open(path).value(),
        [this] { return ++drawn_ * 0x9e3779b97f4a7c15; }, log_);
    auto const port = process->service->start("127.0.0.1", coordinator_port);
    if (!port) broken("the coordinator does not start: " + port.error().detail);
  });
  coordinator_ = process;
}

// What was on the disk when it died is what the next one finds.
void Life::kill_coordinator() {
  auto const old_path = directory_ + "/journal" + std::to_string(journals_);
  auto const new_path = directory_ + "/journal" + std::to_string(++journals_);
  for (auto const* const part : {"", "-wal"})
    if (std::filesystem::exists(old_path + part)) std::filesystem::copy_file(old_path + part, new_path + part);
  bury(std::exchange(coordinator_, nullptr));
}

void Life::start_worker(std::size_t index) {
  auto& seat = seats_[index];
  auto const process = std::make_shared<WorkerProcess>("w" + std::to_string(index));
  machine_.add(process->host);
  service::WorkerOptions options;
  options.port = static_cast<std::uint16_t>(first_worker_port + index);
  options.coordinator = coordinator_url;
  options.id = process->host.name;
  options.locality.host = "h" + std::to_string(index);
  options.shares_memory = false;
  options.memory_limit_bytes = 64 << 20;
  options.drain_timeout = 0ms;
  options.host_name = "localhost";
  options.incarnation = 1000 * (index + 1) + ++seat.lives;
  options.has_threads = false;
  machine_.run_as(process->host, [&] {
    process->service = std::make_unique<service::Worker>(
        process->host.io, options, devices::FoundGpus{{}, "a simulation has none"}, log_, [](std::string const&) {});
    if (auto const opened = process->service->open(); !opened)
      broken("a worker does not start: " + opened.error().detail);
  });
  seat.process = process;
  seat.y_version = 0;
}

void Life::kill_worker(std::size_t index) { bury(std::exchange(seats_[index].process, nullptr)); }

template <class P>
void Life::bury(std::shared_ptr<P> process) {
  machine_.sever(process->host);
  machine_.go_on(process->host);
  machine_.run_as(process->host, [&] {
    auto stop = [&] {
      if constexpr (std::is_same_v<P, WorkerProcess>)
        return process->service->stop();
      else
        return process->service->stop(machine_.now());
    };
    asio::co_spawn(process->host.io, stop(), [raw = process.get()](std::exception_ptr) { raw->has_ended = true; });
  });
  graves_.push_back([this, process] {
    if (process->has_ended && process->service) machine_.run_as(process->host, [&] { process->service.reset(); });
    return process->has_ended;
  });
}

Host* Life::some_host() {
  auto const which = below(seats_.size() + 1);
  if (which == seats_.size()) return coordinator_ ? &coordinator_->host : nullptr;
  auto const& process = seats_[which].process;
  return process ? &process->host : nullptr;
}

void Life::plan_faults() {
  auto const begin = machine_.now();
  auto const count = one_in(6) ? 0 : 1 + below(12);
  for (std::uint64_t i = 0; i < count; ++i)
    machine_.at(begin + time_of_faults / 1000 * static_cast<Duration::rep>(below(1000)), [this] { fault(); });
  machine_.at(begin + time_of_faults, [this] { end_all_faults(); });
}

void Life::fault() {
  ++tally_.faults;
  auto const index = below(seats_.size());
  auto const later = machine_.now() + 1ms * static_cast<Duration::rep>(1 + below(6000));
  auto* const a = some_host();
  auto* const b = some_host();
  switch (below(7)) {
    case 0:
      if (!seats_[index].process) return;
      kill_worker(index);
      machine_.at(later, [this, index] {
        if (!faults_are_over_ && !seats_[index].process) start_worker(index);
      });
      return;
    case 1:
      if (!coordinator_) return;
      kill_coordinator();
      machine_.at(later, [this] {
        if (!faults_are_over_ && !coordinator_) start_coordinator();
      });
      return;
    case 2:
      if (a == nullptr) return;
      machine_.stop(*a);
      machine_.at(later, [this, a] { machine_.go_on(*a); });
      return;
    case 3:
    case 4:
      if (a == nullptr || b == nullptr || a == b) return;
      machine_.part(*a, *b, one_in(3));
      machine_.at(later, [this] { machine_.heal(); });
      return;
    case 5:
      if (a == nullptr || b == nullptr || a == b) return;
      machine_.cut_connections(*a, *b);
      return;
    default:
      machine_.delay(0ms, 1ms * static_cast<Duration::rep>(below(400)));
      machine_.at(later, [this] { machine_.delay(20us, 200us); });
  }
}

void Life::end_all_faults() {
  faults_are_over_ = true;
  machine_.heal();
  machine_.delay(20us, 200us);
  if (!coordinator_) start_coordinator();
  machine_.go_on(coordinator_->host);
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    if (!seats_[i].process) start_worker(i);
    machine_.go_on(seats_[i].process->host);
  }
}

std::string Life::live() {
  plan_faults();
  machine_.run_as(client_host_, [this] {
    asio::co_spawn(client_host_.io, story(), [this](std::exception_ptr failure) {
      if (failure) broken("the story ended with an exception");
      told_ = true;
    });
  });
  machine_.run(machine_.now() + time_of_faults + 2 * time_to_recover, [this] { return told_ || !broken_.empty(); });
  if (!told_) broken("nothing happens any more, or too slowly");
  // Everybody goes home. A broken promise is said; that a process does not end either would hide it.
  end_all_faults();
  for (auto& seat : seats_) bury(std::exchange(seat.process, nullptr));
  bury(std::exchange(coordinator_, nullptr));
  machine_.run_as(client_host_, [this] { client_->close(); });
  auto const all_ended = [this] {
    return std::ranges::count_if(graves_, [](auto const& has_ended) { return !has_ended(); }) == 0;
  };
  machine_.run(machine_.now() + time_to_recover, [&] { return all_ended() && told_; });
  if (!all_ended()) broken("a process does not end");
  return broken_;
}

std::string Life::worker_url(std::size_t index) const {
  return "http://127.0.0.1:" + std::to_string(first_worker_port + index);
}

std::string Life::Said::text(std::string_view pointer) const {
  boost::system::error_code missing;
  auto const* value = json.find_pointer(pointer, missing);
  if (value == nullptr) return "";
  return value->is_string() ? std::string(value->as_string()) : json::serialize(*value);
}

awaitable<Life::Said> Life::ask(http::Method method, std::string url, std::string body, Duration patience,
                                http::Fields fields) {
  http::Call call;
  call.method = method;
  call.url = std::move(url);
  call.body = std::move(body);
  call.fields = std::move(fields);
  auto const answer = co_await client_->send(std::move(call), machine_.now() + patience);
  Said said;
  if (answer.has_error()) co_return said;
  said.status = answer->status;
  said.body = answer->body;
  if (auto const version = answer->fields.find("Tensor-Version")) said.version = *version;
  boost::system::error_code not_json;
  said.json = json::parse(said.body, not_json);
  co_return said;
}

awaitable<void> Life::pause(Duration time) {
  asio::steady_timer timer(client_host_.io, time);
  co_await timer.async_wait(asio::use_awaitable);
}

std::string Life::group_body() const {
  json::array workers;
  for (std::size_t i = 0; i < seats_.size(); ++i) workers.emplace_back("w" + std::to_string(i));
  json::object body{{"workers", std::move(workers)}};
  if (shrinks_) body["on_failure"] = "shrink";
  return json::serialize(body);
}

// The group of all workers; while there are faults, as far as it gets.
awaitable<void> Life::stand() {
  auto const until = machine_.now() + time_to_recover;
  while (machine_.now() < until) {
    auto const answer = co_await ask(http::Method::put, coordinator_url + "/v1/groups/g", group_body(), 10s);
    auto const members = answer.json.is_object() && answer.json.as_object().contains("members")
                             ? answer.json.at("members").as_array().size()
                             : 0;
    auto const is_enough = members == seats_.size() || (members > 0 && shrinks_ && !faults_are_over_);
    if ((answer.status == 200 || answer.status == 201) && is_enough) co_return;
    co_await pause(50ms);
  }
  auto const answer = co_await ask(http::Method::put, coordinator_url + "/v1/groups/g", group_body(), 10s);
  broken("the group does not stand: " + answer.body);
}

awaitable<void> Life::bring_tensors() {
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    http::Fields fields;
    fields.set("Content-Type", "application/octet-stream");
    fields.set("Tensor-Dtype", "f32");
    fields.set("Tensor-Shape", std::to_string(elements_));
    static_cast<void>(co_await ask(http::Method::put, worker_url(i) + "/v1/tensors/x",
                                   bytes_of(contribution(i), elements_), 2s, std::move(fields)));
  }
}

// Asks until the collective has ended: nobody launches it twice, whatever became of the answers.
awaitable<bool> Life::launch(std::string id, bool must_succeed) {
  static constexpr std::array algorithms{"auto", "ring",        "tree",       "halving_doubling", "recursive_doubling",
                                         "mesh", "centralized", "double_tree"};
  json::object body{
      {"group", "g"}, {"tensor", "x"}, {"output", "y"}, {"algorithm", algorithms[below(algorithms.size())]}};
  if (!one_in(3)) body["timeout_ms"] = 500 + below(6000);
  auto const text = json::serialize(body);
  auto const until = machine_.now() + time_to_recover;
  ++tally_.collectives;
  while (machine_.now() < until) {
    auto const answer =
        co_await ask(http::Method::put, coordinator_url + "/v1/collectives/" + id + "?wait=10s", text, 12s);
    auto const state = answer.text("/state");
    if (state == "succeeded") {
      ++tally_.succeeded;
      co_await check_result(answer.json);
      co_return true;
    }
    if (state == "failed" || state == "cancelled") {
      if (must_succeed) log_->info("{}", answer.body);
      co_await check_nothing_moved(answer.json);
      co_return false;
    }
    // Refused before anything was launched.
    if (answer.status >= 400 && answer.status < 500) co_return false;
    co_await pause(50ms);
  }
  broken("collective " + id + " has no end");
  co_return false;
}

// Every rank that still lives has the sum of exactly the ranks of the record.
awaitable<void> Life::check_result(json::value record) {
  auto const& ranks = record.at("ranks").as_array();
  float sum = 0;
  for (auto const& rank : ranks) sum += contribution(index_of(rank.at("worker").as_string()));
  auto const expected = bytes_of(sum, elements_);
  for (auto const& rank : ranks) {
    auto const index = index_of(rank.at("worker").as_string());
    auto const lives = seats_[index].lives;
    auto const tensor = co_await ask(http::Method::get, worker_url(index) + "/v1/tensors/y", "", 2s);
    if (tensor.status != 200 || lives != seats_[index].lives || !seats_[index].process) continue;
    auto const version = json::serialize(rank.at("report").at("version"));
    if (tensor.version != version)
      broken("w" + std::to_string(index) + " is at version " + tensor.version + " instead of " + version);
    else if (tensor.body != expected)
      broken("w" + std::to_string(index) + " has a wrong sum after " + record.at("id").as_string().c_str());
    seats_[index].y_version = version_in(tensor.version);
  }
}

// Unless a member was lost while the others committed, which the problem says.
awaitable<void> Life::check_nothing_moved(json::value record) {
  auto const text = json::serialize(record.at("error"));
  auto const was_committing = text.find("commit") != std::string::npos;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    auto const lives = seats_[i].lives;
    auto const tensor = co_await ask(http::Method::get, worker_url(i) + "/v1/tensors/y", "", 2s);
    if ((tensor.status != 200 && tensor.status != 404) || lives != seats_[i].lives || !seats_[i].process) continue;
    auto const version = version_in(tensor.version);
    if (version != seats_[i].y_version && !was_committing)
      broken("w" + std::to_string(i) + " moved to version " + tensor.version + " by a collective that failed: " + text);
    seats_[i].y_version = version;
  }
}

awaitable<void> Life::story() {
  for (int number = 0; !faults_are_over_ && broken_.empty(); ++number) {
    co_await stand();
    co_await bring_tensors();
    for (int i = 0; !faults_are_over_ && broken_.empty(); ++i) {
      auto const id = "c" + std::to_string(number) + "-" + std::to_string(i);
      bool const good = co_await launch(id, false);
      if (!good) break;
      co_await pause(1ms * static_cast<Duration::rep>(below(500)));
    }
  }
  // Whatever has happened: everybody is in again, and it works.
  auto const until = machine_.now() + time_to_recover;
  for (int attempt = 0; machine_.now() < until && broken_.empty(); ++attempt) {
    co_await stand();
    co_await bring_tensors();
    bool const good = co_await launch("last-" + std::to_string(attempt), true);
    if (good) co_return;
    co_await pause(200ms);
  }
  broken("no collective succeeds after all faults are over");
}

}  // namespace chorus::simulation
