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
  Introduction const self{"w7", 0x1234abcd};
  CHECK(*to_fields(self).find("Chorus-Incarnation") == "000000001234abcd");
  CHECK(read_introduction(request_of(self)).value() == self);
}

TEST_CASE("a request to upgrade that lacks something is refused with its name") {
  auto const refusal = [](std::string const& name, std::string const& value) {
    auto fields = request_of({"w7", 1});
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
