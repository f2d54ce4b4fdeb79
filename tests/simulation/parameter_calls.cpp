// A parameter with two copies: clients push and pull through any worker, and repeat each push until it is acknowledged.
// Each acknowledged push counts once, and no reader sees less than was acknowledged before its request. Only the kill
// of the only complete copy may lose the parameter.
#include <boost/asio/co_spawn.hpp>
#include <boost/json/serialize.hpp>
#include <cstring>
#include <numeric>

#include "tests/simulation/life.hpp"

namespace chorus::simulation {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using asio::awaitable;
using namespace std::chrono_literals;

constexpr std::size_t parameter_elements = 101;  // three shards, each with elements of all clients
constexpr Duration time_to_settle = 90s;
constexpr Duration lease = 2s;

// Element i counts the pushes of client i mod 2.
std::string push_of(std::size_t client) {
  std::vector<float> ones(parameter_elements);
  for (std::size_t i = client; i < ones.size(); i += Life::parameter_clients) ones[i] = 1;
  std::string bytes(ones.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), ones.data(), bytes.size());
  return bytes;
}

}  // namespace

// If the parameter was not ready, the killed worker may have had its only copy.
void Life::note_kill() {
  constexpr Duration between_looks = 500ms;
  if (!pushes_) return;
  auto const now = machine_.now();
  if (now < trouble_until_ || now > pushes_->ready_at + between_looks) pushes_->may_be_lost = true;
}

// A fault that lasts until then; its effects are repaired somewhat later.
void Life::note_trouble(TimePoint until) { trouble_until_ = std::max(trouble_until_, until + 2 * lease); }

awaitable<void> Life::keep_a_parameter() {
  for (int making = 0; broken_.empty(); ++making) {
    auto const pushes = std::make_shared<Pushes>(client_host_.io.get_executor(), "p" + std::to_string(making));
    bool const is_made = co_await make_parameter(pushes->name);
    if (!is_made) break;
    pushes_ = pushes;
    pushes->ready_at = machine_.now();
    auto const begin = [&](awaitable<void> story) {
      ++pushes->pending;
      asio::co_spawn(client_host_.io, std::move(story), [this, pushes](std::exception_ptr failure) {
        if (failure) broken("a client of a parameter ended with an exception");
        --pushes->pending;
        pushes->ended.notify_all();
      });
    };
    for (std::size_t client = 0; client < parameter_clients; ++client) begin(push_on(pushes, client));
    begin(pull_on(pushes));
    begin(watch(pushes));
    while (pushes->pending > 0) co_await pushes->ended.wait_until(TimePoint::max());
    pushes_ = nullptr;
    if (!pushes->is_lost) {
      co_await check_parameter(pushes);
      break;
    }
    ++tally_.losses;
  }
}

awaitable<bool> Life::make_parameter(std::string name) {
  json::object request{{"group", "g"}, {"shape", {parameter_elements}}, {"replicas", 2}, {"shards", 3}};
  auto const body = json::serialize(request);
  Said answer;
  for (std::optional<TimePoint> until; !until || machine_.now() < *until;) {
    answer = co_await ask(http::Method::put, coordinator_url + "/v1/parameters/" + name, body, 10s);
    if (answer.status == 200 || answer.status == 201) co_return true;
    if (faults_are_over_ && !until) until = machine_.now() + time_to_settle;
    co_await pause(50ms);
  }
  broken("no parameter is made: " + answer.body);
  co_return false;
}

// Pushes until all faults are over; the last push begins after their end.
awaitable<void> Life::push_on(std::shared_ptr<Pushes> pushes, std::size_t client) {
  auto const bytes = push_of(client);
  for (bool is_last = false; !is_last && broken_.empty();
       co_await pause(1ms * static_cast<Duration::rep>(below(200)))) {
    is_last = faults_are_over_;
    auto const sequence = pushes->begun[client]++;
    std::optional<TimePoint> until;
    for (Said answer; answer.status != 200;) {
      if (faults_are_over_ && !until) until = machine_.now() + time_to_settle;
      if (until && machine_.now() > *until)
        broken("push " + std::to_string(sequence) + " of " + pushes->name + " is not taken: " + answer.body);
      if (!broken_.empty() || pushes->is_lost) co_return;
      http::Fields fields;
      fields.set("Content-Type", "application/octet-stream");
      fields.set("Chorus-Client", "c" + std::to_string(client));
      fields.set("Chorus-Sequence", std::to_string(sequence));
      auto const url = worker_url(below(seats_.size())) + "/v1/parameters/" + pushes->name + "/gradient";
      auto const patience = 1ms * static_cast<Duration::rep>(1 + below(one_in(3) ? 20 : 4000));
      answer = co_await ask(http::Method::post, url, bytes, patience, std::move(fields));
      if (answer.status != 200) co_await pause(1ms * static_cast<Duration::rep>(1 + below(100)));
    }
    ++pushes->acknowledged[client];
    ++tally_.pushes;
  }
}

std::string Life::Pushes::wrong(std::string const& bytes, Counts const& least, Counts const& most) const {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  if (values.size() != parameter_elements) return name + " has " + std::to_string(values.size()) + " elements";
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto const client = i % parameter_clients;
    if (values[i] < static_cast<float>(least[client]) || values[i] > static_cast<float>(most[client]))
      return "element " + std::to_string(i) + " of " + name + " is " + std::to_string(values[i]) + ", expected " +
             std::to_string(least[client]) + " to " + std::to_string(most[client]);
  }
  return "";
}

awaitable<void> Life::pull_on(std::shared_ptr<Pushes> pushes) {
  while (!faults_are_over_ && !pushes->is_lost && broken_.empty()) {
    auto const least = pushes->acknowledged;
    auto const url = worker_url(below(seats_.size())) + "/v1/parameters/" + pushes->name + "/value";
    auto const answer = co_await ask(http::Method::get, url, "", 2s);
    if (answer.status == 200 && !answer.is_unconfirmed) {
      ++tally_.pulls;
      if (auto wrong = pushes->wrong(answer.body, least, pushes->begun); !wrong.empty()) broken(std::move(wrong));
    }
    co_await pause(1ms * static_cast<Duration::rep>(1 + below(200)));
  }
}

awaitable<void> Life::watch(std::shared_ptr<Pushes> pushes) {
  auto const is_over = [&] { return faults_are_over_ && pushes->pending == 1; };
  while (!pushes->is_lost && !is_over() && broken_.empty()) {
    auto const asked = machine_.now();
    auto const answer = co_await ask(http::Method::get, coordinator_url + "/v1/parameters/" + pushes->name, "", 2s);
    auto const state = answer.text("/state");
    if (state == "ready") pushes->ready_at = asked;
    pushes->is_lost = state == "lost";
    if (pushes->is_lost && !pushes->may_be_lost) broken(answer.text("/why") + ", though there always was another copy");
    co_await pause(100ms);
  }
}

// Call after the end of all faults and clients.
awaitable<void> Life::check_parameter(std::shared_ptr<Pushes> pushes) {
  auto const until = machine_.now() + time_to_settle;
  auto const url = coordinator_url + "/v1/parameters/" + pushes->name;
  Said shown;
  while (broken_.empty() && machine_.now() < until && shown.text("/state") != "ready") {
    shown = co_await ask(http::Method::get, url, "", 2s);
    co_await pause(50ms);
  }
  if (shown.text("/state") != "ready") broken(pushes->name + " is not ready when all faults are over: " + shown.body);
  for (std::size_t i = 0; i < seats_.size() && broken_.empty(); ++i) {
    auto const answer =
        co_await ask_over_cuts(http::Method::get, worker_url(i) + "/v1/parameters/" + pushes->name + "/value", "");
    if (answer.status != 200)
      broken("w" + std::to_string(i) + " has no values of " + pushes->name + ": " + answer.body);
    else if (auto wrong = pushes->wrong(answer.body, pushes->acknowledged, pushes->acknowledged); !wrong.empty())
      broken("at the end " + wrong);
  }
}

}  // namespace chorus::simulation
