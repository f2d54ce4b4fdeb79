#include "worker/service/collectives/runs/flight_routes.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <limits>

#include "collectives/core/nearest_name.hpp"
#include "collectives/plan/text/text.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/json/json.hpp"
#include "http/routing/paging.hpp"
#include "worker/engine/trace/run_identity.hpp"
#include "worker/service/collectives/runs/statistics_message.hpp"
#include "worker/service/requests/pending.hpp"

namespace chorus::service {
namespace {

using boost::asio::awaitable;
using http::Checked;
using http::Problem;
using http::ProblemCode;
using std::chrono::steady_clock;

// With instructions, this many flights make an answer of a few MB.
constexpr std::size_t detailed_page_max = 64;

double microseconds(steady_clock::time_point time) {
  return std::chrono::duration<double, std::micro>(time.time_since_epoch()).count();
}

std::optional<double> microseconds(std::int64_t ns) {
  if (ns == engine::never_ns) return std::nullopt;
  return static_cast<double>(ns) / 1000;
}

bool has_peer(plan::Opcode op) { return op != plan::Opcode::copy && op != plan::Opcode::reduce; }

// A decimal number, as records show launched runs, or 0x and 16 hexadecimal digits, as flights show all runs: decimal
// numbers may have 16 digits too.
Checked<std::uint64_t> parse_run(std::string_view text) {
  if (text.starts_with("0x"))
    if (auto const run = api::from_hex(text.substr(2))) return *run;
  std::uint64_t run = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), run);
  if (!text.empty() && error == std::errc() && end == text.data() + text.size()) return run;
  return Problem(ProblemCode::bad_request,
                 "a run is a number, or 0x and 16 hexadecimal digits, not '" + std::string(text.substr(0, 80)) + "'");
}

api::FlightInstruction step_message(engine::FlightStep const& step) {
  api::FlightInstruction message;
  message.instruction = step.first;
  message.instructions = step.instructions;
  message.round = step.round;
  message.op = step.instructions == 1 ? std::string(plan::name(step.op)) : "several";
  if (step.instructions == 1) {
    if (has_peer(step.op)) {
      message.peer = step.peer;
      message.message = step.message;
    }
    message.chunk = step.chunk;
    message.chunks = step.chunks;
  }
  message.bytes = step.bytes;
  message.ready_us = microseconds(step.ready_ns);
  message.moved_us = microseconds(step.moved_ns);
  message.done_us = microseconds(step.done_ns);
  return message;
}

std::string_view name_of(devices::Lane lane) {
  return lane == devices::Lane::in ? "in" : lane == devices::Lane::out ? "out" : "compute";
}

api::Flight flight_message(engine::Flight const& flight, bool with_instructions) {
  api::Flight message;
  auto const& kind = *flight.kind;
  message.run = api::to_hex(flight.run);
  message.group = kind.group;
  message.epoch = kind.epoch;
  message.op = name(kind.op);
  message.algorithm = kind.algorithm;
  message.rank = kind.rank;
  message.ranks = kind.ranks;
  message.tensor = kind.tensor;
  message.dtype = name(kind.dtype);
  message.elements = kind.elements;
  message.path = kind.path;
  message.state = flight.state;
  message.error = flight.error;
  if (!flight.trace_id.empty()) message.trace_id = flight.trace_id;
  message.started_us = microseconds(flight.started);
  put_statistics(message, flight.statistics);
  if (!with_instructions) return message;
  auto& instructions = message.instructions.emplace();
  for (auto const& step : flight.instructions) instructions.push_back(step_message(step));
  if (flight.gpu_spans.empty()) return message;
  auto& gpu = message.gpu.emplace();
  for (auto const& span : flight.gpu_spans)
    gpu.push_back({std::string(name_of(span.lane)), static_cast<double>(span.begin_ns) / 1000,
                   static_cast<double>(span.end_ns) / 1000, span.bytes});
  return message;
}

// Cursor of the next page: start time and run number of a flight.
std::string cursor_of(engine::Flight const& flight) {
  return std::to_string(flight.started.time_since_epoch().count()) + "." + api::to_hex(flight.run);
}

Checked<std::pair<std::int64_t, std::uint64_t>> parse_cursor(std::string_view text) {
  Problem const wrong(ProblemCode::bad_request, "query parameter cursor is none of this list");
  auto const dot = text.find('.');
  if (dot == std::string_view::npos) return wrong;
  std::int64_t started = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + dot, started);
  auto const run = api::from_hex(text.substr(dot + 1));
  if (error != std::errc() || end != text.data() + dot || !run) return wrong;
  return std::pair(started, *run);
}

Checked<bool> wants_instructions(http::Request const& request, bool otherwise) {
  auto const text = request.query_value("instructions");
  if (!text) return otherwise;
  if (*text == "true" || *text == "false") return *text == "true";
  return Problem(ProblemCode::bad_request,
                 "query parameter instructions: " + unknown_name("value", *text, {"true", "false"}));
}

std::string_view name_of(links::Suspicion suspicion) {
  switch (suspicion) {
    case links::Suspicion::nobody:
      break;
    case links::Suspicion::slow:
      return "slow";
    case links::Suspicion::not_called:
      return "not_called";
    case links::Suspicion::silent:
      return "silent";
  }
  return "nobody";
}

}  // namespace

std::string describe_stall(engine::RunProgress const& run) {
  std::array<char, 32> seconds{};
  std::snprintf(seconds.data(), seconds.size(), "%.1f", run.still_seconds);
  auto text = run.description + " stands still for " + seconds.data() + " s";
  for (auto const& awaited : run.waiting_for) {
    text += &awaited == &run.waiting_for.front() ? ": waits for " : ", ";
    text += "rank " + std::to_string(awaited.rank) + " (" + awaited.worker + "), ";
    if (awaited.suspicion == links::Suspicion::silent) text += "which is silent, ";
    if (awaited.suspicion == links::Suspicion::not_called) text += "which has not called, ";
    text += awaited.where;
  }
  return text;
}

logging::Field run_field(std::uint64_t run) {
  if (engine::is_members_call(run)) return {"run", api::to_hex(run)};
  return {"run", run};
}

void FlightRoutes::add_to(http::Router& router) {
  router.add(http::Method::get, "/v1/flight", http::Access::read,
             [this](http::Request const& request, http::Body&) { return flight(request); });
  router.add(http::Method::get, "/v1/progress", http::Access::read,
             [this](http::Request const&, http::Body&) { return all_progress(); });
  router.add(http::Method::get, "/v1/runs/{run}/progress", http::Access::read,
             [this](http::Request const& request, http::Body&) { return one_progress(request); });
  router.add(http::Method::get, "/v1/clock", http::Access::read,
             [this](http::Request const&, http::Body&) { return clock(); });
}

awaitable<http::Response> FlightRoutes::flight(http::Request const& request) {
  auto page = http::page_of(request);
  if (!page) co_return page.error();
  std::optional<std::uint64_t> wanted;
  if (auto const text = request.query_value("run")) {
    auto const run = parse_run(*text);
    if (!run) co_return run.error();
    wanted = *run;
  }
  auto const detailed = wants_instructions(request, wanted.has_value());
  if (!detailed) co_return detailed.error();
  if (*detailed) page->limit = std::min(page->limit, detailed_page_max);
  std::pair<std::int64_t, std::uint64_t> before(std::numeric_limits<std::int64_t>::max(), 0);
  if (!page->after.empty()) {
    auto const cursor = parse_cursor(page->after);
    if (!cursor) co_return cursor.error();
    before = *cursor;
  }
  api::FlightList list;
  list.worker = identity_.id;
  std::string last_shown;
  for (auto const& one : recorder_.last()) {
    if (std::pair(std::int64_t{one.started.time_since_epoch().count()}, one.run) >= before) continue;
    if (wanted && one.run != *wanted) continue;
    if (list.items.size() == page->limit) {
      list.next_cursor = last_shown;
      break;
    }
    list.items.push_back(flight_message(one, *detailed));
    last_shown = cursor_of(one);
  }
  list.now_us = microseconds(steady_clock::now());
  co_return http::Response::json(200, http::encode(list));
}

awaitable<std::vector<engine::RunProgress>> FlightRoutes::ask(std::optional<std::uint64_t> run) {
  auto const pending = std::make_shared<Pending<std::vector<engine::RunProgress>>>(control_);
  plane_.ask_progress(run, [pending](std::vector<engine::RunProgress> all) {
    Pending<std::vector<engine::RunProgress>>::resolve(pending, std::move(all));
  });
  auto all = co_await pending->take();
  // The engine does not know calls over shared memory; the recorder knows those that stand still.
  for (auto& stalled : recorder_.stalls()) {
    bool const is_known =
        std::any_of(all.begin(), all.end(), [&](auto const& known) { return known.run == stalled.run; });
    if (!is_known && (!run || *run == stalled.run)) all.push_back(std::move(stalled));
  }
  co_return all;
}

awaitable<http::Response> FlightRoutes::all_progress() {
  auto const all = co_await ask(std::nullopt);
  api::ProgressList list;
  for (auto const& run : all) list.items.push_back(to_message(run));
  co_return http::Response::json(200, http::encode(list));
}

awaitable<http::Response> FlightRoutes::one_progress(http::Request const& request) {
  auto const run = parse_run(request.parameter("run"));
  if (!run) co_return run.error();
  auto const running = co_await ask(*run);
  if (!running.empty()) co_return http::Response::json(200, http::encode(to_message(running.front())));
  auto const status = runs_.status(*run);
  if (!status)
    co_return Problem(ProblemCode::unknown_run,
                      "run " + std::to_string(*run) + " has not begun here, or ended long ago");
  api::RunProgress message;
  message.run = api::to_hex(*run);
  message.state = status->state == "running" ? "busy" : status->state;
  message.worker = identity_.id;
  co_return http::Response::json(200, http::encode(message));
}

awaitable<http::Response> FlightRoutes::clock() {
  api::ClockReading const reading{identity_.id, api::to_hex(identity_.incarnation), microseconds(steady_clock::now())};
  co_return http::Response::json(200, http::encode(reading));
}

api::RunProgress FlightRoutes::to_message(engine::RunProgress const& run) const {
  api::RunProgress message;
  message.run = api::to_hex(run.run);
  message.state = "running";
  message.worker = identity_.id;
  message.group = run.group;
  message.epoch = run.epoch;
  message.description = run.description;
  message.rank = run.rank;
  message.ranks = run.ranks;
  message.seconds = run.seconds;
  message.still_seconds = run.still_seconds;
  message.steps_done = run.steps_done;
  message.steps = run.steps;
  message.bytes_sent = run.bytes_sent;
  message.bytes_received = run.bytes_received;
  for (auto const& standing : run.standing) {
    auto& state = message.instructions.emplace_back();
    state.instruction = standing.instruction;
    state.op = plan::name(standing.op);
    if (has_peer(standing.op)) {
      state.peer = standing.peer;
      state.message = standing.message;
    }
    state.bytes_done = standing.bytes_done;
    state.bytes = standing.bytes;
  }
  for (auto const& awaited : run.waiting_for)
    message.waiting_for.push_back({awaited.rank, awaited.worker, awaited.where, std::string(name_of(awaited.suspicion)),
                                   std::chrono::duration<double>(awaited.lasting).count()});
  return message;
}

}  // namespace chorus::service
