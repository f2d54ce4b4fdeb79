#include "server/cli/output/top_view.hpp"

#include <algorithm>
#include <array>
#include <boost/json.hpp>
#include <cstdio>
#include <sstream>

#include "server/cli/output/table.hpp"
#include "server/cli/text/format.hpp"
#include "server/cli/text/units.hpp"

namespace chorus::cli {
namespace {

std::string decimal(double value, int digits) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.*f", digits, value);
  return text.data();
}

std::size_t count(auto const& items, auto const& condition) {
  return static_cast<std::size_t>(std::ranges::count_if(items, condition));
}

bool is_ready(api::Worker const& worker) { return worker.state == "ready"; }
bool is_stalled(api::Collective const& collective) { return !has_ended(collective) && collective.stalled.has_value(); }

std::string summary(Snapshot const& now) {
  auto const ready = count(now.workers, is_ready);
  auto const stalled = count(now.collectives, is_stalled);
  auto const running = count(now.collectives, [](auto const& one) { return !has_ended(one); });
  auto text = std::to_string(ready) + " of " + format_count(now.workers.size(), "worker") + " ready, " +
              format_count(now.groups, "group");
  if (now.degraded > 0) text += " (" + std::to_string(now.degraded) + " degraded)";
  text += ", " + std::to_string(running) + " running";
  if (stalled > 0) text += ", " + std::to_string(stalled) + " STALLED";
  return text;
}

std::vector<std::string> lines_of(Table const& table) {
  std::ostringstream text;
  table.print(text);
  std::istringstream read(text.str());
  std::vector<std::string> lines;
  for (std::string line; std::getline(read, line);) lines.push_back(line);
  return lines;
}

// Returns GB/s of one rank's tensor.
std::string speed_of(api::Collective const& one) {
  return one.state == "succeeded" && one.seconds > 0 ? decimal(static_cast<double>(one.bytes) / one.seconds / 1e9, 3)
                                                     : std::string();
}

// Sorts by key; equal items keep their order.
template <class Item>
std::vector<Item> by_urgency(std::vector<Item> const& items, auto const& key, int keys) {
  std::vector<Item> sorted;
  for (int k = 0; k < keys; ++k)
    for (auto const& item : items)
      if (key(item) == k) sorted.push_back(item);
  return sorted;
}

std::vector<std::string> collective_lines(Snapshot const& now) {
  Table table({{"COLLECTIVE"},
               {"STATE"},
               {"OP"},
               {"ALGORITHM"},
               {"BYTES", Align::right},
               {"SECONDS", Align::right},
               {"GB/S", Align::right},
               {"WHY"}});
  auto const key = [](api::Collective const& one) { return has_ended(one) ? 2 : is_stalled(one) ? 0 : 1; };
  for (auto const& one : by_urgency(now.collectives, key, 3)) {
    std::string why;
    if (is_stalled(one)) why = one.stalled->text;
    if (one.error) why = one.error->detail;
    table.add({one.id, is_stalled(one) ? "STALLED" : one.state, one.request.op, one.algorithm,
               one.bytes > 0 ? format_bytes(one.bytes) : "", one.seconds > 0 ? decimal(one.seconds, 4) : "",
               speed_of(one), why.substr(0, why.find('\n'))});
  }
  return lines_of(table);
}

std::vector<std::string> worker_lines(Snapshot const& now) {
  Table table({{"WORKER"}, {"STATE"}, {"HEARD", Align::right}, {"LOCALITY"}, {"GROUPS"}});
  for (auto const& worker : by_urgency(
           now.workers, [](api::Worker const& one) { return is_ready(one) ? 1 : 0; }, 2))
    table.add({worker.id, is_ready(worker) ? worker.state : "LOST",
               decimal(static_cast<double>(worker.heard_ms_ago) / 1000, 1) + " s", format_locality(worker.locality),
               join(worker.groups, ",")});
  return lines_of(table);
}

// Limits a line to so many code points, without control characters for the terminal.
std::string fit(std::string const& line, std::size_t columns) {
  std::string text;
  std::size_t points = 0;
  for (char const c : line) {
    auto const byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) != 0x80 && ++points > columns) break;
    text += byte < 0x20 || byte == 0x7F ? '?' : c;
  }
  return text;
}

void add_part(std::vector<std::string>& screen, std::vector<std::string> part, std::size_t rows) {
  if (rows < 2) return;
  if (part.size() > rows) {
    auto const hidden = part.size() - rows + 1;
    part.resize(rows - 1);
    part.push_back("... and " + std::to_string(hidden) + " more");
  }
  screen.insert(screen.end(), part.begin(), part.end());
}

}  // namespace

std::string top_screen(Snapshot const& now, ScreenSize size) {
  std::vector<std::string> screen{"chorus top  " + now.coordinator + "  " + now.at + "  (q quits)"};
  if (!now.failure.empty()) {
    screen.push_back("no answer: " + now.failure);
  } else {
    screen.push_back(summary(now));
    auto const workers = worker_lines(now), collectives = collective_lines(now);
    bool const has_collectives = !now.collectives.empty();
    auto const around = screen.size() + (has_collectives ? 2U : 1U);  // including the empty line above each part
    auto const rows = size.rows - std::min(size.rows, around);
    // Each part gets half, and the lines that the other does not need.
    auto const left = has_collectives ? rows - std::min(rows, collectives.size()) : rows;
    auto const for_workers = std::min(workers.size(), std::max(rows / 2, left));
    screen.emplace_back();
    add_part(screen, workers, for_workers);
    if (has_collectives) {
      screen.emplace_back();
      add_part(screen, collectives, rows - for_workers);
    }
  }
  if (screen.size() > size.rows) screen.resize(size.rows);
  std::string text;
  for (auto const& line : screen) text += (text.empty() ? "" : "\n") + fit(line, size.columns);
  return text;
}

std::string top_json(Snapshot const& now) {
  boost::json::array running;
  for (auto const& one : now.collectives) {
    if (has_ended(one)) continue;
    boost::json::object object{{"id", one.id}, {"state", one.state}, {"op", one.request.op}, {"bytes", one.bytes}};
    if (one.stalled) object["stalled"] = one.stalled->text;
    running.push_back(std::move(object));
  }
  boost::json::array lost;
  for (auto const& worker : now.workers)
    if (!is_ready(worker)) lost.emplace_back(worker.id);
  boost::json::object object{{"at", now.at},
                             {"workers", now.workers.size()},
                             {"ready", count(now.workers, is_ready)},
                             {"lost", std::move(lost)},
                             {"groups", now.groups},
                             {"degraded", now.degraded},
                             {"running", std::move(running)},
                             {"stalled", count(now.collectives, is_stalled)}};
  if (!now.failure.empty()) object = {{"at", now.at}, {"failure", now.failure}};
  return boost::json::serialize(object);
}

}  // namespace chorus::cli
