#include "worker/links/handshake.hpp"

#include <doctest/doctest.h>

using namespace chorus;
using namespace chorus::links;

namespace {

http::Fields request_of(Introduction const& self) {
  auto fields = to_fields(self);
  fields.set("Connection", "Upgrade");
  fields.set("Upgrade", std::string(link_protocol));
  return fields;
}

}  // namespace

TEST_CASE("a worker introduces itself and is understood") {
  Introduction const self{"w7", 0x1234abcd, {}};
  CHECK(*to_fields(self).find("Chorus-Incarnation") == "000000001234abcd");
  CHECK(read_introduction(request_of(self)).value() == self);
}

TEST_CASE("a request to upgrade that lacks something is refused with its name") {
  auto const refusal = [](std::string const& name, std::string const& value) {
    auto fields = request_of({"w7", 1, {}});
    fields.set(name, value);
    auto const read = read_introduction(fields);
    return read.has_error() ? read.error().detail : "accepted";
  };
  CHECK(refusal("Connection", "keep-alive") == "Connection: Upgrade is missing");
  CHECK(refusal("Upgrade", "websocket") == "Upgrade: chorus-link/1 is missing");
  CHECK(refusal("Upgrade", "chorus-link/2") == "Upgrade: chorus-link/1 is missing");
  CHECK(refusal("Chorus-Worker", "") == "Chorus-Worker is missing");
  CHECK(refusal("Chorus-Incarnation", "12") == "Chorus-Incarnation is missing or not 16 hexadecimal digits");
  CHECK(refusal("Chorus-Incarnation", "000000000000000g") ==
        "Chorus-Incarnation is missing or not 16 hexadecimal digits");
  CHECK(refusal("Connection", "keep-alive, Upgrade") == "accepted");
}

TEST_CASE("an offer of shared memory is understood, and an invalid one is refused") {
  Introduction const self{"w7", 1, SharedMemory{{0x12, {0x34, ~std::uint64_t{0}}, 2u << 20}, 4096}};
  auto const text = std::string(*to_fields(self).find("Chorus-Shared-Memory"));
  CHECK(text == "0000000000000012;0000000000000034;ffffffffffffffff;0000000000200000;0000000000001000");
  CHECK(read_introduction(request_of(self)).value() == self);
  for (auto const& bad : {std::string(), std::string("x"), text + ";", ";" + text, text + "0", text.substr(1),
                          text.substr(17), text + ";0000000000000000", std::string(84, ';')}) {
    auto fields = request_of(self);
    fields.set("Chorus-Shared-Memory", bad);
    auto const read = read_introduction(fields);
    REQUIRE(read.has_error());
    CHECK(read.error().detail.starts_with("Chorus-Shared-Memory is not five numbers"));
  }
}

TEST_CASE("the answer to an offer is understood") {
  auto const answered = [](SharedMemoryAnswer const& answer) {
    return read_answer(switch_protocols({}, {.shared_memory = answer}).fields).value();
  };
  CHECK(answered({true, {}}) == SharedMemoryAnswer{true, {}});
  CHECK(answered({false, "another host"}) == SharedMemoryAnswer{false, "another host"});
  CHECK(answered({false, "a\nb"}).why_not == "a?b");
  CHECK(answered({false, std::string(1000, 'x')}).why_not.size() == 200);
  CHECK(answered({}) == SharedMemoryAnswer{false, "the peer does not share memory"});
  http::Fields fields;
  fields.set("Chorus-Shared-Memory", "perhaps");
  CHECK(read_answer(fields).has_error());
}

TEST_CASE("checksums are offered, and taken up unless one side forbids them or neither wants them") {
  using enum ChecksumMode;
  CHECK(checksum_offer(automatic, "http://10.0.0.2:7071") == ChecksumOffer::wanted);
  CHECK(checksum_offer(automatic, "http://worker-3:7071") == ChecksumOffer::wanted);
  for (auto const* at :
       {"http://127.0.0.2:7071", "http://localhost:7071", "http://[::1]:7071", "https://10.0.0.2:7071"}) {
    CHECK(checksum_offer(automatic, at) == ChecksumOffer::possible);
    CHECK(checksum_offer(on, at) == ChecksumOffer::wanted);
  }
  CHECK(checksum_offer(off, "http://10.0.0.2:7071") == ChecksumOffer::none);
  CHECK(takes_checksums(automatic, ChecksumOffer::wanted));
  CHECK_FALSE(takes_checksums(automatic, ChecksumOffer::possible));
  CHECK(takes_checksums(on, ChecksumOffer::possible));
  CHECK_FALSE(takes_checksums(on, ChecksumOffer::none));
  CHECK_FALSE(takes_checksums(off, ChecksumOffer::wanted));
}

TEST_CASE("offer and answer about checksums are understood at the other end") {
  for (auto const offer : {ChecksumOffer::none, ChecksumOffer::possible, ChecksumOffer::wanted}) {
    Introduction const self{"w7", 1, {}, offer};
    CHECK(read_introduction(request_of(self)).value() == self);
  }
  for (bool const takes : {true, false})
    CHECK(read_checksums_answer(switch_protocols({}, {.has_checksums = takes}).fields).value() == takes);
  http::Fields fields;
  fields.set("Chorus-Checksum", "md5");
  CHECK(read_checksums_answer(fields).has_error());
  auto unknown = request_of({"w7", 1, {}});
  unknown.set("Chorus-Checksum", "md5");
  CHECK(read_introduction(unknown).value().checksums == ChecksumOffer::none);
}

TEST_CASE("an offer of lent GPU memory is understood, and accepted or not") {
  Introduction const lender{.worker = "w7", .incarnation = 1, .lending_host = 0x1234};
  CHECK(*to_fields(lender).find("Chorus-Device-Memory") == "ipc; host=0000000000001234");
  CHECK(read_introduction(request_of(lender)).value() == lender);
  CHECK(!read_introduction(request_of({"w7", 1, {}}))->lending_host);
  for (auto const* unknown : {"ipc", "ipc; host=1234", "ipc; host=000000000000123g", "rdma"}) {
    auto fields = request_of({"w7", 1, {}});
    fields.set("Chorus-Device-Memory", unknown);
    CHECK(!read_introduction(fields)->lending_host);
  }
  for (auto const host : {std::optional<std::uint64_t>(0x1234), std::optional<std::uint64_t>()})
    CHECK(read_borrows_answer(switch_protocols({}, {.borrowing_host = host}).fields) == host);
}

TEST_CASE("an offer of messages both ways is understood, and accepted or not") {
  Introduction const dialer{.worker = "w7", .incarnation = 1, .both_ways = true};
  CHECK(*to_fields(dialer).find("Chorus-Messages") == "both-ways");
  CHECK(read_introduction(request_of(dialer)).value() == dialer);
  CHECK(!read_introduction(request_of({"w7", 1, {}}))->both_ways);
  auto unknown = request_of({"w7", 1, {}});
  unknown.set("Chorus-Messages", "in-circles");
  CHECK(!read_introduction(unknown)->both_ways);
  for (bool const takes : {true, false})
    CHECK(read_both_ways_answer(switch_protocols({}, {.both_ways = takes}).fields) == takes);
}
