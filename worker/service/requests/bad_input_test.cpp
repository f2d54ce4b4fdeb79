// Invalid requests: each gets its problem, and the worker goes on.
#include <doctest/doctest.h>

#include "tests/support/raw_http.hpp"
#include "worker/service/testing/live_worker.hpp"

using namespace chorus::service::testing;
using chorus::testing::RawConnection;
using chorus::testing::status_of;

namespace {

struct Refused {
  char const* what;
  std::string request;  // request line and fields, without Host
  std::string body;
  int status;
  char const* code;
};

std::string answer_to(LiveWorker const& worker, Refused const& row) {
  RawConnection connection(worker.port());
  connection.send(row.request + "Host: localhost\r\n\r\n" + row.body);
  return connection.read_answer(std::chrono::seconds(10));
}

std::string put(std::string const& name, std::string const& fields) {
  return "PUT /v1/tensors/" + name + " HTTP/1.1\r\n" + fields;
}

std::string of_length(std::string const& length) {
  return "Tensor-Dtype: u8\r\nTensor-Shape: " + length + "\r\nContent-Length: " + length + "\r\n";
}

}  // namespace

TEST_CASE("an impossible tensor is refused before its body is read") {
  std::string const f32 = "Tensor-Dtype: f32\r\n", one = "Tensor-Shape: 1\r\n", four = "Content-Length: 4\r\n";
  std::vector<Refused> const table{
      {"no dtype", put("x", one + four), "abcd", 400, "bad_request"},
      {"an unknown dtype", put("x", "Tensor-Dtype: F32\r\n" + one + four), "abcd", 400, "bad_request"},
      {"a sub-byte dtype", put("x", "Tensor-Dtype: i4\r\n" + one + four), "abcd", 400, "bad_request"},
      {"no shape", put("x", f32 + four), "abcd", 400, "bad_request"},
      {"a negative dimension", put("x", f32 + "Tensor-Shape: -1\r\n" + four), "abcd", 400, "bad_request"},
      {"a dimension that is no number", put("x", f32 + "Tensor-Shape: 1,x\r\n" + four), "abcd", 400, "bad_request"},
      {"a dimension beyond 64 bits", put("x", f32 + "Tensor-Shape: 99999999999999999999\r\n" + four), "abcd", 400,
       "bad_request"},
      {"a product that overflows", put("x", f32 + "Tensor-Shape: 4294967296,4294967296,4\r\n" + four), "abcd", 400,
       "bad_request"},
      {"an overflow behind a zero", put("x", f32 + "Tensor-Shape: 0,4294967296,4294967296\r\nContent-Length: 0\r\n"),
       "", 400, "bad_request"},
      {"33 dimensions", put("x", f32 + "Tensor-Shape: 1" + std::string(64, ',') + "\r\n" + four), "abcd", 400,
       "bad_request"},
      {"a body shorter than the shape", put("x", f32 + "Tensor-Shape: 2\r\n" + four), "abcd", 422, "length_mismatch"},
      {"a body longer than the shape", put("x", f32 + "Tensor-Shape: 0\r\n" + four), "abcd", 422, "length_mismatch"},
      {"an odd length", put("x", f32 + one + "Content-Length: 3\r\n"), "abc", 422, "length_mismatch"},
      {"no length", put("x", f32 + one), "", 411, "length_required"},
      {"chunks with less than the shape", put("x", f32 + one + "Transfer-Encoding: chunked\r\n"),
       "3\r\nabc\r\n0\r\n\r\n", 422, "length_mismatch"},
      {"chunks with more than the shape", put("x", f32 + one + "Transfer-Encoding: chunked\r\n"),
       "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", 422, "length_mismatch"},
      {"chunks for a tensor above the limit",
       put("x", "Tensor-Dtype: u8\r\nTensor-Shape: 8388609\r\nTransfer-Encoding: chunked\r\n"), "", 413,
       "payload_too_large"},
      {"above the limit", put("x", of_length("8388609")), "", 413, "payload_too_large"},
      {"far above the limit", put("x", of_length("9223372036854775807")), "", 413, "payload_too_large"},
      {"a compressed body", put("x", f32 + one + "Content-Encoding: gzip\r\n" + four), "abcd", 415,
       "unsupported_media_type"},
      {"a page", put("x", f32 + one + "Content-Type: text/html\r\n" + four), "abcd", 415, "unsupported_media_type"},
      {"a part of it", put("x", f32 + one + "Content-Range: bytes 0-3/8\r\n" + four), "abcd", 400, "bad_request"},
      {"a query that the route does not have", put("x?overwrite=no", f32 + one + four), "abcd", 400, "bad_request"},
      {"a digest that is none", put("x", f32 + one + "Content-Digest: sha-256=abc\r\n" + four), "abcd", 400,
       "bad_request"},
      {"a condition that is none", put("x", f32 + one + "If-Match: 7\r\n" + four), "abcd", 400, "bad_request"},
      {"two dtypes", put("x", f32 + f32 + one + four), "abcd", 400, "bad_request"},
      {"two shapes", put("x", f32 + one + one + four), "abcd", 400, "bad_request"},
      {"two conditions", put("x", f32 + one + four + "If-Match: *\r\nIf-Match: *\r\n"), "abcd", 400, "bad_request"},
      {"a name that climbs", put("..", of_length("1")), "a", 400, "bad_request"},
      {"a name that climbs in disguise", put("a%2F..%2Fb", of_length("1")), "a", 400, "bad_request"},
      {"a name with a percent sign", put("a%25b", of_length("1")), "a", 400, "bad_request"},
      {"a name with NUL", put("a%00b", of_length("1")), "a", 400, "bad_request"},
      {"a name of 300 characters", put(std::string(300, 'n'), of_length("1")), "a", 400, "bad_request"},
      {"a second Content-Length", put("x", of_length("1") + "Content-Length: 2\r\n"), "a", 400, "bad_request"},
      {"Content-Length and Transfer-Encoding", put("x", of_length("1") + "Transfer-Encoding: chunked\r\n"),
       "1\r\na\r\n0\r\n\r\n", 400, "bad_request"},
      {"a negative Content-Length", put("x", "Tensor-Dtype: u8\r\nTensor-Shape: 1\r\nContent-Length: -1\r\n"), "", 400,
       "bad_request"},
  };
  LiveWorker worker;
  for (auto const& row : table) {
    CAPTURE(row.what);
    auto const answer = answer_to(worker, row);
    INFO(answer);
    CHECK(status_of(answer) == row.status);
    CHECK(answer.find("application/problem+json") != std::string::npos);
    CHECK(answer.find(std::string("\"code\":\"") + row.code + '"') != std::string::npos);
  }
  CHECK(worker.get("/v1/tensors/x").code() == "unknown_tensor");
  CHECK(worker.put_bytes("x", "fine").status == 201);
}

TEST_CASE("a wrong method, path or range is refused") {
  std::vector<Refused> const table{
      {"an unknown path", "GET /v2 HTTP/1.1\r\n", "", 404, "not_found"},
      {"a tensor that is not there", "GET /v1/tensors/nobody HTTP/1.1\r\n", "", 404, "unknown_tensor"},
      {"a wrong method", "POST /v1/tensors/x HTTP/1.1\r\nContent-Length: 0\r\n", "", 405, "method_not_allowed"},
      {"a method that nobody knows", "BREW /v1/tensors/x HTTP/1.1\r\n", "", 405, "method_not_allowed"},
      {"a limit that is no number", "GET /v1/tensors?limit=-1 HTTP/1.1\r\n", "", 400, "bad_request"},
      {"a limit that is misspelt", "GET /v1/tensors?limti=1 HTTP/1.1\r\n", "", 400, "bad_request"},
      {"a limit beyond all limits", "GET /v1/tensors?limit=99999999999999999999 HTTP/1.1\r\n", "", 400, "bad_request"},
      {"a header of 10 kB", "GET /v1 HTTP/1.1\r\nX: " + std::string(10000, 'x') + "\r\n", "", 431, "header_too_large"},
  };
  LiveWorker worker;
  for (auto const& row : table) {
    CAPTURE(row.what);
    auto const answer = answer_to(worker, row);
    INFO(answer);
    CHECK(status_of(answer) == row.status);
    CHECK(answer.find(std::string("\"code\":\"") + row.code + '"') != std::string::npos);
  }
  CHECK(worker.get("/livez").status == 200);
}

TEST_CASE("a body that ends early leaves the old version") {
  LiveWorker worker;
  worker.put_bytes("x", "old");
  {
    RawConnection connection(worker.port());
    connection.send(put("x", of_length("1000")) + "Host: localhost\r\n\r\nonly this");
  }
  CHECK(worker.get("/v1/tensors/x").body == "old");
  CHECK(worker.version_of("x") == 1);
}

TEST_CASE("an answer to Expect: 100-continue comes before the body is sent") {
  LiveWorker worker;
  RawConnection connection(worker.port());
  connection.send(put("x", "Tensor-Dtype: u8\r\nTensor-Shape: 2\r\nContent-Length: 3\r\nExpect: 100-continue\r\n") +
                  "Host: localhost\r\n\r\n");
  CHECK(status_of(connection.read_answer(std::chrono::seconds(10))) == 422);
}

TEST_CASE("invalid JSON is refused with its place") {
  LiveWorker worker;
  auto const refused = [&](std::string const& body, int status, std::string const& code) {
    auto const answer = worker.post("/v1/groups/g/all_reduce", body);
    INFO(body.substr(0, 100));
    CHECK(answer.status == status);
    CHECK(answer.code() == code);
  };
  refused("", 400, "malformed_json");
  refused("{", 400, "malformed_json");
  refused(R"({"tensor":"x","tensor":"y"})", 400, "malformed_json");
  refused(std::string(1000, '[') + std::string(1000, ']'), 400, "malformed_json");
  refused("[]", 422, "invalid_field");
  refused("{}", 422, "invalid_field");
  refused(R"({"tensor":1})", 422, "invalid_field");
  refused(R"({"tensor":"x","tesnor":"y"})", 422, "invalid_field");
  refused(R"({"tensor":"x","timeout_ms":-1})", 422, "invalid_field");
  refused(R"({"tensor":"x","timeout_ms":1e400})", 422, "invalid_field");
  refused(R"({"tensor":"x","in_place":"yes"})", 422, "invalid_field");
  refused('"' + std::string(2 << 20, 'a') + '"', 413, "payload_too_large");
  CHECK(worker.get("/livez").status == 200);
}
