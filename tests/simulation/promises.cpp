// Checks that epochs, launches and events stay as the client was told, whichever coordinator answers.
#include <algorithm>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "tests/simulation/life.hpp"

namespace chorus::simulation {
namespace {

namespace json = boost::json;
using boost::asio::awaitable;
using namespace std::chrono_literals;

constexpr Duration time_to_answer = 30s;

// The end of a collective is written after its answer, and may be lost with the coordinator. The next coordinator then
// asks all ranks. A rank that has died or stays silent makes the collective failed, and the problem names that rank.
bool contradicts(std::string const& before, json::value const& record) {
  std::string_view const now = record.at("state").as_string();
  if (before.empty() || before == now) return false;
  if (before != "succeeded" || now != "failed") return true;
  auto const& error = record.at("error").as_object();
  auto const* const ranks = error.if_contains("ranks");
  std::string_view const detail = error.at("detail").as_string();
  bool const was_committing = detail.find("the result was being committed") != detail.npos ||
                              detail.find("it did not commit the result") != detail.npos;
  return ranks == nullptr || ranks->as_array().empty() || !was_committing;
}

}  // namespace

// Checks that every PUT of a group makes a higher epoch.
void Life::note_epoch(Said const& answer) {
  if (answer.status != 200 && answer.status != 201) return;
  auto const text = answer.text("/epoch");
  std::uint64_t epoch = 0;
  std::from_chars(text.data(), text.data() + text.size(), epoch);
  if (epoch <= epoch_) broken("the group has epoch " + text + " after epoch " + std::to_string(epoch_));
  epoch_ = epoch;
}

void Life::note_launch(std::string const& id, Said const& answer) {
  auto const state = answer.text("/state");
  if (answer.status < 200 || answer.status > 202 || state.empty()) return;
  bool const has_ended = state == "succeeded" || state == "failed" || state == "cancelled";
  auto const [launch, is_new] = launches_.emplace(id, "");
  if (contradicts(launch->second, answer.json))
    broken("collective " + id + " is " + answer.body + " after it was " + launch->second);
  if (has_ended) launch->second = state;
}

// Call after the end of all faults.
awaitable<void> Life::check_launches() {
  for (auto const& [id, state] : launches_) {
    auto const until = machine_.now() + time_to_answer;
    Said answer;
    while (answer.status == 0 || answer.status == 503) {
      if (machine_.now() > until) break;
      answer = co_await ask(http::Method::get, coordinator_url + "/v1/collectives/" + id, "", 2s);
      if (answer.status == 0 || answer.status == 503) co_await pause(50ms);
    }
    if (answer.status != 200)
      broken("collective " + id + ", which was accepted, is not known: " + answer.body);
    else if (contradicts(state, answer.json))
      broken("collective " + id + " is " + answer.body + " after it was " + state);
  }
}

// Appends one page of the events after `since`. False if there is no answer, or no event.
awaitable<bool> Life::read_events(std::string since, std::vector<std::string>* events) {
  http::Fields fields;
  fields.set("Accept", "application/json");
  auto const url = coordinator_url + "/v1/events?limit=1000" + since;
  auto const answer = co_await ask(http::Method::get, url, "", 2s, std::move(fields));
  if (answer.status != 200) co_return false;
  auto const& items = answer.json.at("items").as_array();
  if (items.empty()) co_return false;
  auto const log = answer.text("/log");
  if (event_log_.empty()) event_log_ = log;
  if (log != event_log_) broken("the log of events is " + log + " after it was " + event_log_);
  for (auto const& item : items) {
    auto const sequence = json::serialize(item.at("sequence"));
    auto const expected = std::to_string(events->size() + 1);
    if (sequence != expected) broken("event " + expected + " was expected, and event " + sequence + " came");
    events->push_back(json::serialize(item));
  }
  co_return true;
}

// A former leader that continues after a stop may not know events that were read before, and refuses.
awaitable<void> Life::follow_events() {
  while (!has_launched_ && broken_.empty()) {
    auto const since = events_.empty() ? "" : "&since=" + event_log_ + "-" + std::to_string(events_.size());
    static_cast<void>(co_await read_events(since, &events_));
    co_await pause(300ms);
  }
}

// Call after the end of all faults: the log must begin with the events that were read before.
awaitable<void> Life::check_events() {
  std::vector<std::string> events;
  auto const until = machine_.now() + time_to_answer;
  while (machine_.now() < until && broken_.empty()) {
    auto const since = events.empty() ? "" : "&since=" + event_log_ + "-" + std::to_string(events.size());
    bool const has_read = co_await read_events(since, &events);
    if (!has_read && !events.empty()) break;
  }
  tally_.events += events.size();
  for (std::size_t i = 0; i < events_.size() && broken_.empty(); ++i)
    if (i >= events.size() || events[i] != events_[i])
      broken("event " + std::to_string(i + 1) + " is " + (i < events.size() ? events[i] : "gone") + " after it was " +
             events_[i]);
}

}  // namespace chorus::simulation
