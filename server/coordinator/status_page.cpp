#include "server/coordinator/status_page.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <initializer_list>

namespace chorus::coordinator {
namespace {

constexpr char const* head = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="2">
<meta name="viewport" content="width=device-width"><title>Chorus</title>
<style>
body{font:15px/1.4 system-ui,sans-serif;margin:2em auto;max-width:75em;padding:0 1em;color:#222}
table{border-collapse:collapse;width:100%;margin:.5em 0 2em}
th,td{text-align:left;padding:.25em .8em .25em 0;border-bottom:1px solid #ddd;vertical-align:top}
.bad{color:#a00;font-weight:bold}.number{text-align:right;font-variant-numeric:tabular-nums}
</style></head><body>
)";

using Cells = std::initializer_list<std::string>;

std::string row(char const* tag, Cells cells) {
  std::string text = "<tr>";
  for (auto const& cell : cells)
    text.append("<").append(tag).append(">").append(cell).append("</").append(tag).append(">");
  return text + "</tr>\n";
}

std::string state(std::string const& text) {
  auto const bad = text == "lost" || text == "degraded" || text == "failed";
  return bad ? "<span class=\"bad\">" + text + "</span>" : text;
}

std::string milliseconds(double seconds) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f ms", seconds * 1000);
  return text.data();
}

std::string place(Locality const& locality) {
  std::string text;
  for (auto const* part : {&locality.region, &locality.zone, &locality.rack, &locality.host})
    if (!part->empty()) text += (text.empty() ? "" : " / ") + *part;
  return escape_html(text);
}

// One sentence first: is everything well, and if not, what is wrong.
std::string verdict(Overview const& overview) {
  auto const lost = std::ranges::count(overview.workers, "lost", &api::Worker::state);
  auto const degraded = std::ranges::count(overview.groups, "degraded", &api::Group::state);
  auto text = std::to_string(overview.workers.size() - static_cast<std::size_t>(lost)) + " of " +
              std::to_string(overview.workers.size()) + " workers ready, " + std::to_string(overview.groups.size()) +
              " groups";
  if (degraded > 0) text += ", " + std::to_string(degraded) + " of them degraded: PUT each again to make a new epoch";
  return lost + degraded > 0 ? "<p class=\"bad\">" + text + "</p>\n" : "<p>" + text + "</p>\n";
}

std::string workers_table(std::vector<api::Worker> const& workers) {
  std::string text =
      "<h2>Workers</h2>\n<table>\n" + row("th", {"id", "state", "address", "locality", "heard", "groups", "version"});
  for (auto const& worker : workers) {
    std::string groups;
    for (auto const& group : worker.groups) groups += (groups.empty() ? "" : ", ") + escape_html(group);
    text += row("td", {escape_html(worker.id), state(worker.state), escape_html(worker.url), place(worker.locality),
                       std::to_string(worker.heard_ms_ago) + " ms ago", groups, escape_html(worker.version)});
  }
  return text + "</table>\n";
}

std::string groups_table(std::vector<api::Group> const& groups) {
  std::string text =
      "<h2>Groups</h2>\n<table>\n" + row("th", {"name", "state", "epoch", "ranks in order", "lost", "choices"});
  for (auto const& group : groups) {
    std::string members, lost, choices;
    for (auto const& member : group.members) members += (members.empty() ? "" : ", ") + escape_html(member.worker);
    for (auto const& worker : group.lost) lost += (lost.empty() ? "" : ", ") + escape_html(worker);
    for (auto const& line : group.selection) {
      choices += escape_html(line.algorithm);
      choices += line.max_bytes ? " to " + std::to_string(*line.max_bytes) + " bytes<br>" : " above";
    }
    text +=
        row("td", {escape_html(group.name), state(group.state), std::to_string(group.epoch), members, lost, choices});
  }
  return text + "</table>\n";
}

std::string collectives_table(std::vector<api::Collective> const& collectives) {
  std::string text =
      "<h2>Last collectives</h2>\n<table>\n" +
      row("th", {"id", "state", "group", "operation", "tensor", "bytes", "algorithm", "time", "predicted", "error"});
  for (auto const& one : collectives)
    text +=
        row("td", {"<a href=\"/v1/collectives/" + escape_html(one.id) + "\">" + escape_html(one.id) + "</a>",
                   state(one.state), escape_html(one.request.group),
                   escape_html(one.request.op) + " " + escape_html(one.request.reduce), escape_html(one.request.tensor),
                   std::to_string(one.bytes), escape_html(one.algorithm), milliseconds(one.seconds),
                   milliseconds(one.predicted_seconds), one.error ? escape_html(one.error->detail) : ""});
  return text + "</table>\n";
}

}  // namespace

std::string escape_html(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        escaped += c;
    }
  }
  return escaped;
}

std::string status_page(Overview const& overview) {
  auto const title = head + ("<h1>Chorus coordinator " + escape_html(overview.version) + "</h1>\n");
  if (!overview.shows_everything)
    return title + "<p>What runs here is shown to those who send a token.</p>\n</body></html>\n";
  std::string const warning =
      overview.is_unprotected
          ? "<p><strong>No authentication (--insecure-no-auth): whoever reaches this address may do everything."
            "</strong></p>\n"
          : "";
  return title + warning + verdict(overview) + workers_table(overview.workers) + groups_table(overview.groups) +
         collectives_table(overview.collectives) +
         "<p><a href=\"/v1/workers\">/v1/workers</a> <a href=\"/v1/groups\">/v1/groups</a> "
         "<a href=\"/v1/collectives\">/v1/collectives</a> <a href=\"/metrics\">/metrics</a></p>\n</body></html>\n";
}

}  // namespace chorus::coordinator
