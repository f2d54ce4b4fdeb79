// The collectives that the client launches at the coordinator, and the checks of their results.
#include <array>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "tests/simulation/life.hpp"

namespace chorus::simulation {
namespace {

namespace json = boost::json;
using boost::asio::awaitable;
using namespace std::chrono_literals;

constexpr Duration time_until_its_end = 90s;

// 0 if the tensor does not exist.
std::uint64_t version_in(std::string const& text) {
  std::uint64_t version = 0;
  std::from_chars(text.data(), text.data() + text.size(), version);
  return version;
}

}  // namespace

// Repeats the request until the collective has ended. The coordinator must not launch it twice, even if answers are
// lost.
awaitable<bool> Life::launch(std::string id, bool must_succeed) {
  static constexpr std::array algorithms{"auto", "ring",        "tree",       "halving_doubling", "recursive_doubling",
                                         "mesh", "centralized", "double_tree"};
  json::object body{
      {"group", "g"}, {"tensor", "x"}, {"output", "y"}, {"algorithm", algorithms[below(algorithms.size())]}};
  if (!one_in(3)) body["timeout_ms"] = 500 + below(6000);
  auto const text = json::serialize(body);
  auto const until = machine_.now() + time_until_its_end;
  ++tally_.collectives;
  while (machine_.now() < until) {
    auto const answer =
        co_await ask(http::Method::put, coordinator_url + "/v1/collectives/" + id + "?wait=10s", text, 12s);
    auto const state = answer.text("/state");
    note_launch(id, answer);
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
    // The request was refused before any worker was told.
    if (answer.status >= 400 && answer.status < 500) co_return false;
    if (etcd_ && etcd_->leader().empty()) co_await call_without_coordinator();
    co_await pause(50ms);
  }
  broken("collective " + id + " has no end");
  co_return false;
}

// Checks that every living rank has the sum of exactly the ranks in the record.
awaitable<void> Life::check_result(json::value record) {
  auto const& ranks = record.at("ranks").as_array();
  float sum = 0;
  for (auto const& rank : ranks) sum += contribution(index_of(rank.at("worker").as_string()));
  auto const expected = bytes_of(sum, elements_);
  for (auto const& rank : ranks) {
    auto const index = index_of(rank.at("worker").as_string());
    auto const lives = seats_[index].lives;
    auto const tensor = co_await ask(http::Method::get, worker_url(index) + "/v1/tensors/y", "", 2s);
    auto const was_known = std::exchange(seats_[index].is_y_known, false);
    if (tensor.status != 200 || lives != seats_[index].lives || !seats_[index].process) continue;
    auto const version = json::serialize(rank.at("report").at("version"));
    if (tensor.version != version)
      broken("w" + std::to_string(index) + " is at version " + tensor.version + " instead of " + version);
    else if (tensor.body != expected)
      broken("w" + std::to_string(index) + " has a wrong sum after " + record.at("id").as_string().c_str());
    else if (was_known && version_in(version) != seats_[index].y_version + 1)
      broken("w" + std::to_string(index) + " went from version " + std::to_string(seats_[index].y_version) + " to " +
             version + " by one collective, " + record.at("id").as_string().c_str());
    seats_[index].y_version = version_in(tensor.version);
    seats_[index].is_y_known = true;
  }
}

// Checks that no tensor has changed, unless the problem says that a member was lost during the commit.
awaitable<void> Life::check_nothing_moved(json::value record) {
  auto const text = json::serialize(record.at("error"));
  auto const was_committing = text.find("commit") != std::string::npos;
  for (std::size_t i = 0; i < seats_.size(); ++i) {
    auto const lives = seats_[i].lives;
    auto const tensor = co_await ask(http::Method::get, worker_url(i) + "/v1/tensors/y", "", 2s);
    seats_[i].is_y_known = false;
    if ((tensor.status != 200 && tensor.status != 404) || lives != seats_[i].lives || !seats_[i].process) continue;
    auto const version = version_in(tensor.version);
    if (version != seats_[i].y_version && !was_committing)
      broken("w" + std::to_string(i) + " moved to version " + tensor.version + " by a collective that failed: " + text);
    seats_[i].y_version = version;
    seats_[i].is_y_known = !was_committing;  // a member that was cut off may commit later
  }
}

}  // namespace chorus::simulation
