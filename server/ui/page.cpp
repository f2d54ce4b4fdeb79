#include "server/ui/page.hpp"

#include <algorithm>

#include "collectives/core/assert.hpp"
#include "server/ui/embedded.hpp"

namespace chorus::ui {
namespace {

// A mark that can be told without colour, and the word for it.
struct Sign {
  char const* level;
  char const* icon;
  char const* word;
};
constexpr Sign signs[] = {{"green", "✓", "Well"}, {"amber", "!", "Look"}, {"red", "✕", "Broken"}};

Sign const& sign_of(std::string_view level) {
  auto const found = std::ranges::find(signs, level, [](Sign const& sign) { return std::string_view(sign.level); });
  return found == std::end(signs) ? signs[2] : *found;
}

std::string_view skeleton() {
  auto const files = embedded_files();
  auto const file = std::ranges::find(files, std::string_view("index.html"), &EmbeddedFile::name);
  CHORUS_ASSERT(file != files.end(), "the page is embedded");
  return {reinterpret_cast<char const*>(file->bytes.data()), file->bytes.size()};
}

std::string reasons(api::Verdict const& verdict) {
  std::string text;
  for (auto const& reason : verdict.reasons)
    text += "<li data-level=\"" + escape_html(reason.level) + "\">" + escape_html(reason.text) + "</li>";
  return text;
}

std::string cells(std::vector<std::string> const& texts) {
  std::string row = "<tr>";
  for (auto const& text : texts) row += "<td>" + escape_html(text) + "</td>";
  return row + "</tr>";
}

// For browsers without scripts: who is there, and who is in which group.
std::string tables(std::vector<api::Worker> const& workers,
                   std::vector<std::shared_ptr<api::Group const>> const& groups) {
  std::string text = "<table><caption>Workers</caption><tr><th>Worker<th>State<th>Heard<th>Address</tr>";
  for (auto const& worker : workers)
    text += cells({worker.id, worker.state, std::to_string(worker.heard_ms_ago) + " ms ago", worker.url});
  text += "</table><table><caption>Groups</caption><tr><th>Group<th>State<th>Epoch<th>Ranks in order</tr>";
  for (auto const& group : groups) {
    std::string members;
    for (auto const& member : group->members) (members += members.empty() ? "" : ", ") += member.worker;
    text += cells({group->name, group->state, std::to_string(group->epoch), members});
  }
  return text + "</table>";
}

void replace(std::string& text, std::string_view mark, std::string_view with) {
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + with.size()))
    text.replace(at, mark.size(), with);
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

std::string page(api::Verdict const& verdict, std::string_view version, std::vector<api::Worker> const& workers,
                 std::vector<std::shared_ptr<api::Group const>> const& groups) {
  auto const& sign = sign_of(verdict.level);
  std::string text(skeleton());
  // What comes from outside goes last, so that it cannot contain a mark that is still to be replaced.
  replace(text, "{{level}}", sign.level);
  replace(text, "{{icon}}", sign.icon);
  replace(text, "{{word}}", sign.word);
  replace(text, "{{version}}", escape_html(version));
  auto const split = [&](std::string_view mark) {
    auto const at = text.find(mark);
    CHORUS_ASSERT(at != std::string::npos, "the page has a place for it");
    auto before = text.substr(0, at);
    text.erase(0, at + mark.size());
    return before;
  };
  auto filled = split("{{verdict}}") + escape_html(verdict.text);
  filled += split("{{reasons}}") + reasons(verdict);
  filled += split("{{tables}}") + tables(workers, groups);
  return filled + text;
}

}  // namespace chorus::ui
