#include "server/coordinator/observability/trace.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <limits>

namespace chorus::coordinator {
namespace {

namespace json = boost::json;

// Rows of a rank. Instructions overlap: an instruction that begins before all others of its kind have ended gets a row
// of its own.
constexpr std::uint32_t run_row = 0;
constexpr std::uint32_t rows_per_kind = 100;
constexpr std::size_t kinds = 8;

std::uint32_t kind_of(api::FlightInstruction const& instruction) {
  if (instruction.op == "recv" || instruction.op == "recv_reduce") return 1;
  if (instruction.op == "copy" || instruction.op == "reduce") return 2;
  return instruction.op == "send" ? 3 : 4;
}

std::string title_of(api::FlightInstruction const& instruction) {
  if (instruction.instructions > 1)
    return std::to_string(instruction.instructions) + " instructions from round " + std::to_string(instruction.round);
  auto text = instruction.op;
  if (instruction.peer) text += (instruction.op == "send" ? " to " : " from ") + std::to_string(*instruction.peer);
  return text;
}

json::object event(char const* phase, std::uint32_t rank, std::uint32_t row, double at_us) {
  return {{"ph", phase}, {"pid", rank}, {"tid", row}, {"ts", at_us}};
}

json::object named(char const* what, std::uint32_t rank, std::uint32_t row, std::string const& name) {
  return {{"ph", "M"}, {"name", what}, {"pid", rank}, {"tid", row}, {"args", json::object{{"name", name}}}};
}

class Drawing {
 public:
  Drawing(json::array& events, RankTrace const& trace, double zero_us)
      : events_(events),
        trace_(trace),
        flight_(*trace.flight),
        began_us_(flight_.started_us + trace.clock.offset_us - zero_us) {}

  void draw() {
    auto run = event("X", trace_.rank, run_row, began_us_);
    run["name"] = flight_.op + " " + flight_.algorithm + " " + flight_.state;
    run["cat"] = "run";
    run["dur"] = flight_.seconds * 1e6;
    run["args"] = {{"bytes_sent", flight_.bytes_sent},
                   {"bytes_received", flight_.bytes_received},
                   {"wait_us", flight_.wait_seconds * 1e6},
                   {"error", flight_.error}};
    events_.push_back(std::move(run));
    if (!flight_.instructions) return;
    for (auto const& instruction : *flight_.instructions)
      if (instruction.ready_us) draw(instruction);
    if (!flight_.gpu) return;
    for (auto const& work : *flight_.gpu) draw(work);
  }

 private:
  void draw(api::FlightInstruction const& instruction) {
    // An instruction that was not done when the run ended is drawn up to this end.
    auto const ready = *instruction.ready_us;
    auto const done = std::max(instruction.done_us.value_or(flight_.seconds * 1e6), ready);
    auto const moved = std::clamp(instruction.moved_us.value_or(done), ready, done);
    auto const row = row_for(kind_of(instruction), ready, done);
    auto whole = event("X", trace_.rank, row, began_us_ + ready);
    whole["name"] = title_of(instruction);
    whole["cat"] = "instruction";
    whole["dur"] = done - ready;
    whole["args"] = {{"instruction", instruction.instruction},
                     {"round", instruction.round},
                     {"chunk", instruction.chunk},
                     {"chunks", instruction.chunks},
                     {"bytes", instruction.bytes},
                     {"done", instruction.done_us.has_value()}};
    auto& arguments = whole["args"].as_object();
    if (instruction.peer) arguments["peer"] = *instruction.peer;
    if (instruction.message) arguments["message"] = *instruction.message;
    events_.push_back(std::move(whole));
    if (moved > ready) {
      auto waiting = event("X", trace_.rank, row, began_us_ + ready);
      waiting["name"] = "wait";
      waiting["cat"] = "wait";
      waiting["dur"] = moved - ready;
      events_.push_back(std::move(waiting));
    }
    if (instruction.peer && instruction.done_us) connect(instruction, row, began_us_ + done);
  }

  void draw(api::FlightGpuWork const& work) {
    bool const is_in = work.lane == "in", is_out = work.lane == "out";
    auto const end_us = std::max(work.begin_us, work.end_us);
    auto const row = row_for(is_in ? 5 : is_out ? 7 : 6, work.begin_us, end_us);
    auto span = event("X", trace_.rank, row, began_us_ + work.begin_us);
    span["name"] = is_in ? "to the GPU" : is_out ? "from the GPU" : "kernel";
    span["cat"] = "gpu";
    span["dur"] = end_us - work.begin_us;
    span["args"] = {{"bytes", work.bytes}};
    events_.push_back(std::move(span));
  }

  // An arrow has the same id at both ends: sender, receiver and number of the message.
  void connect(api::FlightInstruction const& instruction, std::uint32_t row, double at_us) {
    bool const sends = instruction.op == "send";
    auto const from = sends ? trace_.rank : *instruction.peer, to = sends ? *instruction.peer : trace_.rank;
    auto arrow = event(sends ? "s" : "f", trace_.rank, row, at_us);
    arrow["name"] = "message";
    arrow["cat"] = "message";
    arrow["id"] =
        std::to_string(from) + ">" + std::to_string(to) + "#" + std::to_string(instruction.message.value_or(0));
    if (!sends) arrow["bp"] = "e";
    events_.push_back(std::move(arrow));
  }

  std::uint32_t row_for(std::uint32_t kind, double from_us, double to_us) {
    constexpr std::array<char const*, kinds> names{"run",    "receive", "reduce", "send",
                                                   "rounds", "GPU in",  "GPU",    "GPU out"};
    auto& rows = busy_until_us_[kind];
    auto place = std::find_if(rows.begin(), rows.end(), [from_us](double until_us) { return until_us <= from_us; });
    if (place == rows.end() && rows.size() < rows_per_kind) {
      place = rows.insert(rows.end(), to_us);
      auto const row = kind * rows_per_kind + static_cast<std::uint32_t>(rows.size() - 1);
      events_.push_back(named("thread_name", trace_.rank, row, names.at(kind)));
    } else if (place == rows.end()) {
      place = std::min_element(rows.begin(), rows.end());
    }
    *place = std::max(*place, to_us);
    return kind * rows_per_kind + static_cast<std::uint32_t>(place - rows.begin());
  }

  json::array& events_;
  RankTrace const& trace_;
  api::Flight const& flight_;
  double const began_us_;
  std::array<std::vector<double>, kinds> busy_until_us_;
};

}  // namespace

ClockOffset offset_of(double asked_us, double answered_us, double its_us) {
  return {(asked_us + answered_us) / 2 - its_us, (answered_us - asked_us) / 2};
}

std::string chrome_trace(api::Collective const& collective, std::vector<RankTrace> const& ranks) {
  auto zero_us = std::numeric_limits<double>::max();
  for (auto const& trace : ranks)
    if (trace.flight) zero_us = std::min(zero_us, trace.flight->started_us + trace.clock.offset_us);
  json::array events, about_ranks;
  auto error_us = 0.0;
  for (auto const& trace : ranks) {
    events.push_back(
        named("process_name", trace.rank, run_row, "rank " + std::to_string(trace.rank) + " (" + trace.worker + ")"));
    events.push_back(named("thread_name", trace.rank, run_row, "run"));
    json::object about{{"rank", trace.rank}, {"worker", trace.worker}, {"recorded", trace.flight.has_value()}};
    if (trace.flight) {
      about["clock_offset_us"] = trace.clock.offset_us;
      about["clock_error_us"] = trace.clock.error_us;
      error_us = std::max(error_us, trace.clock.error_us);
      Drawing(events, trace, zero_us).draw();
    } else {
      about["why_not"] = trace.why;
    }
    about_ranks.push_back(std::move(about));
  }
  json::object metadata{
      {"collective", collective.id},
      {"run", collective.run},
      {"group", collective.request.group},
      {"epoch", collective.epoch},
      {"op", collective.request.op},
      {"algorithm", collective.algorithm},
      {"state", collective.state},
      {"clock_error_us", error_us},
      {"clocks", "aligned by the middles of requests; times of two ranks may be off by the sum of their errors"},
      {"ranks", std::move(about_ranks)}};
  if (collective.traceparent) metadata["traceparent"] = *collective.traceparent;
  return json::serialize(
      json::object{{"traceEvents", std::move(events)}, {"displayTimeUnit", "ms"}, {"metadata", std::move(metadata)}});
}

}  // namespace chorus::coordinator
