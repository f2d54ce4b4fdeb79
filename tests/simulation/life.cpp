#include "tests/simulation/life.hpp"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <cstring>
#include <filesystem>

namespace chorus::simulation {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using asio::awaitable;
using namespace std::chrono_literals;

constexpr std::uint16_t first_worker_port = 7100;
constexpr Duration time_to_recover = 90s;
constexpr std::size_t etcd_members = 2;

std::vector<std::string> coordinator_urls(std::size_t count) {
  std::vector<std::string> urls;
  for (std::size_t i = 0; i < count; ++i) urls.push_back("http://127.0.0.1:" + std::to_string(coordinator_port + i));
  return urls;
}

}  // namespace

std::string bytes_of(float value, std::size_t elements) {
  std::string bytes(elements * sizeof value, '\0');
  for (std::size_t i = 0; i < elements; ++i) std::memcpy(bytes.data() + i * sizeof value, &value, sizeof value);
  return bytes;
}

Life::Life(std::uint64_t seed, std::size_t coordinators, std::string directory, std::shared_ptr<spdlog::logger> log)
    : random_(seed),
      directory_(std::move(directory)),
      log_(std::move(log)),
      machine_(seed),
      shrinks_(one_in(2)),
      elements_(1 + below(one_in(4) ? 60000 : 500)),
      coordinators_(coordinators),
      seats_(2 + below(4)) {
  machine_.add(client_host_);
  machine_.run_as(client_host_, [this] {
    client_ = std::make_unique<http::Client>(client_host_.io.get_executor());
    if (coordinators_.size() > 1) client_->take_turns(coordinator_urls(coordinators_.size()));
  });
  if (coordinators > 1) {
    etcd_ = std::make_unique<EtcdCluster>("/chorus/default/");
    etcd_members_.resize(etcd_members);
    for (std::size_t i = 0; i < etcd_members_.size(); ++i) start_etcd(i);
  }
  for (std::size_t i = 0; i < coordinators_.size(); ++i) start_coordinator(i);
  for (std::size_t i = 0; i < seats_.size(); ++i) start_worker(i);
}

Life::~Life() = default;

void Life::start_coordinator(std::size_t index) {
  auto const process = std::make_shared<CoordinatorProcess>("coordinator" + std::to_string(index));
  machine_.add(process->host);
  CoordinatorOf const of{process->host, static_cast<std::uint16_t>(coordinator_port + index),
                         [this] { return ++drawn_ * 0x9e3779b97f4a7c15; }, log_};
  machine_.run_as(process->host, [&] {
    auto service =
        etcd_ ? start_with_etcd(of, etcd_urls(),
                                [this, index, raw = process.get()] {
                                  machine_.at(machine_.now(), [this, index, raw] { coordinator_ended(index, raw); });
                                })
              : start_with_journal(of, directory_ + "/journal" + std::to_string(journals_));
    if (service)
      process->service = std::move(*service);
    else
      broken("a coordinator does not start: " + service.error().detail);
  });
  coordinators_[index] = process;
}

// What was on the disk when it died is what the next one finds.
void Life::kill_coordinator(std::size_t index) {
  if (!etcd_) {
    auto const old_path = directory_ + "/journal" + std::to_string(journals_);
    auto const new_path = directory_ + "/journal" + std::to_string(++journals_);
    for (auto const* const part : {"", "-wal"})
      if (std::filesystem::exists(old_path + part)) std::filesystem::copy_file(old_path + part, new_path + part);
  }
  reap(std::exchange(coordinators_[index], nullptr));
}

void Life::start_worker(std::size_t index) {
  auto& seat = seats_[index];
  auto const process = std::make_shared<WorkerProcess>("w" + std::to_string(index));
  machine_.add(process->host);
  service::WorkerOptions options;
  options.port = static_cast<std::uint16_t>(first_worker_port + index);
  for (auto const& url : coordinator_urls(coordinators_.size()))
    options.coordinator += (options.coordinator.empty() ? "" : ",") + url;
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
  seat.is_y_known = true;
}

void Life::kill_worker(std::size_t index) { reap(std::exchange(seats_[index].process, nullptr)); }

template <class P>
void Life::bury(P& process) {
  auto& blocking = process.host.blocking;
  if (blocking) {
    if (!blocking->is_idle()) return;
    // The thread may have told its service how its last work ended.
    process.host.io.restart();
    process.host.io.poll();
  }
  process.service.reset();
  blocking.reset();
}

template <class P>
void Life::reap(std::shared_ptr<P> process) {
  machine_.sever(process->host);
  machine_.go_on(process->host);
  machine_.run_as(process->host, [&] {
    auto stop = [&] {
      if constexpr (std::is_same_v<P, CoordinatorProcess>)
        return process->service->stop(machine_.now());
      else
        return process->service->stop();
    };
    asio::co_spawn(process->host.io, stop(), [raw = process.get()](std::exception_ptr) { raw->has_ended = true; });
  });
  graves_.push_back([this, process] {
    if (process->has_ended && process->service) machine_.run_as(process->host, [&] { bury(*process); });
    return process->service == nullptr;
  });
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
  if (etcd_) {
    tally_.fenced = etcd_->fenced;
    tally_.terms = etcd_->terms;
    if (!etcd_->broken.empty()) broken(etcd_->broken);
  }
  // Everybody goes home. A broken promise is said; that a process does not end either would hide it.
  goes_home_ = true;
  end_all_faults();
  for (auto& seat : seats_) reap(std::exchange(seat.process, nullptr));
  for (auto& coordinator : coordinators_) reap(std::exchange(coordinator, nullptr));
  for (auto& member : etcd_members_) reap(std::exchange(member, nullptr));
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
  if (answer.has_error()) {
    said.body = answer.error().detail;
    co_return said;
  }
  said.status = answer->status;
  if (said.status == 503 && etcd_ && etcd_->leader().empty()) ++tally_.refusals;
  said.body = answer->body;
  if (auto const version = answer->fields.find("Tensor-Version")) said.version = *version;
  said.is_unconfirmed = answer->fields.find("Parameter-Unconfirmed").has_value();
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
    note_epoch(answer);
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

void Life::tell_beside(char const* name, awaitable<void> story) {
  ++stories_beside_;
  asio::co_spawn(client_host_.io, std::move(story), [this, name](std::exception_ptr failure) {
    if (failure) broken("the story of " + std::string(name) + " ended with an exception");
    --stories_beside_;
    story_ended_.notify_all();
  });
}

awaitable<void> Life::story() {
  tell_beside("the parameter", keep_a_parameter());
  tell_beside("events", follow_events());
  co_await launch_on();
  has_launched_ = true;
  while (stories_beside_ > 0 && broken_.empty()) co_await story_ended_.wait_until(TimePoint::max());
  if (broken_.empty()) co_await check_launches();
  if (broken_.empty()) co_await check_events();
}

awaitable<void> Life::launch_on() {
  for (int number = 0; !faults_are_over_ && broken_.empty(); ++number) {
    co_await stand();
    co_await bring_tensors();
    for (int i = 0; !faults_are_over_ && broken_.empty(); ++i) {
      auto const id = "c" + std::to_string(number) + "-" + std::to_string(i);
      bool const good = co_await launch(id, false);
      if (!good) break;
      if (one_in(3)) static_cast<void>(co_await call_as_members());
      co_await pause(1ms * static_cast<Duration::rep>(below(500)));
    }
  }
  // Whatever has happened: everybody is in again, and it works.
  auto const until = machine_.now() + time_to_recover;
  for (int attempt = 0; machine_.now() < until && broken_.empty(); ++attempt) {
    co_await stand();
    co_await bring_tensors();
    bool const good = co_await launch("last-" + std::to_string(attempt), true);
    bool members_too = false;
    if (good) members_too = co_await call_as_members();
    if (members_too) co_return;
    co_await pause(200ms);
  }
  broken("no collective, or no call of members, succeeds after all faults are over");
}

}  // namespace chorus::simulation
