// Entity tags, digest fields and paths, without a server.
#include <doctest/doctest.h>

#include "worker/service/tensors/digest.hpp"
#include "worker/service/tensors/entity_tag.hpp"
#include "worker/service/tensors/tensor_description.hpp"

using namespace chorus;
using namespace chorus::service;

namespace {

http::Checked<std::optional<TagList>> tags(std::string value) {
  http::Fields fields;
  fields.set("If-Match", std::move(value));
  return find_tags(fields, "If-Match");
}

std::span<std::byte const> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

}  // namespace

TEST_CASE("a tag names the process and the version") {
  CHECK(entity_tag(0xab, 7) == "\"00000000000000ab-7\"");
  CHECK(entity_tag(0xab, 7) != entity_tag(0xac, 7));
}

TEST_CASE("lists of tags match strongly and weakly") {
  auto const list = tags(R"("a" , W/"b","c,d")").value().value();
  CHECK(list.tags.size() == 3);
  CHECK(list.matches_strongly("\"a\""));
  CHECK(list.matches_strongly("\"c,d\""));
  CHECK_FALSE(list.matches_strongly("\"b\""));
  CHECK(list.matches_weakly("\"b\""));
  CHECK_FALSE(list.matches_weakly("\"x\""));
  CHECK(tags("*").value()->matches_strongly("\"x\""));
  CHECK_FALSE(find_tags(http::Fields(), "If-Match").value().has_value());
}

TEST_CASE("malformed lists of tags are refused") {
  for (auto const* garbage : {"", "a", "\"a", "\"a\" \"b\"", "\"a\",", "*,\"a\"", "W/a", "W/", "\"", ","})
    CHECK(tags(garbage).error().code == http::ProblemCode::bad_request);
}

TEST_CASE("digests are those of the RFC's examples") {
  CHECK(to_field(digest(DigestAlgorithm::sha_256, bytes_of("{\"hello\": \"world\"}\n"))) ==
        "sha-256=:RK/0qy18MlBSVnWgjwz6lZEWjP/lF5HF9bvEF8FabDg=:");
  CHECK(digest(DigestAlgorithm::sha_512, bytes_of("")).base64.size() == 88);
  CHECK(fast_digest(bytes_of("")) == "2d06800538d394c2");
  CHECK(fast_digest(bytes_of("a")) != fast_digest(bytes_of("b")));
}

TEST_CASE("a digest field reads what it writes, and the strongest of several") {
  auto const short_one = digest(DigestAlgorithm::sha_256, bytes_of("x"));
  auto const long_one = digest(DigestAlgorithm::sha_512, bytes_of("x"));
  CHECK(parse_digest_field(to_field(short_one)).value() == short_one);
  CHECK(parse_digest_field(to_field(short_one) + ", " + to_field(long_one)).value() == long_one);
  CHECK(parse_digest_field(to_field(long_one) + "," + to_field(short_one)).value() == long_one);
  CHECK_FALSE(parse_digest_field("md5=:AAAA:").value().has_value());
}

TEST_CASE("malformed digest fields are refused") {
  for (auto const* garbage : {"", "sha-256", "sha-256=", "sha-256=AAAA", "sha-256=:AAAA",
                              "sha-256=:AAAA:", "sha-256=:%%%%:", "=:AAAA:", "md5=:AAAA:,", "sha-256=::"})
    CHECK(parse_digest_field(garbage).error().code == http::ProblemCode::bad_request);
}

TEST_CASE("the most wanted digest is given; no wish is ever refused") {
  CHECK(parse_wanted_digest("sha-256=1") == DigestAlgorithm::sha_256);
  CHECK(parse_wanted_digest("sha-256=1, sha-512=10") == DigestAlgorithm::sha_512);
  for (auto const* nothing : {"", "sha-256=0", "sha-256", "md5=9", "sha-256=-1", "sha-256=99999999999999999999", "%%%"})
    CHECK_FALSE(parse_wanted_digest(nothing).has_value());
}

TEST_CASE("a tensor's name is one segment of its path") {
  CHECK(tensor_path("layer/grad.0") == "/v1/tensors/layer%2Fgrad.0");
}
