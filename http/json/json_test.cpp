// Hostile and mistaken JSON, and problems as JSON.
#include "http/json/json.hpp"

#include <doctest/doctest.h>

#include <array>

#include "http/api/cluster/membership.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/json/json_text.hpp"

using namespace chorus;
using namespace chorus::http;

namespace {

Problem problem_of(std::string_view body) {
  auto const decoded = decode<api::CollectiveRequest>(body);
  REQUIRE(decoded.has_error());
  return decoded.error();
}

// Returns the only field error of a CollectiveRequest that also has this member.
FieldError only_error(std::string const& member) {
  auto const problem = problem_of(R"({"group":"g","tensor":"t",)" + member + "}");
  CHECK(problem.code == ProblemCode::invalid_field);
  REQUIRE(problem.errors.size() == 1);
  CHECK(problem.detail == problem.errors[0].pointer + ": " + problem.errors[0].detail);
  return problem.errors[0];
}

std::string repeated(std::string_view text, std::size_t times) {
  std::string result;
  for (std::size_t i = 0; i < times; ++i) result += text;
  return result;
}

}  // namespace

TEST_CASE("a body that is not JSON is malformed, and the problem says where") {
  for (auto const* body : {"",
                           " ",
                           "{",
                           "}",
                           "{]",
                           "[1,]",
                           "nul",
                           "{\"group\":}",
                           "{\"group\":\"g\",}",
                           "{'group':1}",
                           "{group:1}",
                           "{\"group\":NaN}",
                           "{\"group\":Infinity}",
                           "{\"group\":01}",
                           "{\"group\":1.}",
                           "{\"group\":+1}",
                           "{\"group\":.5}",
                           "{\"group\":\"\x01\"}",
                           "{\"group\":\"\\x\"}",
                           "{\"group\":\"\xff\"}",
                           "{\"group\":\"\\ud800\"}",
                           "{} {}",
                           "{}x",
                           "\xef\xbb\xbf{}",
                           "// c\n{}",
                           "{\"group\":\"g"}) {
    INFO(std::string(body));
    auto const problem = problem_of(body);
    CHECK(problem.code == ProblemCode::malformed_json);
    CHECK(problem.detail.find("at byte") != std::string::npos);
  }
  CHECK(problem_of(R"({"group":NaN})").detail.find("at byte 9") != std::string::npos);
}

TEST_CASE("a repeated key is malformed, at any depth") {
  auto const top = problem_of(R"({"group":"a","tensor":"t","group":"a"})");
  CHECK(top.code == ProblemCode::malformed_json);
  REQUIRE(top.errors.size() == 1);
  CHECK(top.errors[0].pointer == "/group");
  auto const nested = problem_of(R"({"group":"a","schedule":{"window":1,"window":1}})");
  CHECK(nested.code == ProblemCode::malformed_json);
  CHECK(nested.errors.at(0).pointer == "/schedule/window");
  CHECK(problem_of(R"({"group":"a","gr\u006fup":"a"})").code == ProblemCode::malformed_json);
}

TEST_CASE("deep nesting is malformed, whether the field is known or not") {
  auto const deep = problem_of(repeated("[", 1000) + repeated("]", 1000));
  CHECK(deep.code == ProblemCode::malformed_json);
  CHECK(deep.detail == "nested deeper than 16 levels at byte 16");
  CHECK(problem_of(R"({"other":)" + repeated("{\"a\":", 1000) + "1" + repeated("}", 1001)).code ==
        ProblemCode::malformed_json);
  CHECK(problem_of(R"({"other":)" + repeated("[", 15) + repeated("]", 15) + "}").code == ProblemCode::invalid_field);
}

TEST_CASE("a body of more than a megabyte is not parsed") {
  auto const padded = [](std::size_t bytes) { return repeated(" ", bytes - 2) + "[]"; };
  CHECK(problem_of(padded(2 << 20)).code == ProblemCode::payload_too_large);
  CHECK(problem_of(padded(json_limit_bytes + 1)).code == ProblemCode::payload_too_large);
  CHECK(problem_of(padded(json_limit_bytes)).code == ProblemCode::invalid_field);
}

TEST_CASE("a megabyte of hostile elements is refused with few errors") {
  auto const numbers = problem_of(R"({"group":"g","tensor":"t","op":[)" + repeated("0,", 500000) + "0]}");
  CHECK(numbers.code == ProblemCode::invalid_field);
  CHECK(numbers.errors.size() == 1);
  std::string keys = "{";
  for (int i = 0; i < 50000; ++i) keys += "\"k" + std::to_string(i) + "\":0,";
  auto const unknown = problem_of(keys + R"("group":"g"})");
  CHECK(unknown.code == ProblemCode::invalid_field);
  CHECK(unknown.errors.size() == 16);
}

TEST_CASE("a body that is not an object is refused") {
  for (auto const& [body, found] : std::array<std::pair<char const*, char const*>, 5>{
           {{"[]", "an array"}, {"1", "1"}, {"\"x\"", "\"x\""}, {"null", "null"}, {"true", "true"}}}) {
    auto const problem = problem_of(body);
    CHECK(problem.code == ProblemCode::invalid_field);
    REQUIRE(problem.errors.size() == 1);
    CHECK(problem.errors[0].pointer == "");
    CHECK(problem.errors[0].detail == std::string("expected an object, found ") + found);
  }
}

TEST_CASE("a field of the wrong type is named with what was expected and found") {
  CHECK(only_error(R"("op":1)") == FieldError{"/op", "expected a string, found 1"});
  CHECK(only_error(R"("op":null)") == FieldError{"/op", "expected a string, found null"});
  CHECK(only_error(R"("op":["all_reduce"])") == FieldError{"/op", "expected a string, found an array"});
  CHECK(only_error(R"("op":{"x":[1,{"y":2}]})") == FieldError{"/op", "expected a string, found an object"});
  CHECK(only_error(R"("in_place":"true")") == FieldError{"/in_place", "expected true or false, found \"true\""});
  CHECK(only_error(R"("in_place":0)") == FieldError{"/in_place", "expected true or false, found 0"});
  CHECK(only_error(R"("schedule":7)") == FieldError{"/schedule", "expected an object, found 7"});
  CHECK(only_error(R"("schedule":[])") == FieldError{"/schedule", "expected an object, found an array"});
  CHECK(only_error(R"("schedule":{"window":"4"})") ==
        FieldError{"/schedule/window", "expected an integer from 0 to 4294967295, found \"4\""});
  CHECK(only_error(R"("op":true)") == FieldError{"/op", "expected a string, found true"});
}

TEST_CASE("an integer is whole, not negative and within its type") {
  for (auto const* number : {"-1", "1.5", "1e3", "4294967296", "18446744073709551616", "1e400", "-0.0", "1.0",
                             "123456789012345678901234567890", "-9223372036854775809"}) {
    CHECK(only_error(R"("root":)" + std::string(number)) ==
          FieldError{"/root", "expected an integer from 0 to 4294967295, found " + std::string(number)});
  }
  auto const largest = decode<api::CollectiveRequest>(
      R"({"group":"g","tensor":"t","root":4294967295,"timeout_ms":18446744073709551615,"arity":0})");
  REQUIRE(largest.has_value());
  CHECK(largest->root == UINT32_MAX);
  CHECK(largest->timeout_ms == UINT64_MAX);
  CHECK(largest->arity == 0);
}

TEST_CASE("doubles are read to the last bit and refused when they overflow") {
  auto const read = [](std::string const& number) {
    return decode<api::PlanAnswer>(R"({"predicted_seconds":)" + number + "}");
  };
  for (auto const* number : {"0.1", "1", "-2", "3.14159265358979312", "5e-324", "1.7976931348623157e308",
                             "123456789.123456789", "9007199254740993", "2.2250738585072011e-308"}) {
    INFO(std::string(number));
    CHECK(read(number)->predicted_seconds == std::strtod(number, nullptr));
  }
  CHECK(read("1e400").error().errors.at(0).detail == "expected a number, found 1e400");
  CHECK(read("\"1\"").has_error());
}

TEST_CASE("an unknown field is refused with the nearest name") {
  CHECK(only_error(R"("algoritm":"ring")") == FieldError{"/algoritm", "unknown field; did you mean \"algorithm\"?"});
  CHECK(only_error(R"("timeout":1)") == FieldError{"/timeout", "unknown field"});
  CHECK(only_error(R"("timeout_s":1)") == FieldError{"/timeout_s", "unknown field; did you mean \"timeout_ms\"?"});
  CHECK(only_error(R"("schedule":{"segmentbytes":4096})") ==
        FieldError{"/schedule/segmentbytes", "unknown field; did you mean \"segment_bytes\"?"});
  CHECK(only_error(R"("a/b~c":{"d":[1]})") == FieldError{"/a~1b~0c", "unknown field"});
  CHECK(only_error(R"("":1)") == FieldError{"/", "unknown field"});
}

TEST_CASE("unknown fields in an answer of another release are ignored") {
  auto const answer = decode<api::LeaseAnswer>(R"({"new":{"lease_ms":[1,{"lease_ms":2}]},"lease_ms":7,"newer":null})",
                                               UnknownFields::ignore);
  REQUIRE(answer.has_value());
  CHECK(answer->lease_ms == 7);
}

TEST_CASE("required fields are demanded, the others keep their defaults") {
  auto const problem = problem_of("{}");
  CHECK(problem.code == ProblemCode::invalid_field);
  REQUIRE(problem.errors.size() == 1);
  CHECK(problem.errors[0] == FieldError{"/group", "missing; expected a string"});
  auto const request = decode<api::CollectiveRequest>(R"({"group":"g","tensor":"t"})").value();
  CHECK(request.op == "all_reduce");
  CHECK(request.timeout_ms == std::nullopt);
  CHECK(request.schedule.segment_bytes == std::nullopt);
  CHECK(request.schedule.window == 4);
  CHECK(request.root == std::nullopt);
}

TEST_CASE("errors in lists point to the element") {
  auto const list = decode<api::WorkerList>(
      R"({"items":[{"id":"a","incarnation":"0"},{"id":"b"},{"id":"c","incarnation":1,"groups":["x",2]}]})");
  REQUIRE(list.has_error());
  REQUIRE(list.error().errors.size() == 3);
  CHECK(list.error().errors[0].pointer == "/items/1/incarnation");
  CHECK(list.error().errors[1].pointer == "/items/2/incarnation");
  CHECK(list.error().errors[2] == FieldError{"/items/2/groups/1", "expected a string, found 2"});
}

TEST_CASE("null is an absent optional") {
  auto const request = decode<api::CollectiveRequest>(R"({"group":"g","tensor":"t","root":null})");
  REQUIRE(request.has_value());
  CHECK(request->root == std::nullopt);
}

TEST_CASE("special characters are found at every place of a machine word, and other text is written unchanged") {
  for (int code = 0; code < 256; ++code) {
    auto const c = static_cast<char>(code);
    bool const is_special = code < 0x20 || code >= 0x7f || c == '"' || c == '\\';
    for (std::size_t at = 0; at < 19; ++at) {
      std::string text(19, code == 'a' ? 'b' : 'a');
      text[at] = c;
      CAPTURE(code);
      CAPTURE(at);
      CHECK(is_written_as_it_is(text) == !is_special);
    }
  }
  CHECK(is_written_as_it_is(""));
}

TEST_CASE("text is quoted so that it reads back, and stays JSON whatever it is") {
  auto const quoted = [](std::string_view text) {
    std::string out;
    append_quoted(out, text);
    return out;
  };
  CHECK(quoted("a\"b\\c/\n\t\x01") == R"("a\"b\\c/\n\u0009\u0001")");
  CHECK(quoted("\xc3\xa9\xe2\x82\xac\xf0\x9f\x8e\xb5") == "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x8e\xb5\"");
  CHECK(quoted("a\xff\xc3") == "\"a\xef\xbf\xbd\xef\xbf\xbd\"");
  CHECK(quoted("\xc0\x80\xed\xa0\x80") == "\"" + repeated("\xef\xbf\xbd", 5) + "\"");
  api::JoinRequest join{std::string("n\0ul", 4), "i", "u", {}, "v\"\\\n"};
  auto const back = decode<api::JoinRequest>(encode(join)).value();
  CHECK(back.id == join.id);
  CHECK(back.version == join.version);
}

TEST_CASE("identities are sixteen hexadecimal digits") {
  CHECK(api::to_hex(0) == "0000000000000000");
  CHECK(api::to_hex(0x0123456789abcdef) == "0123456789abcdef");
  CHECK(api::from_hex("0123456789abcdef") == 0x0123456789abcdef);
  CHECK(api::from_hex(api::to_hex(UINT64_MAX)) == UINT64_MAX);
  for (auto const* text :
       {"", "0", "0123456789abcde", "0123456789abcdef0", "0123456789abcdeg", "-123456789abcdef", "0x23456789abcdef"})
    CHECK_MESSAGE(api::from_hex(text) == std::nullopt, text);
}

TEST_CASE("every problem code has one name and reads back") {
  for (unsigned i = 0; i <= static_cast<unsigned>(ProblemCode::rows_exhausted); ++i) {
    auto const code = static_cast<ProblemCode>(i);
    CHECK(parse_problem_code(kind(code).name) == code);
    CHECK((kind(code).status >= 400 || code == ProblemCode::not_leader));
    CHECK(kind(code).status < 600);
    Problem problem(code, "because");
    problem.instance = "/v1";
    problem.ranks = {0, 7};
    problem.errors = {{"/a", "b"}, {"", "c"}};
    problem.retry_after_s = 3;
    CHECK(problem_from_json(to_json(problem), kind(code).status) == problem);
  }
  CHECK(parse_problem_code("nonsense") == std::nullopt);
}

TEST_CASE("a problem reads as RFC 9457 says") {
  Problem problem(ProblemCode::mismatch, "rank 2 has f64, rank 0 has f32");
  problem.ranks = {2};
  problem.errors = {{"/dtype", "f64"}};
  problem.instance = "/v1/collectives/c";
  CHECK(
      to_json(problem) ==
      R"({"type":"/problems/mismatch","title":"The ranks do not agree","status":409,)"
      R"("detail":"rank 2 has f64, rank 0 has f32","instance":"/v1/collectives/c","code":"mismatch","retryable":false,)"
      R"("ranks":[2],"errors":[{"pointer":"/dtype","detail":"f64"}]})");
  CHECK(to_json(Problem(ProblemCode::internal, "")).find("ranks") == std::string::npos);
}

TEST_CASE("a foreign error becomes an internal problem that keeps its text") {
  auto const later = problem_from_json(R"({"code":"quota","detail":"too many","ranks":[1],"new":[[]]})", 429);
  CHECK(later.code == ProblemCode::internal);
  CHECK(later.detail == "quota: too many");
  CHECK(later.ranks == std::vector<std::uint32_t>{1});
  CHECK(problem_from_json(R"({"code":"busy","status":"409","detail":"d"})", 409).code == ProblemCode::busy);
  CHECK(problem_from_json("<html>Bad gateway</html>", 502).detail == "status 502: <html>Bad gateway</html>");
  CHECK(problem_from_json("", 502).detail == "status 502: ");
  CHECK(problem_from_json("{}", 500).code == ProblemCode::internal);
  CHECK(problem_from_json(std::string(100000, 'x'), 500).detail.size() < 300);
  CHECK(problem_from_json("<html>\r\n<h1>404</h1>\x1b[2J", 404).detail ==
        "status 404: <html>\\r\\n<h1>404</h1>\\x1b[2J");
  std::string const umlauts = "\xc3\xa4\xc3\xb6", half(199, 'x');
  CHECK(problem_from_json(half + umlauts, 500).detail == "status 500: " + half + "...");
  auto const foreign = problem_from_json(R"({"detail":"a\nb)" + std::string(10000, 'y') + R"("})", 500).detail;
  CHECK(foreign.starts_with("a\\nby"));
  CHECK(foreign.size() < 210);
  auto const own = Problem(ProblemCode::mismatch, std::string(10000, 'z'));
  CHECK(problem_from_json(to_json(own), 409) == own);
}

TEST_CASE("the error of a proxy before a service that is away is that of a service that is away") {
  for (unsigned const status : {502, 503, 504}) {
    auto const problem = problem_from_json("<html>Bad gateway</html>", status);
    CHECK(problem.code == ProblemCode::unavailable);
    CHECK(problem.detail == "status " + std::to_string(status) + ": <html>Bad gateway</html>");
    CHECK(problem_from_json("", status).code == ProblemCode::unavailable);
    CHECK(problem_from_json(to_json({ProblemCode::peer_lost, "d"}), status).code == ProblemCode::peer_lost);
  }
  CHECK(problem_from_json("<html>Not implemented</html>", 501).code == ProblemCode::internal);
}
