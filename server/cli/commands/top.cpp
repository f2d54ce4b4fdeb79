// top: shows the live cluster. On a terminal a screen; otherwise one JSON object per refresh.
#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <ostream>
#include <thread>

#include "http/api/cluster/status.hpp"
#include "server/cli/commands/commands.hpp"
#include "server/cli/commands/options.hpp"
#include "server/cli/connection/client.hpp"
#include "server/cli/output/top_view.hpp"
#include "server/cli/text/format.hpp"

namespace chorus::cli {
namespace {

constexpr std::chrono::milliseconds top_patience{2000};
constexpr std::chrono::milliseconds size_checked_every{100};

struct TopOptions {
  std::chrono::milliseconds interval{1000};
  std::uint64_t count = 0;  // 0: any number
};

std::string time_of_day() {
  auto const now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

struct Look {
  Snapshot snapshot;
  std::optional<Failure> failure;
};

Look look(Session const& session) {
  Client const client(session);
  Look seen;
  auto& now = seen.snapshot;
  now.coordinator = session.coordinator;
  now.at = time_of_day();
  auto const fail = [&seen](Failure const& failure) {
    seen.failure = failure;
    seen.snapshot.failure = failure.problem.detail;
    return seen;
  };
  auto const status = client.ask<api::CoordinatorStatus>({.path = "/v1/status", .patience = top_patience});
  if (!status) return fail(status.error());
  auto workers = client.list_until<api::WorkerList>("/v1/workers", workers_per_page, top_patience,
                                                    [](auto const&) { return false; });
  if (!workers) return fail(workers.error());
  // One that hangs may be older than many that have ended.
  auto const has_all_running = [&status](auto const& collectives) {
    return std::ranges::count_if(collectives, std::not_fn(has_ended)) >= static_cast<std::ptrdiff_t>(status->running);
  };
  auto collectives =
      client.list_until<api::CollectiveList>("/v1/collectives", collectives_per_page, top_patience, has_all_running);
  if (!collectives) return fail(collectives.error());
  now.workers = std::move(*workers);
  now.groups = status->groups;
  now.degraded = status->degraded;
  now.collectives = std::move(*collectives);
  return seen;
}

ScreenSize draw(Snapshot const& now, Session const& session) {
  auto const size = LiveScreen::size();
  session.out << "\x1b[H\x1b[2J" << top_screen(now, size) << std::flush;
  return size;
}

// Shows the snapshot for this interval, again if the terminal is resized; returns false if the user quits. Reads the
// keys also if there is no time to wait for one.
bool linger(LiveScreen& screen, Snapshot const& now, std::chrono::milliseconds interval, Session const& session) {
  using std::chrono::milliseconds;
  constexpr char control_c = 3;
  auto const until = std::chrono::steady_clock::now() + interval;
  auto size = draw(now, session);
  for (auto left = interval;;) {
    if (auto const key = screen.key_within(std::clamp(left, milliseconds(0), size_checked_every));
        key == 'q' || key == 'Q' || key == control_c)
      return false;
    left = std::chrono::duration_cast<milliseconds>(until - std::chrono::steady_clock::now());
    if (left.count() <= 0) return true;
    if (LiveScreen::size() != size) size = draw(now, session);
  }
}

ExitCode show_on_screen(TopOptions const& options, Session const& session) {
  LiveScreen screen;
  for (std::uint64_t shown = 1;; ++shown) {
    auto const now = look(session).snapshot;
    if (shown == options.count) {
      draw(now, session);
      return ExitCode::ok;
    }
    if (!linger(screen, now, options.interval, session)) return ExitCode::ok;
  }
}

// A coordinator that does not answer at first means a wrong address; later it may come back.
ExitCode print_lines(TopOptions const& options, Session const& session) {
  for (std::uint64_t shown = 1;; ++shown) {
    auto const now = look(session);
    if (now.failure && shown == 1) return report(session, *now.failure);
    session.out << top_json(now.snapshot) << std::endl;
    if (shown == options.count || !session.out) return ExitCode::ok;
    std::this_thread::sleep_for(options.interval);
  }
}

}  // namespace

void add_top(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand("top", "Watch workers and collectives live; q quits");
  auto const options = std::make_shared<TopOptions>();
  add_duration(command, "--interval", options->interval, "between two looks")->default_str("1s");
  add_number(command, "--count", options->count, 0, UINT32_MAX, "end after so many looks");
  command.footer("Where standard output is no terminal, and with --json: one JSON object per look.");
  commands.bind(command, [options](Session const& session) {
    return session.json || !LiveScreen::is_possible() ? print_lines(*options, session)
                                                      : show_on_screen(*options, session);
  });
}

}  // namespace chorus::cli
