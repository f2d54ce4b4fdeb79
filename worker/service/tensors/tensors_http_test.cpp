// Tensors over HTTP, as a client sees them.
#include <doctest/doctest.h>

#include "tests/support/raw_http.hpp"
#include "worker/service/testing/live_worker.hpp"

using namespace chorus::service::testing;

TEST_CASE("a tensor is read as it was put, with its description") {
  LiveWorker worker;
  auto const put = worker.put_tensor<float>("grad", "f32", {1, 2, 3});
  CHECK(put.status == 201);
  CHECK(put.header("Tensor-Version") == "1");
  CHECK(put.header("Location") == "/v1/tensors/grad");
  CHECK(put.json().at("bytes") == 12);
  auto const got = worker.get("/v1/tensors/grad");
  CHECK(got.status == 200);
  CHECK(got.header("Content-Type") == "application/octet-stream");
  CHECK(got.header("Tensor-Dtype") == "f32");
  CHECK(got.header("Tensor-Shape") == "3");
  CHECK(got.header("ETag") == put.header("ETag"));
  CHECK(worker.get_tensor<float>("grad") == std::vector<float>{1, 2, 3});
}

TEST_CASE("a replacement is a new version with a new tag") {
  LiveWorker worker;
  auto const first = worker.put_bytes("x", "old");
  auto const second = worker.put_bytes("x", "newer");
  CHECK(second.status == 200);
  CHECK(second.header("Tensor-Version") == "2");
  CHECK(second.header("ETag") != first.header("ETag"));
  CHECK(worker.get("/v1/tensors/x").body == "newer");
}

TEST_CASE("scalars, empty tensors and names with slashes") {
  LiveWorker worker;
  auto const scalar = worker.put("/v1/tensors/s", "12345678", {{"Tensor-Dtype", "f64"}, {"Tensor-Shape", ""}},
                                 "application/octet-stream");
  CHECK(scalar.status == 201);
  CHECK(worker.get("/v1/tensors/s").header("Tensor-Shape").empty());
  CHECK(worker.put_bytes("empty", "").status == 201);
  CHECK(worker.get("/v1/tensors/empty").status == 200);
  CHECK(worker.get("/v1/tensors/empty").body.empty());
  CHECK(worker.put_bytes("layer%2Fgrad", "ab").status == 201);
  CHECK(worker.get("/v1/tensors/layer%2Fgrad").body == "ab");
  CHECK(worker.get("/v1/tensors/layer/grad").body == "ab");
}

TEST_CASE("HEAD tells everything but the bytes") {
  LiveWorker worker;
  worker.put_bytes("x", "12345");
  auto const head = worker.head("/v1/tensors/x");
  CHECK(head.status == 200);
  CHECK(head.header("Content-Length") == "5");
  CHECK(head.header("Tensor-Shape") == "5");
  CHECK(head.body.empty());
  CHECK(worker.head("/v1/tensors/x", {{"Range", "bytes=0-1"}}).status == 200);
}

TEST_CASE("ranges: a part, the rest, the end, and nothing that exists") {
  LiveWorker worker;
  auto const etag = worker.put_bytes("x", "0123456789").header("ETag");
  auto const part = worker.get("/v1/tensors/x", {{"Range", "bytes=2-4"}});
  CHECK(part.status == 206);
  CHECK(part.body == "234");
  CHECK(part.header("Content-Range") == "bytes 2-4/10");
  CHECK(worker.get("/v1/tensors/x", {{"Range", "bytes=7-"}}).body == "789");
  CHECK(worker.get("/v1/tensors/x", {{"Range", "bytes=-2"}}).body == "89");
  auto const beyond = worker.get("/v1/tensors/x", {{"Range", "bytes=10-"}});
  CHECK(beyond.code() == "range_not_satisfiable");
  CHECK(beyond.header("Content-Range") == "bytes */10");
  CHECK(worker.get("/v1/tensors/x", {{"Range", "bytes=x"}}).code() == "bad_request");
  CHECK(worker.get("/v1/tensors/x", {{"Range", "bytes=2-4"}, {"If-Range", etag}}).status == 206);
  CHECK(worker.get("/v1/tensors/x", {{"Range", "bytes=2-4"}, {"If-Range", "\"old\""}}).status == 200);
}

TEST_CASE("a range in other units than bytes is ignored") {
  LiveWorker worker;
  worker.put_bytes("x", "0123456789");
  auto const all = worker.get("/v1/tensors/x", {{"Range", "elements=0-1"}});
  CHECK(all.status == 200);
  CHECK(all.body == "0123456789");
}

TEST_CASE("bytes are taken as ordinary clients send them") {
  LiveWorker worker;
  auto const f32 = httplib::Headers{{"Tensor-Dtype", "f32"}, {"Tensor-Shape", "2"}};
  // curl --data-binary, and urllib.
  CHECK(worker.put("/v1/tensors/form", "12345678", f32, "application/x-www-form-urlencoded").status == 201);
  CHECK(worker.get("/v1/tensors/form").body == "12345678");
  // producer | curl -T -
  chorus::testing::RawConnection pipe(worker.port());
  pipe.send(
      "PUT /v1/tensors/pipe HTTP/1.1\r\nHost: localhost\r\nTensor-Dtype: f32\r\nTensor-Shape: 2\r\n"
      "Transfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n");
  CHECK(chorus::testing::status_of(pipe.read_answer(std::chrono::seconds(10))) == 100);
  pipe.send("3\r\n123\r\n5\r\n45678\r\n0\r\n\r\n");
  CHECK(chorus::testing::status_of(pipe.read_answer(std::chrono::seconds(10))) == 201);
  CHECK(worker.get("/v1/tensors/pipe").body == "12345678");
}

TEST_CASE("conditions: not modified, and no change of what another client has changed") {
  LiveWorker worker;
  auto const etag = worker.put_bytes("x", "1").header("ETag");
  auto const unchanged = worker.get("/v1/tensors/x", {{"If-None-Match", etag}});
  CHECK(unchanged.status == 304);
  CHECK(unchanged.header("ETag") == etag);
  CHECK(unchanged.body.empty());
  CHECK(worker.put_bytes("x", "2", {{"If-Match", etag}}).status == 200);
  CHECK(worker.put_bytes("x", "3", {{"If-Match", etag}}).code() == "precondition_failed");
  CHECK(worker.put_bytes("x", "3", {{"If-None-Match", "*"}}).code() == "precondition_failed");
  CHECK(worker.put_bytes("y", "3", {{"If-None-Match", "*"}}).status == 201);
  CHECK(worker.put_bytes("z", "3", {{"If-Match", "*"}}).code() == "precondition_failed");
  CHECK(worker.erase("/v1/tensors/x", {{"If-Match", etag}}).code() == "precondition_failed");
  CHECK(worker.get("/v1/tensors/x", {{"If-None-Match", "garbage"}}).code() == "bad_request");
  CHECK(worker.get("/v1/tensors/x").body == "2");
}

TEST_CASE("a deleted tensor is unknown, and comes back with a higher version") {
  LiveWorker worker;
  worker.put_bytes("x", "1");
  CHECK(worker.erase("/v1/tensors/x").status == 204);
  CHECK(worker.get("/v1/tensors/x").code() == "unknown_tensor");
  CHECK(worker.erase("/v1/tensors/x").code() == "unknown_tensor");
  CHECK(worker.put_bytes("x", "2").header("Tensor-Version") == "2");
}

TEST_CASE("a body that does not match its digest changes nothing") {
  LiveWorker worker;
  worker.put_bytes("x", "old");
  auto const refused =
      worker.put_bytes("x", "new", {{"Content-Digest", "sha-256=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:"}});
  CHECK(refused.status == 422);
  CHECK(refused.code() == "digest_mismatch");
  CHECK(worker.get("/v1/tensors/x").body == "old");
  CHECK(worker.version_of("x") == 1);
  auto const digest = worker.get("/v1/tensors/x", {{"Want-Repr-Digest", "sha-256=5"}}).header("Repr-Digest");
  CHECK(digest.starts_with("sha-256=:"));
  CHECK(worker.put_bytes("x", "old", {{"Content-Digest", digest}}).status == 200);
}

TEST_CASE("lists come in pages") {
  LiveWorker worker;
  for (auto const* name : {"c", "a", "b"}) worker.put_bytes(name, "1");
  auto const first = worker.get("/v1/tensors?limit=2").json();
  CHECK(first.at("items").as_array().size() == 2);
  CHECK(first.at("items").at(0).at("name") == "a");
  CHECK(first.at("next_cursor") == "b");
  auto const second = worker.get("/v1/tensors?limit=2&cursor=b").json();
  CHECK(second.at("items").at(0).at("name") == "c");
  CHECK_FALSE(second.as_object().contains("next_cursor"));
  CHECK(worker.get("/v1/tensors?limit=x").code() == "bad_request");
  CHECK(worker.get("/v1/tensors?cursor=..").code() == "bad_request");
}

TEST_CASE("lack of memory is a problem, not an end") {
  auto options = test_options();
  options.memory_limit_bytes = 1 << 20;
  LiveWorker worker(options);
  CHECK(worker.put_bytes("a", std::string(700000, 'x')).status == 201);
  auto const refused = worker.put_bytes("b", std::string(700000, 'x'));
  CHECK(refused.code() == "unavailable");
  CHECK_FALSE(refused.header("Retry-After").empty());
  CHECK(worker.erase("/v1/tensors/a").status == 204);
  CHECK(worker.put_bytes("b", std::string(700000, 'x')).status == 201);
}

TEST_CASE("a tensor that is larger than all the memory that there may be is not worth another try") {
  auto options = test_options();
  options.memory_limit_bytes = 1'000'000;
  LiveWorker worker(options);
  for (auto const bytes : {2'000'000, 1'000'000}) {  // the second one needs whole pages
    auto const refused = worker.put_bytes("a", std::string(static_cast<std::size_t>(bytes), 'x'));
    CHECK(refused.status == 413);
    CHECK(refused.code() == "payload_too_large");
    CHECK(refused.header("Retry-After").empty());
    CHECK(refused.body.find("--memory-limit-bytes") != std::string::npos);
  }
  CHECK(worker.put_bytes("a", std::string(900'000, 'x')).status == 201);
}

TEST_CASE("of two bodies that fit only one at a time one is refused on its way, and the other stays") {
  constexpr std::size_t mebi = 1 << 20, size = 6 * mebi;
  auto options = test_options();
  options.memory_limit_bytes = 10 * mebi;
  LiveWorker worker(options);
  chorus::testing::RawConnection first(worker.port()), second(worker.port());
  auto const announce = [](chorus::testing::RawConnection& connection, std::string const& name) {
    connection.send("PUT /v1/tensors/" + name +
                    " HTTP/1.1\r\nHost: localhost\r\nTensor-Dtype: u8\r\nTensor-Shape: " + std::to_string(size) +
                    "\r\nContent-Length: " + std::to_string(size) + "\r\nExpect: 100-continue\r\n\r\n");
    CHECK(chorus::testing::status_of(connection.read_answer(std::chrono::seconds(10))) == 100);
  };
  announce(first, "first");
  announce(second, "second");
  first.send(std::string(size, 'x'));
  CHECK(chorus::testing::status_of(first.read_answer(std::chrono::seconds(10))) == 201);
  second.send(std::string(size, 'x'));
  auto const refused = second.read_answer(std::chrono::seconds(10));
  CHECK_MESSAGE(refused.starts_with("HTTP/1.1 503 "), refused);
  CHECK(refused.find("Retry-After: ") != std::string::npos);
  CHECK_MESSAGE(refused.find("\"unavailable\"") != std::string::npos, refused);
  CHECK(worker.get("/v1/tensors/first").body.size() == size);
  CHECK(worker.get("/v1/tensors/second").code() == "unknown_tensor");
}
