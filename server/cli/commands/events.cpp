// events: shows the coordinator's events as they happen.
#include <chrono>
#include <memory>
#include <optional>
#include <ostream>
#include <thread>

#include "http/api/cluster/events.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/commands/options.hpp"
#include "server/cli/connection/client.hpp"
#include "server/cli/connection/event_stream.hpp"

namespace chorus::cli {
namespace {

// Longest silence of the coordinator, which sends bookmarks every 15 seconds
constexpr std::chrono::milliseconds silence{60'000};
constexpr std::chrono::milliseconds pause_before_trying_again{500};
constexpr std::uint32_t events_per_page = 1000;

struct EventOptions {
  std::optional<std::string> since;
  std::uint64_t count = 0;  // 0: any number
  bool no_follow = false;
};

void print(api::Event const& event, Session const& session) {
  auto& out = session.out;
  if (session.json) {
    out << http::encode(event) << std::endl;
    return;
  }
  out << event.sequence << "  " << event.at << "  " << event.type;
  if (event.collective) out << "  " << *event.collective;
  if (event.worker) out << "  " << *event.worker;
  if (event.group) out << "  group " << *event.group;
  if (event.epoch) out << " epoch " << *event.epoch;
  if (event.code) out << "  " << *event.code;
  if (event.detail) out << ": " << *event.detail;
  out << std::endl;
}

std::string since_query(std::optional<std::string> const& since) {
  return since ? "?since=" + percent_encode(*since) : std::string();
}

ExitCode show(EventOptions const& options, Session const& session) {
  Client const client(session);
  auto path = "/v1/events" + since_query(options.since) + (options.since ? "&" : "?") +
              "limit=" + std::to_string(events_per_page);
  std::uint64_t shown = 0;
  for (std::string cursor;;) {
    auto const page = client.ask<api::EventList>({.path = path + cursor});
    if (!page) return report(session, page.error());
    for (auto const& event : page->items) {
      print(event, session);
      if (++shown == options.count) return ExitCode::ok;
    }
    if (!page->next_cursor) return ExitCode::ok;
    cursor = "&cursor=" + percent_encode(*page->next_cursor);
  }
}

void say_that_it_begins_anew(std::string const& data, Session const& session) {
  auto const reset = http::decode<api::StreamReset>(data, http::UnknownFields::ignore);
  if (reset) session.err << "the stream begins anew: " << reset->detail << std::endl;
}

// Follows for ever, over restarts of the coordinator and times without a leader, from the last position.
ExitCode follow(EventOptions const& options, Session const& session) {
  Client const client(session);
  Request request{.path = "/v1/events" + since_query(options.since), .patience = silence};
  std::uint64_t shown = 0;
  bool was_connected = false;
  for (;;) {
    EventStream stream;
    auto const on_bytes = [&](std::string_view bytes) {
      was_connected = true;
      for (auto const& sent : stream.feed(bytes)) {
        request.fields = {{"Last-Event-ID", sent.id}};
        if (sent.type == "reset") say_that_it_begins_anew(sent.data, session);
        auto const event = http::decode<api::Event>(sent.data, http::UnknownFields::ignore);
        if (sent.type == "bookmark" || sent.type == "reset" || !event) continue;
        print(*event, session);
        if (++shown == options.count) return false;
      }
      return true;
    };
    auto const ended = client.follow(request, on_bytes);
    if (shown == options.count && shown > 0) return ExitCode::ok;
    bool const may_lead_again = was_connected && ended && ended->problem.code == http::ProblemCode::unavailable;
    if (ended && !may_lead_again) return report(session, *ended);
    std::this_thread::sleep_for(pause_before_trying_again);
  }
}

}  // namespace

void add_events(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand("events", "Follow what happens: workers, groups, collectives");
  auto const options = std::make_shared<EventOptions>();
  command.add_option("--since", options->since, "begin after this event (default: now; with --no-follow the oldest)")
      ->type_name("POSITION");
  add_number(command, "--count", options->count, 0, UINT32_MAX, "end after so many events");
  command.add_flag("--no-follow", options->no_follow, "show what there is, and end");
  commands.bind(command, [options](Session const& session) {
    return options->no_follow ? show(*options, session) : follow(*options, session);
  });
}

}  // namespace chorus::cli
