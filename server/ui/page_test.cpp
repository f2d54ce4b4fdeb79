#include "server/ui/page.hpp"

#include <doctest/doctest.h>

#include <string>

#include "server/ui/embedded.hpp"
#include "tests/support/mentions.hpp"

using namespace chorus;
using chorus::testing::mentions;

namespace {

constexpr char const* version = "1.2.3";

api::Verdict verdict(std::string level, std::string text) { return {std::move(level), std::move(text), {}}; }

}  // namespace

TEST_CASE("the verdict can be read without scripts") {
  auto red = verdict("red", "3 of 4 workers ready");
  red.reasons.push_back({"red", "group g is degraded", {}, "g", {}, {}});
  api::Group group;
  group.name = "g";
  group.members.resize(1);
  group.members[0].worker = "w0";
  auto const page = ui::page(red, version, {}, {std::make_shared<api::Group const>(group)});
  for (auto const* part :
       {"data-level=\"red\"", "Broken", "3 of 4 workers ready", "group g is degraded", "w0", "1.2.3"})
    CHECK(mentions(page, part));
  CHECK_FALSE(mentions(page, "{{"));
  CHECK(mentions(ui::page(verdict("green", "all"), version, {}, {}), "Well"));
  CHECK(mentions(ui::page(verdict("amber", "all"), version, {}, {}), "Look"));
}

TEST_CASE("what comes from outside is shown, not interpreted") {
  CHECK(ui::escape_html("<a href='x'>&\"") == "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
  auto hostile = verdict("red", "<img src=x onerror=alert(1)> {{tables}}");
  hostile.reasons.push_back({"red", "<b>{{tables}}</b>", {}, {}, {}, {}});
  api::Worker worker;
  worker.id = "w<script>";
  auto const page = ui::page(hostile, version, {worker}, {});
  CHECK_FALSE(mentions(page, "<img src=x"));
  CHECK_FALSE(mentions(page, "<b>"));
  CHECK_FALSE(mentions(page, "w<script>"));
  CHECK(mentions(page, "w&lt;script&gt;"));
  CHECK(mentions(page, "onerror=alert(1)&gt; {{tables}}"));
}

TEST_CASE("every file that the page names is embedded, and nothing is loaded from elsewhere") {
  for (auto const& file : ui::embedded_files()) {
    std::string const text(reinterpret_cast<char const*>(file.bytes.data()), file.bytes.size());
    CAPTURE(file.name);
    CHECK(file.sha256.size() == 64);
    CHECK_FALSE(text.empty());
    for (auto const* outside : {"src=\"http", "href=\"http", "from \"http", "@import", "innerHTML", "eval("})
      CHECK_FALSE(mentions(text, outside));
    for (auto at = text.find("/ui/"); at != std::string::npos; at = text.find("/ui/", at + 1)) {
      auto const name = text.substr(at + 4, text.find_first_of("\"' )`", at) - at - 4);
      bool embedded = false;
      for (auto const& other : ui::embedded_files()) embedded |= other.name == name;
      CHECK_MESSAGE(embedded, name);
    }
  }
}
