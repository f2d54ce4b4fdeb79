// Small pure parts: durations, names, locks, epochs, paging, text for people.
#include <doctest/doctest.h>

#include "http/routing/paging.hpp"
#include "server/coordinator/admission/order.hpp"
#include "server/coordinator/collectives/lock_table.hpp"
#include "server/coordinator/groups/epochs.hpp"
#include "server/coordinator/membership/worker_client.hpp"
#include "server/coordinator/text/duration.hpp"
#include "server/coordinator/text/identifier.hpp"
#include "server/coordinator/text/wall_clock.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;

TEST_CASE("durations are whole numbers of ms, s or m, up to ten minutes") {
  CHECK(parse_duration("30s").value() == 30s);
  CHECK(parse_duration("500ms").value() == 500ms);
  CHECK(parse_duration("10m").value() == 10min);
  CHECK(parse_duration("0s").value() == 0ms);
  for (auto const* text : {"", "s", "30", "30 s", "-1s", "+1s", "1.5s", "1h", "30S", "601s", "11m", "600001ms",
                           "99999999999999999999s", "18446744073709551615m", "0x10s", "30ss"}) {
    CAPTURE(text);
    REQUIRE(parse_duration(text).has_error());
    CHECK(parse_duration(text).error().code == http::ProblemCode::bad_request);
  }
}

TEST_CASE("identifiers are safe in paths, logs and labels") {
  for (auto const* good : {"w0", "worker-1.rack_2", "A", "...", "-"}) CHECK(is_identifier(good));
  CHECK(is_identifier(std::string(64, 'a')));
  for (auto const* bad : {"", ".", "..", "a/b", "a b", "a%", "\xc3\xa9", "a\n"}) CHECK_FALSE(is_identifier(bad));
  CHECK_FALSE(is_identifier(std::string(65, 'a')));
  CHECK_FALSE(is_identifier(std::string_view("a\0b", 3)));
  CHECK(not_an_identifier("group", "a\nb", "/group").detail.find('\n') == std::string::npos);
}

TEST_CASE("tensor names have non-empty parts other than dots") {
  for (auto const* good : {"x", "grad/0", "a.b~c_d-e", "layer/1/weights"}) CHECK(is_tensor_name(good));
  for (auto const* bad : {"", "/", "/a", "a/", "a//b", ".", "a/..", "a b", "a%2F"}) CHECK_FALSE(is_tensor_name(bad));
  CHECK(is_tensor_name(std::string(255, 'a')));
  CHECK_FALSE(is_tensor_name(std::string(256, 'a')));
}

TEST_CASE("tickets without a common key hold at once, others in their order of arrival") {
  LockTable locks;
  auto const a = locks.enter({"w0/x", "w1/x"});
  auto const b = locks.enter({"w1/x", "w2/x"});
  auto const c = locks.enter({"w0/y", "w1/y"});
  auto const d = locks.enter({"w2/x"});
  CHECK(locks.holds(a));
  CHECK_FALSE(locks.holds(b));
  CHECK(locks.holds(c));
  CHECK_FALSE(locks.holds(d));
  locks.leave(a);
  CHECK(locks.holds(b));
  CHECK_FALSE(locks.holds(d));
  locks.leave(b);
  CHECK(locks.holds(d));
  locks.leave(c);
  locks.leave(d);
  CHECK(locks.empty());
}

TEST_CASE("a ticket that stops waiting lets the ones behind it through") {
  LockTable locks;
  auto const a = locks.enter({"k"});
  auto const b = locks.enter({"k", "k"});
  auto const c = locks.enter({"k"});
  locks.leave(b);
  CHECK_FALSE(locks.holds(c));
  locks.leave(a);
  CHECK(locks.holds(c));
  locks.leave(c);
  CHECK(locks.empty());
}

TEST_CASE("epochs are never given twice, also after forgotten deletions") {
  Epochs epochs(2);
  CHECK(epochs.next("a") == 1);
  CHECK(epochs.next("a") == 2);
  CHECK(epochs.next("b") == 1);
  epochs.seen("b", 7);
  epochs.seen("b", 3);
  CHECK(epochs.next("b") == 8);
  epochs.retire("a");
  CHECK(epochs.next("a") == 3);
  for (auto const* name : {"a", "b", "never"}) epochs.retire(name);
  CHECK(epochs.next("d") == 1);
  epochs.retire("d");
  CHECK(epochs.next("a") > 3);
  CHECK(epochs.next("b") == 9);
  CHECK(epochs.next("e") > 3);
}

TEST_CASE("a page begins after its cursor, also after a cursor that no service issued") {
  std::map<std::string, int, std::less<>> const numbers{{"a", 1}, {"b", 2}, {"d", 4}};
  struct List {
    std::vector<int> items;
    std::optional<std::string> next_cursor;
  };
  auto const show = [](int number) { return number; };
  auto const first = http::page_through<List>(numbers, {"", 2}, show);
  CHECK(first.items == std::vector{1, 2});
  CHECK(first.next_cursor == "b");
  auto const second = http::page_through<List>(numbers, {"b", 2}, show);
  CHECK(second.items == std::vector{4});
  CHECK_FALSE(second.next_cursor.has_value());
  CHECK(http::page_through<List>(numbers, {"c", 9}, show).items == std::vector{4});
  CHECK(http::page_through<List>(numbers, {"zzz", 9}, show).items.empty());
}

TEST_CASE("a name is one segment of a path") { CHECK(percent_encoded("grad/0 ~é") == "grad%2F0%20~%C3%A9"); }

TEST_CASE("times for people are RFC 3339") {
  CHECK(rfc3339(0) == "1970-01-01T00:00:00.000Z");
  CHECK(rfc3339(951782400.5) == "2000-02-29T00:00:00.500Z");
  CHECK(rfc3339(1767225599.9996) == "2026-01-01T00:00:00.000Z");
}
