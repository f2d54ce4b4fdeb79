#include <doctest/doctest.h>

#include <limits>

#include "collectives/topology/dgx1.hpp"
#include "server/coordinator/membership/membership.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using std::chrono_literals::operator""ms;
using std::chrono_literals::operator""s;
using std::chrono_literals::operator""min;
using std::chrono_literals::operator""h;
using http::ProblemCode;

namespace {

TimePoint const start{1h};

Newcomer newcomer(std::string id, std::uint64_t incarnation = 1) {
  return {std::move(id), incarnation, "http://h:1", {}, "1"};
}

api::JoinRequest good_join() {
  return {"w0", "00000000000000aa", "http://10.0.0.1:7071/", {"eu", "z", "r", "h"}, "0.1.0"};
}

std::vector<std::string> ids(std::vector<Worker> const& workers) {
  std::vector<std::string> found;
  for (auto const& worker : workers) found.push_back(worker.id);
  return found;
}

// Calls expire() so often that it does not assume a pause of the process; returns the workers that were lost.
std::vector<std::string> lost_until(Membership& membership, TimePoint from, TimePoint to) {
  std::vector<std::string> lost;
  for (auto now = from; now <= to; now += 100ms)
    for (auto const& id : ids(membership.expire(now).lost)) lost.push_back(id);
  return lost;
}

}  // namespace

TEST_CASE(
    "workers that have missed a renewal are silent; those that may be cut off have one more lease, and four in total") {
  Membership membership(1000ms);
  for (auto const* const id : {"w0", "w1", "w2"}) REQUIRE(membership.join(newcomer(id), start).has_value());
  for (auto now = start; now < start + 500ms; now += 100ms) CHECK(membership.expire(now).lost.empty());
  REQUIRE(membership.renew("w2", api::to_hex(1), {}, start + 500ms).has_value());
  CHECK(membership.silent(start + 500ms).empty());
  std::set<std::string, std::less<>> const unheard{"w0", "w1"};
  CHECK(membership.silent(start + 600ms) == unheard);
  std::vector<std::string> lost;
  for (auto now = start + 600ms; now <= start + 4000ms; now += 100ms) {
    REQUIRE(membership.renew("w2", api::to_hex(1), {}, now).has_value());
    for (auto const& id : ids(membership.expire(now, unheard).lost)) lost.push_back(id);
  }
  CHECK(lost.empty());
  // Waiting renewals arrive, one after the other.
  REQUIRE(membership.renew("w0", api::to_hex(1), {}, start + 4000ms).has_value());
  REQUIRE(membership.renew("w2", api::to_hex(1), {}, start + 4000ms).has_value());
  CHECK(ids(membership.expire(start + 4100ms).lost) == std::vector<std::string>{"w1"});
}

TEST_CASE("workers that have fallen silent together are lost together, one that was silent for less is not") {
  Membership membership(1000ms);
  for (auto const* const id : {"w0", "w1", "w2"}) REQUIRE(membership.join(newcomer(id), start).has_value());
  std::vector<std::string> lost;
  auto now = start;
  for (; lost.empty() && now < start + 5000ms; now += 100ms) {
    if (now <= start + 300ms) REQUIRE(membership.renew("w1", api::to_hex(1), {}, now).has_value());
    if (now <= start + 1500ms) REQUIRE(membership.renew("w2", api::to_hex(1), {}, now).has_value());
    lost = ids(membership.expire(now, membership.silent(now)).lost);
  }
  CHECK(now == start + 4200ms);
  CHECK(lost == std::vector<std::string>{"w0", "w1"});
}

TEST_CASE("a worker that was cut off has one lease from the moment in which most are heard again") {
  Membership membership(1000ms);
  for (auto const* const id : {"w0", "w1"}) REQUIRE(membership.join(newcomer(id), start).has_value());
  for (auto now = start; now <= start + 1500ms; now += 100ms)
    CHECK(membership.expire(now, membership.silent(now)).lost.empty());
  REQUIRE(membership.renew("w0", api::to_hex(1), {}, start + 1500ms).has_value());
  CHECK(lost_until(membership, start + 1600ms, start + 2400ms).empty());
  CHECK(lost_until(membership, start + 2500ms, start + 2500ms) == std::vector<std::string>{"w1"});
}

TEST_CASE("a join of an earlier term changes nothing; a newer one is heard, also of a worker that is not lost") {
  Membership membership(1000ms);
  auto first = newcomer("w0"), second = newcomer("w0");
  first.term = 0;
  second.term = 1;
  REQUIRE(membership.join(first, start).has_value());
  CHECK(membership.join(second, start).value().revived);
  CHECK_FALSE(membership.join(second, start).value().changed());
  CHECK_FALSE(membership.join(first, start).value().changed());
  CHECK(membership.find("w0")->term == 1);
  CHECK(membership.kept("w0")->self.term == 1);
}

TEST_CASE("a well-formed join loses its trailing slash and nothing else") {
  auto const checked = check_join(good_join());
  REQUIRE(checked.has_value());
  CHECK(checked.value().url == "http://10.0.0.1:7071");
  CHECK(checked.value().incarnation == 0xaa);
  CHECK(checked.value().locality.zone == "z");
}

TEST_CASE("a malformed join names every wrong field") {
  auto const wrong = [](auto change) {
    auto request = good_join();
    change(request);
    auto const checked = check_join(request);
    REQUIRE(checked.has_error());
    CHECK(checked.error().code == ProblemCode::invalid_field);
    std::string pointers;
    for (auto const& error : checked.error().errors) pointers += error.pointer + " ";
    return pointers;
  };
  CHECK(wrong([](auto& r) { r.id = "a/b"; }) == "/id ");
  CHECK(wrong([](auto& r) { r.incarnation = "xyz"; }) == "/incarnation ");
  for (auto const* url :
       {"", "ftp://h:1", "h:1", "http://", "http://h:1/path", "http://h:0", "http://h:99999", "http://h\n:1"})
    CHECK(wrong([url](auto& r) { r.url = url; }) == "/url ");
  CHECK(wrong([](auto& r) { r.locality.rack = "a\x01"; }) == "/locality/rack ");
  CHECK(wrong([](auto& r) { r.locality.host = std::string(129, 'h'); }) == "/locality/host ");
  CHECK(wrong([](auto& r) { r.version = "1\r\n"; }) == "/version ");
  CHECK(wrong([](auto& r) { r.id.clear(), r.url.clear(); }) == "/id /url ");
}

TEST_CASE("impossible GPUs are refused, with every wrong field") {
  constexpr auto nan = std::numeric_limits<double>::quiet_NaN(), infinite = std::numeric_limits<double>::infinity();
  auto request = good_join();
  request.gpus = topology::dgx1_gpus();
  CHECK(check_join(request).value().gpus == request.gpus);
  auto const wrong = [&](auto change) {
    auto changed = request;
    change(changed.gpus);
    auto const checked = check_join(changed);
    REQUIRE(checked.has_error());
    std::string pointers;
    for (auto const& error : checked.error().errors) pointers += error.pointer + " ";
    return pointers;
  };
  for (auto const* uuid : {"", "GPU-1", "GPU-00000000-0000-0000-0000-00000000000g"})
    CHECK(wrong([uuid](auto& gpus) { gpus[1].uuid = uuid; }) == "/gpus/1/uuid ");
  CHECK(wrong([](auto& gpus) { gpus[1].uuid = gpus[0].uuid; }) == "/gpus/1/uuid ");
  CHECK(wrong([](auto& gpus) { gpus[1].pci_address = "17:00.0"; }) == "/gpus/1/pci_address ");
  CHECK(wrong([](auto& gpus) { gpus[2].name = "a\x01"; }) == "/gpus/2/name ");
  CHECK(wrong([](auto& gpus) { gpus[2].name = std::string(97, 'a'); }) == "/gpus/2/name ");
  CHECK(wrong([](auto& gpus) { gpus[0].pcie_generation = 33; }) == "/gpus/0/pcie_generation ");
  CHECK(wrong([](auto& gpus) { gpus[0].pcie_width = 33; }) == "/gpus/0/pcie_width ");
  for (auto const rate : {-1.0, 1e7, 1e-10, nan, infinite}) {
    CHECK(wrong([rate](auto& gpus) { gpus[0].memory_gbyte_per_s = rate; }) == "/gpus/0/memory_gbyte_per_s ");
    CHECK(wrong([rate](auto& gpus) { gpus[0].nvlinks[1].gbyte_per_s = rate; }) == "/gpus/0/nvlinks/1/gbyte_per_s ");
  }
  CHECK(wrong([](auto& gpus) { gpus[0].nvlinks[0].gbyte_per_s = 0; }) == "/gpus/0/nvlinks/0/gbyte_per_s ");
  for (auto const links : {0u, 1025u})
    CHECK(wrong([links](auto& gpus) { gpus[0].nvlinks[0].links = links; }) == "/gpus/0/nvlinks/0/links ");
  CHECK(wrong([](auto& gpus) { gpus[0].nvlinks[0].to = "nowhere"; }) == "/gpus/0/nvlinks/0/to ");
  CHECK(wrong([](auto& gpus) { gpus[0].nvlinks[1].to = gpus[0].nvlinks[0].to; }) == "/gpus/0/nvlinks/1/to ");
  CHECK(wrong([](auto& gpus) { gpus[0].nvlinks[1].to = gpus[0].pci_address; }) == "/gpus/0/nvlinks/1/to ");
  CHECK(wrong([](auto& gpus) { gpus[0].nvlinks.resize(65); }) == "/gpus/0/nvlinks ");
  CHECK(wrong([](auto& gpus) { gpus.resize(65); }) == "/gpus ");
}

TEST_CASE("a worker is ready while it renews, and lost one lease after it was last heard") {
  Membership membership(1000ms);
  CHECK(membership.join(newcomer("w0"), start).value().created);
  CHECK(membership.join(newcomer("w1"), start).value().created);
  CHECK(lost_until(membership, start, start + 900ms).empty());
  CHECK(membership.renew("w1", "0000000000000001", {}, start + 900ms)->lease == 1000ms);
  CHECK(lost_until(membership, start + 1000ms, start + 1800ms) == std::vector<std::string>{"w0"});
  CHECK(membership.ready_count() == 1);
  CHECK(membership.find("w0") != nullptr);
  CHECK_FALSE(membership.find("w0")->ready);
  CHECK(membership.renew("w0", "0000000000000001", {}, start + 1800ms).error().code == ProblemCode::unknown_worker);
  auto const again = membership.join(newcomer("w0"), start + 1800ms).value();
  CHECK(again.revived);
  CHECK_FALSE(again.fenced.has_value());
  CHECK(membership.ready_count() == 2);
}

TEST_CASE("joining again with the same incarnation only renews") {
  Membership membership(1000ms);
  CHECK(membership.join(newcomer("w0"), start).has_value());
  auto const again = membership.join(newcomer("w0"), start + 800ms).value();
  CHECK_FALSE(again.created);
  CHECK_FALSE(again.revived);
  CHECK(lost_until(membership, start + 800ms, start + 1700ms).empty());
}

TEST_CASE("a new incarnation fences the old one, which can neither renew nor join nor leave in its place") {
  Membership membership(1000ms);
  CHECK(membership.join(newcomer("w0", 1), start).has_value());
  auto const joined = membership.join(newcomer("w0", 2), start).value();
  CHECK(joined.fenced == 1);
  CHECK_FALSE(joined.created);
  CHECK(membership.renew("w0", api::to_hex(1), {}, start).error().code == ProblemCode::epoch_fenced);
  CHECK(membership.join(newcomer("w0", 1), start).error().code == ProblemCode::epoch_fenced);
  CHECK(membership.leave("w0", api::to_hex(1)).error().code == ProblemCode::epoch_fenced);
  CHECK(membership.renew("w0", api::to_hex(2), {}, start).has_value());
  CHECK(membership.join(newcomer("w0", 3), start).value().fenced == 2);
}

TEST_CASE("takeovers of a name from processes with a lease are counted for a minute") {
  Membership membership(1000ms);
  auto const join = [&](std::uint64_t incarnation, std::string url, TimePoint now) {
    auto one = newcomer("w0", incarnation);
    one.url = std::move(url);
    return membership.join(one, now).value().taken_over;
  };
  auto const shown = [&](TimePoint now) { return membership.show(*membership.find("w0"), now); };
  CHECK_FALSE(join(1, "http://a:1", start));
  CHECK(join(2, "http://b:1", start + 500ms));
  CHECK(join(3, "http://a:2", start + 1000ms));
  CHECK(shown(start + 1000ms).takeovers == 2);
  CHECK(shown(start + 1000ms).rivals == std::vector<std::string>{"http://a:1", "http://a:2", "http://b:1"});
  // The same process again, and one that follows a lost one, take over nothing.
  CHECK_FALSE(join(3, "http://a:2", start + 1500ms));
  CHECK(lost_until(membership, start + 1500ms, start + 3000ms).size() == 1);
  CHECK_FALSE(join(4, "http://b:2", start + 3s));
  CHECK(shown(start + 3s).takeovers == 2);
  CHECK(shown(start + 62s).takeovers == 0);
  CHECK(shown(start + 62s).rivals.empty());
}

TEST_CASE("a worker that has left is unknown at once") {
  Membership membership(1000ms);
  CHECK(membership.join(newcomer("w0"), start).has_value());
  CHECK(membership.leave("w0", std::nullopt).value().id == "w0");
  CHECK(membership.find("w0") == nullptr);
  CHECK(membership.leave("w0", std::nullopt).error().code == ProblemCode::unknown_worker);
  CHECK(membership.renew("w0", api::to_hex(1), {}, start).error().code == ProblemCode::unknown_worker);
}

TEST_CASE("leases do not pass while the coordinator itself does not run") {
  Membership membership(1000ms);
  CHECK(membership.join(newcomer("w0"), start).has_value());
  CHECK(membership.expire(start).lost.empty());
  CHECK(membership.expire(start + 60s).lost.empty());
  CHECK(lost_until(membership, start + 60s, start + 62s) == std::vector<std::string>{"w0"});
}

TEST_CASE("lost workers are forgotten after ten minutes") {
  Membership membership(1000ms);
  CHECK(membership.join(newcomer("w0"), start).has_value());
  CHECK(lost_until(membership, start, start + 10min - 1s).size() == 1);
  CHECK(membership.find("w0") != nullptr);
  (void)lost_until(membership, start + 10min - 1s, start + 10min + 1s);
  CHECK(membership.find("w0") == nullptr);
}

TEST_CASE("evidence marks only its own incarnation as lost") {
  Membership membership(1000ms);
  CHECK(membership.join(newcomer("w0", 2), start).has_value());
  CHECK_FALSE(membership.mark_lost("w0", 1));
  CHECK_FALSE(membership.mark_lost("w1", 2));
  CHECK(membership.mark_lost("w0", 2));
  CHECK_FALSE(membership.mark_lost("w0", 2));
}

TEST_CASE("ready workers are listed in order of arrival; a new incarnation counts as a new arrival") {
  Membership membership(1000ms);
  for (auto const* id : {"c", "a", "b"}) CHECK(membership.join(newcomer(id), start).has_value());
  CHECK(membership.join(newcomer("a"), start).has_value());
  CHECK(ids(membership.ready_in_order_of_arrival()) == std::vector<std::string>{"c", "a", "b"});
  CHECK(membership.join(newcomer("c", 9), start).has_value());
  CHECK(ids(membership.ready_in_order_of_arrival()) == std::vector<std::string>{"a", "b", "c"});
}

TEST_CASE("a worker shows the time since it was last heard") {
  Membership membership(5000ms);
  CHECK(membership.join(newcomer("w0", 0xab), start).has_value());
  auto const shown = membership.show(*membership.find("w0"), start + 1234ms);
  CHECK(shown.incarnation == "00000000000000ab");
  CHECK(shown.state == "ready");
  CHECK(shown.lease_ms == 5000);
  CHECK(shown.heard_ms_ago == 1234);
}

TEST_CASE("a promised lease holds until its holder has read another one") {
  Membership before(9000ms), after(500ms);
  CHECK(before.join(newcomer("w0"), start).has_value());
  CHECK(after.restore({*before.kept("w0")}, start).empty());
  CHECK(lost_until(after, start, start + 8900ms).empty());
  // The answer does not arrive: the holder continues with the old lease.
  auto const first = after.renew("w0", api::to_hex(1), 9000, start + 8900ms);
  CHECK(first->lease == 500ms);
  CHECK_FALSE(first->promise_changed);
  CHECK(lost_until(after, start + 8900ms, start + 17000ms).empty());
  CHECK(after.show(*after.find("w0"), start).lease_ms == 9000);
  CHECK(after.renew("w0", api::to_hex(1), 9000, start + 17000ms)->lease == 500ms);
  // This answer arrives.
  CHECK(after.renew("w0", api::to_hex(1), 500, start + 17100ms)->promise_changed);
  CHECK(after.kept("w0")->lease_ms == 500);
  CHECK(lost_until(after, start + 17100ms, start + 17600ms).empty());
  CHECK(lost_until(after, start + 17600ms, start + 17700ms) == std::vector<std::string>{"w0"});
}

TEST_CASE("a worker of an earlier release is assumed to have read its first answer") {
  Membership before(9000ms), after(500ms);
  CHECK(before.join(newcomer("w0"), start).has_value());
  CHECK(after.restore({*before.kept("w0")}, start).empty());
  CHECK(lost_until(after, start, start + 8900ms).empty());
  CHECK(after.renew("w0", api::to_hex(1), {}, start + 8900ms)->promise_changed);
  CHECK(lost_until(after, start + 8900ms, start + 9400ms).empty());
  CHECK(lost_until(after, start + 9400ms, start + 9500ms) == std::vector<std::string>{"w0"});
}

TEST_CASE("a renewal that claims a longer lease than promised does not get it") {
  Membership membership(500ms);
  CHECK(membership.join(newcomer("w0"), start).has_value());
  CHECK_FALSE(membership.renew("w0", api::to_hex(1), 60000, start)->promise_changed);
  CHECK(lost_until(membership, start, start + 600ms).size() == 1);
}

TEST_CASE("a longer lease is in the journal before any worker hears of it, so that the next process knows it") {
  Membership first(500ms), second(9000ms), third(500ms);
  CHECK(first.join(newcomer("w0"), start).has_value());
  CHECK(second.restore({*first.kept("w0")}, start) == std::vector<std::string>{"w0"});
  CHECK(third.restore({*second.kept("w0")}, start).empty());
  CHECK(lost_until(third, start, start + 8900ms).empty());
}

TEST_CASE("workers have one minute if the journal does not have their promise") {
  Membership before(500ms), after(500ms);
  CHECK(before.join(newcomer("w0"), start).has_value());
  auto kept = *before.kept("w0");
  kept.lease_ms.reset();
  CHECK(after.restore({kept}, start) == std::vector<std::string>{"w0"});
  CHECK(lost_until(after, start, start + 59s).empty());
  CHECK(lost_until(after, start + 59s, start + 61s).size() == 1);
}
