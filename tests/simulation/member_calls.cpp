// The members' calls: the clients of all members make one call after another at their own workers. Each client repeats
// a call with the same sequence until it has an answer, while its connections are cut and its patience is short.
#include <boost/asio/co_spawn.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "base/runtime/condition.hpp"
#include "tests/simulation/life.hpp"

namespace chorus::simulation {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using asio::awaitable;
using namespace std::chrono_literals;

// A sum of values of different steps is not the sum of any step.
float value_of(std::size_t step) { return static_cast<float>(1U << (8 * (step % 2))); }

std::uint64_t number_in(std::string const& text) {
  std::uint64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

struct Life::MemberCalls {
  MemberCalls(asio::any_io_executor executor, std::string group_epoch, std::size_t count)
      : epoch(std::move(group_epoch)), pending(count), ended(std::move(executor)) {}

  std::string const epoch;
  float of_all = 0;  // sum of the contributions of all members
  std::size_t const steps = 6;
  std::size_t pending;
  std::size_t succeeded = 0;
  http::Condition ended;
};

awaitable<bool> Life::call_as_members() {
  auto const group = co_await ask(http::Method::get, coordinator_url + "/v1/groups/g", "", 2s);
  if (group.status != 200 || group.text("/state") != "ready") co_return false;
  members_.clear();
  for (auto const& member : group.json.at("members").as_array())
    members_.push_back(index_of(member.at("worker").as_string()));
  members_epoch_ = group.text("/epoch");
  co_return co_await call_as(members_, members_epoch_);
}

// Members' calls need no coordinator: uses the group as last seen ready.
awaitable<void> Life::call_without_coordinator() {
  if (!members_.empty()) static_cast<void>(co_await call_as(members_, members_epoch_));
}

awaitable<bool> Life::call_as(std::vector<std::size_t> indices, std::string epoch) {
  auto const calls = std::make_shared<MemberCalls>(client_host_.io.get_executor(), std::move(epoch), indices.size());
  for (auto const index : indices) calls->of_all += contribution(index);
  for (auto const index : indices)
    asio::co_spawn(client_host_.io, call_as_member(index, calls), [this, calls](std::exception_ptr failure) {
      if (failure) broken("a member's client ended with an exception");
      --calls->pending;
      calls->ended.notify_all();
    });
  while (calls->pending > 0) co_await calls->ended.wait_until(TimePoint::max());
  tally_.member_calls += calls->succeeded;
  co_return calls->succeeded == calls->steps* indices.size();
}

awaitable<void> Life::call_as_member(std::size_t index, std::shared_ptr<MemberCalls> calls) {
  auto const lives = seats_[index].lives;
  auto const own = co_await ask_over_cuts(http::Method::get, worker_url(index) + "/v1/groups/g", "");
  if (own.status != 200 || own.text("/epoch") != calls->epoch) co_return;
  auto const first = number_in(own.text("/next_sequence"));
  for (std::size_t step = 0; step < calls->steps && broken_.empty(); ++step) {
    auto const value = contribution(index) * value_of(step);
    auto const put =
        co_await ask_over_cuts(http::Method::put, worker_url(index) + "/v1/tensors/s", bytes_of(value, elements_));
    if (put.status != 200 && put.status != 201) co_return;
    auto const sequence = first + step;
    auto const answer = co_await call_until_answered(index, calls->epoch, sequence);
    if (answer.status != 200 || lives != seats_[index].lives) co_return;
    if (answer.text("/sequence") != std::to_string(sequence))
      broken("w" + std::to_string(index) + " called " + std::to_string(sequence) + " and was told " + answer.body);
    auto const sum = co_await ask_over_cuts(http::Method::get, worker_url(index) + "/v1/tensors/t", "");
    if (sum.status != 200 || lives != seats_[index].lives || !seats_[index].process) co_return;
    if (sum.body != bytes_of(calls->of_all * value_of(step), elements_))
      broken("w" + std::to_string(index) + " has a wrong sum after its call " + std::to_string(sequence));
    ++calls->succeeded;
    if (etcd_ && etcd_->leader().empty()) ++tally_.leaderless_calls;
  }
}

// Repeats the request if the connection was cut. Gives up after the patience: a late request may still arrive.
awaitable<Life::Said> Life::ask_over_cuts(http::Method method, std::string url, std::string body) {
  constexpr auto patience = 10s;
  auto const until = machine_.now() + patience;
  for (;;) {
    http::Fields fields;
    if (method == http::Method::put) {
      fields.set("Content-Type", "application/octet-stream");
      fields.set("Tensor-Dtype", "f32");
      fields.set("Tensor-Shape", std::to_string(elements_));
    }
    auto answer = co_await ask(method, url, body, patience, std::move(fields));
    if (answer.status != 0 || machine_.now() >= until) co_return answer;
    co_await pause(1ms);
  }
}

awaitable<Life::Said> Life::call_until_answered(std::size_t index, std::string epoch, std::uint64_t sequence) {
  auto const number = std::to_string(sequence);
  json::object body{
      {"epoch", number_in(epoch)}, {"sequence", sequence}, {"tensor", "s"}, {"output", "t"}, {"timeout_ms", 5000}};
  auto const text = json::serialize(body);
  auto const until = machine_.now() + 60s;
  while (machine_.now() < until) {
    http::Fields fields;
    fields.set("Idempotency-Key", "w" + std::to_string(index) + "-" + epoch + "-" + number);
    if (one_in(3))
      machine_.at(machine_.now() + 10us * static_cast<Duration::rep>(below(200)), [this, index] {
        if (auto const& process = seats_[index].process) machine_.cut_connections(client_host_, process->host);
      });
    auto const patience = 1ms * static_cast<Duration::rep>(1 + below(one_in(2) ? 3 : 8000));
    auto const answer = co_await ask(http::Method::post, worker_url(index) + "/v1/groups/g/all_reduce", text, patience,
                                     std::move(fields));
    if (answer.status != 0) co_return answer;
    ++tally_.repetitions;
    co_await pause(1ms * static_cast<Duration::rep>(below(20)));
  }
  broken("w" + std::to_string(index) + " has no answer to its call " + number);
  Said none;
  co_return none;
}

}  // namespace chorus::simulation
