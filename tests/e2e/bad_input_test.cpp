// Invalid requests to live services: each gets its 4xx problem or a closed connection, and the service goes on.
#include <doctest/doctest.h>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/raw_http.hpp"

using namespace chorus::testing;
using namespace std::chrono_literals;

namespace {

std::string answer_to(Service& service, std::string const& request, std::chrono::milliseconds limit = 3s) {
  RawConnection connection(service.port());
  connection.send(request);
  return connection.read_answer(limit);
}

std::string request(std::string const& line, std::string const& fields, std::string const& body = "") {
  return line + " HTTP/1.1\r\nHost: localhost\r\n" + fields + "\r\n" + body;
}

std::string json_request(std::string const& line, std::string const& body) {
  return request(line, "Content-Type: application/json\r\nContent-Length: " + std::to_string(body.size()) + "\r\n",
                 body);
}

void expect_problem(std::string const& answer, int status) {
  INFO(answer.substr(0, 600));
  CHECK(status_of(answer) == status);
  CHECK(answer.find("application/problem+json") != std::string::npos);
}

bool alive(Service& service) { return service.get("/livez").status == 200; }

}  // namespace

TEST_CASE("both services refuse malformed HTTP") {
  Cluster cluster(1);
  for (auto* service : {&cluster.coordinator, &cluster.worker(0)}) {
    CAPTURE(service->id);
    auto const refused = [&](std::string const& fields, std::string const& body = "") {
      auto const answer = answer_to(*service, request("POST /v1/collectives", fields, body));
      INFO(fields);
      INFO(answer.substr(0, 300));
      CHECK(status_of(answer) == 400);
    };
    refused("Content-Length: 2\r\nContent-Length: 3\r\n", "{}");
    refused("Content-Length: 2\r\nTransfer-Encoding: chunked\r\n", "2\r\n{}\r\n0\r\n\r\n");
    refused("Transfer-Encoding: chunked\r\nContent-Length: 2\r\n", "2\r\n{}\r\n0\r\n\r\n");
    refused("Transfer-Encoding: gzip, identity\r\n", "{}");
    refused("Transfer-Encoding: identity\r\nContent-Length: 2\r\n", "{}");
    refused("Content-Length: -1\r\n");
    refused("Content-Length: 99999999999999999999999\r\n");
    refused("Content-Length: 2, 2\r\n", "{}");
    CHECK(status_of(answer_to(*service, "GET /v1 HTTP/1.1\r\n\r\n")) == 400);
    CHECK(status_of(answer_to(
              *service,
              "POST /v1/collectives HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n")) ==
          400);
    CHECK(status_of(answer_to(*service, request("GET /" + std::string(20000, 'a'), ""))) == 431);
    CHECK(status_of(answer_to(*service, request("GET /v1/%00", ""))) == 400);
    CHECK(status_of(answer_to(*service, request("GET /v1/%zz", ""))) == 400);
    CHECK(status_of(answer_to(*service, "\x16\x03\x01\x02 not http at all\r\n\r\n")) == 400);
    expect_problem(answer_to(*service, request("GET /v1/nothing", "")), 404);
    auto const wrong_method = answer_to(*service, request("DELETE /metrics", ""));
    expect_problem(wrong_method, 405);
    CHECK(wrong_method.find("Allow: ") != std::string::npos);
    CHECK(alive(*service));
  }
}

TEST_CASE("malformed JSON is refused with the place of the error") {
  Cluster cluster(1);
  auto& coordinator = cluster.coordinator;
  auto const refused = [&](std::string const& body, int status) {
    auto const answer = answer_to(coordinator, json_request("POST /v1/collectives", body));
    INFO(body.substr(0, 100));
    expect_problem(answer, status);
  };
  refused("", 400);
  refused("{", 400);
  refused("{\"group\":\"g\",\"group\":\"h\",\"tensor\":\"x\"}", 400);
  refused(std::string(1000, '[') + std::string(1000, ']'), 400);
  refused("[]", 422);
  refused("{\"group\":1,\"tensor\":\"x\"}", 422);
  refused("{\"group\":\"g\",\"tensor\":\"x\",\"timeout_ms\":NaN}", 400);
  refused("{\"group\":\"g\",\"tensor\":\"x\",\"timeout_ms\":1e400}", 422);
  refused("{\"group\":\"g\",\"tensor\":\"x\",\"timeout_ms\":1.5}", 422);
  refused("{\"group\":\"g\",\"tensor\":\"x\",\"root\":4294967296}", 422);
  refused("\"" + std::string(3 << 20, 'a') + "\"", 413);
  CHECK(alive(coordinator));
}

TEST_CASE("an invalid tensor is refused before its body is read") {
  Cluster cluster(1);
  auto& worker = cluster.worker(0);
  auto const put = [&](std::string const& fields, std::string const& body, int status) {
    auto const answer = answer_to(worker, request("PUT /v1/tensors/x", fields, body));
    INFO(fields);
    expect_problem(answer, status);
  };
  put("Tensor-Dtype: f32\r\nTensor-Shape: 2\r\nContent-Length: 4\r\n", "abcd", 422);
  put("Tensor-Dtype: f33\r\nTensor-Shape: 1\r\nContent-Length: 4\r\n", "abcd", 400);
  put("Tensor-Shape: 1\r\nContent-Length: 4\r\n", "abcd", 400);
  put("Tensor-Dtype: f32\r\nTensor-Shape: 1\r\n", "", 411);
  put("Tensor-Dtype: f32\r\nTensor-Shape: -1\r\nContent-Length: 4\r\n", "abcd", 400);
  put("Tensor-Dtype: f32\r\nTensor-Shape: 4294967296,4294967296,4294967296\r\nContent-Length: 4\r\n", "abcd", 400);
  put("Tensor-Dtype: f32\r\nTensor-Shape: 99999999999999999999\r\nContent-Length: 4\r\n", "abcd", 400);
  put("Tensor-Dtype: f32\r\nTensor-Shape: 1\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n", "abcd", 415);
  put("Tensor-Dtype: u8\r\nTensor-Shape: 1099511627776\r\nContent-Length: 1099511627776\r\n", "", 413);
  CHECK(worker.get("/v1/tensors/x").code() == "unknown_tensor");
  expect_problem(answer_to(worker, request("PUT /v1/tensors/..",
                                           "Tensor-Dtype: u8\r\nTensor-Shape: 1\r\nContent-Length: 1\r\n", "a")),
                 400);
  CHECK(alive(worker));
}

TEST_CASE("ranges, conditions and digests of tensors") {
  Cluster cluster(1);
  auto& worker = cluster.worker(0);
  REQUIRE(worker.put_tensor("x", "u8", "10", "0123456789").status == 201);
  auto const get = [&](std::string const& fields) { return answer_to(worker, request("GET /v1/tensors/x", fields)); };
  auto const part = get("Range: bytes=2-4\r\n");
  CHECK(status_of(part) == 206);
  CHECK(part.ends_with("\r\n\r\n234"));
  CHECK(get("Range: bytes=-3\r\n").ends_with("\r\n\r\n789"));
  CHECK(status_of(get("Range: bytes=10-\r\n")) == 416);
  auto const etag = worker.get("/v1/tensors/x").header("ETag");
  CHECK(status_of(get("If-None-Match: " + etag + "\r\n")) == 304);
  CHECK(status_of(answer_to(
            worker,
            request("PUT /v1/tensors/x",
                    "If-Match: \"999\"\r\nTensor-Dtype: u8\r\nTensor-Shape: 1\r\nContent-Length: 1\r\n", "a"))) == 412);
  CHECK(worker.tensor_version("x") == 1);
  auto const wrong_digest = "Content-Digest: sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:\r\n";
  expect_problem(answer_to(worker, request("PUT /v1/tensors/x",
                                           std::string("Tensor-Dtype: u8\r\nTensor-Shape: 1\r\nContent-Length: 1\r\n") +
                                               wrong_digest,
                                           "a")),
                 422);
  CHECK(worker.get("/v1/tensors/x").body == "0123456789");
}

TEST_CASE("a body that ends early leaves no tensor behind") {
  Cluster cluster(1);
  auto& worker = cluster.worker(0);
  {
    RawConnection connection(worker.port());
    connection.send(request("PUT /v1/tensors/half", "Tensor-Dtype: u8\r\nTensor-Shape: 100\r\nContent-Length: 100\r\n",
                            "only this"));
  }
  CHECK(worker.get("/v1/tensors/half").code() == "unknown_tensor");
}

TEST_CASE("a silent client and a slow one are dropped, and other clients are served meanwhile") {
  Cluster cluster(1);
  auto& worker = cluster.worker(0);
  RawConnection slow(worker.port());
  slow.send("GET /v1 HTTP/1.1\r\nHost:");
  CHECK(alive(worker));
  auto const answer = slow.read_to_end(15s);
  CHECK(slow.closed_by_peer());
  CHECK((answer.empty() || status_of(answer) == 408));
  CHECK(alive(worker));
}

TEST_CASE("a link is refused to unknown peers, and garbage on a link closes it") {
  Cluster cluster(1);
  auto& worker = cluster.worker(0);
  CHECK(status_of(answer_to(worker, request("GET /v1/link", ""))) / 100 == 4);
  CHECK(status_of(answer_to(worker, request("GET /v1/link", "Connection: Upgrade\r\nUpgrade: websocket\r\n"))) / 100 ==
        4);
  RawConnection link(worker.port());
  link.send(request("GET /v1/link",
                    "Connection: Upgrade\r\nUpgrade: chorus-link/1\r\nChorus-Worker: ghost\r\nChorus-Incarnation: "
                    "00000000000000aa\r\n"));
  auto const answer = link.read_answer(3s);
  if (status_of(answer) == 101) {
    link.send(std::string(64, '\xff'));
    link.read_to_end(5s);
    CHECK(link.closed_by_peer());
  } else {
    CHECK(status_of(answer) / 100 == 4);
  }
  CHECK(alive(worker));
}

TEST_CASE("a join with false statements or an unreachable address is refused, and the problem says what was tried") {
  Cluster cluster(1);
  auto& coordinator = cluster.coordinator;
  auto const join = [&](std::string const& id, std::string const& url) {
    return coordinator.post("/v1/workers",
                            R"({"id":")" + id + R"(","incarnation":"00000000000000aa","url":")" + url +
                                R"(","locality":{"region":"","zone":"","rack":"","host":"h"},"version":"0"})");
  };
  CHECK(join("bad/id", "http://127.0.0.1:1").status == 422);
  CHECK(join("w9", "ftp://127.0.0.1:1").status == 422);
  auto const unreachable = join("w9", "http://127.0.0.1:1");
  CHECK(unreachable.code() == "worker_unreachable");
  CHECK(unreachable.body.find("127.0.0.1:1") != std::string::npos);
  CHECK(coordinator.get("/v1/workers/w9").code() == "unknown_worker");
}
