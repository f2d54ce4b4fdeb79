// Tensors on GPUs over HTTP: their descriptions and their problems.
#include <doctest/doctest.h>

#include "http/json/json.hpp"
#include "tests/support/raw_http.hpp"
#include "worker/service/testing/doubles.hpp"

using namespace chorus;
using namespace chorus::service::testing;
using devices::GpuErrc;

namespace {

// Bytes in which no two pieces of a slot are alike.
std::string pattern(std::size_t bytes) {
  std::string text(bytes, '\0');
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>((i * 7 + i / 251) & 0xff);
  return text;
}

Answer put_on(LiveWorker& worker, std::string const& device, std::string const& bytes, httplib::Headers headers = {}) {
  headers.emplace("Tensor-Device", device);
  return worker.put_bytes("x", bytes, std::move(headers));
}

std::string detail(Answer const& answer) { return std::string(answer.json().at("detail").as_string()); }

constexpr std::size_t two_slots_and_more = (2 << 20) + 12345;

}  // namespace

TEST_CASE("bytes that were put on a GPU come back unchanged, whatever their length") {
  GpuWorker worker;
  for (std::size_t const size : {0ul, 1ul, 4097ul, 1ul << 20, two_slots_and_more}) {
    INFO(size);
    auto const bytes = pattern(size);
    REQUIRE(put_on(worker, "cuda:0", bytes).status / 100 == 2);
    auto const got = worker.get("/v1/tensors/x");
    CHECK(got.status == 200);
    CHECK(got.header("Content-Length") == std::to_string(size));
    CHECK(got.header("Tensor-Device") == "cuda:0");
    CHECK((got.body == bytes));
  }
  CHECK(worker.gpu().allocations() == 1);
}

TEST_CASE("answers, lists and HEAD name the device of a tensor") {
  GpuWorker worker(2);
  auto const put = put_on(worker, "cuda:1", "12345");
  CHECK(put.status == 201);
  CHECK(put.header("Tensor-Device") == "cuda:1");
  CHECK(put.json().at("device") == "cuda:1");
  CHECK(put.header("Tensor-Version") == "1");
  auto const head = worker.head("/v1/tensors/x");
  CHECK(head.header("Tensor-Device") == "cuda:1");
  CHECK(head.header("Content-Length") == "5");
  CHECK(head.header("ETag") == put.header("ETag"));
  worker.put_bytes("y", "1");
  auto const list = worker.get("/v1/tensors").json();
  CHECK(list.at("items").at(0).at("device") == "cuda:1");
  CHECK(list.at("items").at(1).at("device") == "cpu");
}

TEST_CASE("a range of a tensor on a GPU") {
  GpuWorker worker;
  auto const bytes = pattern(two_slots_and_more);
  auto const etag = put_on(worker, "cuda:0", bytes).header("ETag");
  auto const part = worker.get("/v1/tensors/x", {{"Range", "bytes=1048000-2200000"}, {"If-Range", etag}});
  CHECK(part.status == 206);
  CHECK((part.body == bytes.substr(1048000, 2200000 - 1048000 + 1)));
  CHECK(worker.get("/v1/tensors/x", {{"Range", "bytes=-1"}}).body == bytes.substr(bytes.size() - 1));
  CHECK(worker.get("/v1/tensors/x", {{"Range", "bytes=9999999-"}}).code() == "range_not_satisfiable");
  CHECK(worker.get("/v1/tensors/x", {{"If-None-Match", etag}}).status == 304);
}

TEST_CASE("every version may be on another device, and frees its memory when it goes") {
  GpuWorker worker(2);
  CHECK(put_on(worker, "cuda:0", "one").header("Tensor-Version") == "1");
  CHECK(put_on(worker, "cpu", "two").header("Tensor-Device") == "cpu");
  CHECK(worker.get("/v1/tensors/x").body == "two");
  CHECK(put_on(worker, "cuda:1", "three").header("Tensor-Version") == "3");
  CHECK(worker.get("/v1/tensors/x").body == "three");
  CHECK(worker.put_bytes("x", "four").header("Tensor-Device") == "cpu");
  CHECK(worker.metrics().find("chorus_gpu_arena_used_bytes{device=\"cuda:1\"} 0\n") != std::string::npos);
}

TEST_CASE("a digest is of the bytes on the GPU, and a body that does not match its own changes nothing") {
  GpuWorker worker;
  auto const bytes = pattern(two_slots_and_more);
  worker.put_bytes("host", bytes);
  auto const wanted = httplib::Headers{{"Want-Repr-Digest", "sha-256=1"}};
  auto const digest = worker.head("/v1/tensors/host", wanted).header("Repr-Digest");
  REQUIRE(digest.starts_with("sha-256=:"));
  REQUIRE(put_on(worker, "cuda:0", bytes, {{"Content-Digest", digest}}).status == 201);
  CHECK(worker.head("/v1/tensors/x", wanted).header("Repr-Digest") == digest);
  CHECK(put_on(worker, "cuda:0", bytes + "!", {{"Content-Digest", digest}}).code() == "digest_mismatch");
  CHECK(worker.version_of("x") == 1);
}

TEST_CASE("an invalid or missing device is refused with the existing ones") {
  GpuWorker two(2);
  LiveWorker without;
  auto const why = [](LiveWorker& worker, char const* device) {
    auto const refused = put_on(worker, device, "1");
    CHECK(refused.status == 400);
    CHECK(refused.code() == "bad_request");
    return detail(refused);
  };
  for (auto const* device : {"gpu0", "cuda", "cuda:", "cuda:-1", "-1", "CUDA:0", "cuda:0,1", ""}) {
    INFO(device);
    CHECK(why(two, device) == "Tensor-Device: '" + std::string(device) + "' is no device: cpu, cuda:0, cuda:1, ...");
  }
  CHECK(why(two, "cuda:999") == "Tensor-Device: there is no cuda:999 here: there is cuda:0, cuda:1");
  CHECK(why(without, "cuda:0") == "Tensor-Device: there is no cuda:0 here: a test has none");
  CHECK(two.get("/v1/tensors/x").status == 404);
}

TEST_CASE("a GPU without room says how much there is, and its old tensor stays") {
  auto options = test_options();
  options.gpu_limits.arena_bytes = 4 << 20;
  GpuWorker worker(1, options);
  auto const bytes = pattern(3 << 20);
  REQUIRE(put_on(worker, "cuda:0", bytes).status == 201);
  auto const refused = put_on(worker, "cuda:0", bytes);
  CHECK(refused.status == 503);
  CHECK(refused.code() == "unavailable");
  CHECK(detail(refused) == "cuda:0: 3145728 bytes asked for, 3145728 of the arena's 4194304 in use");
  CHECK_FALSE(refused.header("Retry-After").empty());
  CHECK((worker.get("/v1/tensors/x").body == bytes));
  CHECK(worker.erase("/v1/tensors/x").status == 204);
  CHECK(put_on(worker, "cuda:0", bytes).status == 201);
}

TEST_CASE("an arena that the driver refuses is a problem with the driver's text") {
  auto options = test_options();
  options.gpu_limits.arena_bytes = std::uint64_t{1} << 40;
  GpuWorker worker(1, options);
  auto const refused = put_on(worker, "cuda:0", "1");
  CHECK(refused.code() == "unavailable");
  CHECK(detail(refused) == "cuda:0: no room for 1099511627776 bytes in the double");
  CHECK(worker.get("/readyz").status == worker.get("/livez").status);
}

TEST_CASE("pinned memory that is all in use is a problem, and other tensors of the same worker go on") {
  auto options = test_options();
  options.gpu_limits.pinned_bytes = 0;
  GpuWorker worker(1, options);
  auto const refused = put_on(worker, "cuda:0", "1");
  CHECK(refused.code() == "unavailable");
  CHECK_FALSE(refused.header("Retry-After").empty());
  CHECK(detail(refused).find("pinned memory for cuda:0 are in use") != std::string::npos);
  CHECK(worker.put_bytes("x", "1").status == 201);
}

TEST_CASE("whichever call of the device fails, an upload is whole or has changed nothing") {
  GpuWorker worker;
  auto const before = pattern(100), after = pattern(two_slots_and_more);
  for (int call = 0;; ++call) {
    INFO(call);
    REQUIRE(put_on(worker, "cuda:0", before).status / 100 == 2);
    auto const version = worker.version_of("x");
    worker.gpu().fail_after(call, GpuErrc::failed);
    auto const put = put_on(worker, "cuda:0", after);
    worker.gpu().fail_after(-1, GpuErrc::failed);
    if (put.status == 200) break;
    CHECK(put.status == 500);
    CHECK(put.code() == "device_failed");
    CHECK(detail(put) == "cuda:0: the double was told to fail");
    CHECK(worker.version_of("x") == version);
    CHECK((worker.get("/v1/tensors/x").body == before));
    REQUIRE(call < 1000);
  }
  CHECK((worker.get("/v1/tensors/x").body == after));
}

TEST_CASE("whichever call of the device fails, no client takes a part of a tensor for the whole") {
  GpuWorker worker;
  auto const bytes = pattern(two_slots_and_more);
  REQUIRE(put_on(worker, "cuda:0", bytes).status == 201);
  int refused = 0, cut_off = 0;
  for (int call = 0;; ++call) {
    INFO(call);
    worker.gpu().fail_after(call, GpuErrc::failed);
    auto const got = worker.get("/v1/tensors/x");
    worker.gpu().fail_after(-1, GpuErrc::failed);
    if (got.status == 200) {
      CHECK((got.body == bytes));
      break;
    }
    bool const is_cut_off = got.status == 0;
    if (!is_cut_off) CHECK(got.code() == "device_failed");
    ++(is_cut_off ? cut_off : refused);
    REQUIRE(call < 1000);
  }
  CHECK(refused > 0);
  CHECK(cut_off > 0);
}

TEST_CASE("no byte of a tensor is sent behind a piece that could not be read") {
  GpuWorker worker;
  auto const bytes = pattern(3 * two_slots_and_more);
  REQUIRE(put_on(worker, "cuda:0", bytes).status == 201);
  std::string came;
  for (int call = 0; came != bytes; ++call) {
    INFO(call);
    worker.gpu().fail_after(call, GpuErrc::failed);
    chorus::testing::RawConnection client(worker.port());
    client.send("GET /v1/tensors/x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    auto const answer = client.read_to_end(std::chrono::seconds(20));
    worker.gpu().fail_after(-1, GpuErrc::failed);
    if (chorus::testing::status_of(answer) != 200) continue;
    came = answer.substr(answer.find("\r\n\r\n") + 4);
    CHECK(bytes.starts_with(came));
    REQUIRE(call < 1000);
  }
}

TEST_CASE("a GPU that is lost: its tensors are problems, the worker is not ready, the rest goes on") {
  GpuWorker worker(2);
  REQUIRE(put_on(worker, "cuda:1", "on the other").status == 201);
  worker.gpu(0).fail_after(2, GpuErrc::lost);
  CHECK(put_on(worker, "cuda:0", "1").code() == "device_failed");
  auto const unready = worker.get("/readyz");
  CHECK(unready.status == 503);
  CHECK(detail(unready) == "a GPU is lost: cuda:0: the double was told to fail");
  CHECK(put_on(worker, "cuda:0", "1").code() == "device_failed");
  CHECK(worker.get("/v1").json().at("gpus").at(0).at("lost") == "cuda:0: the double was told to fail");
  CHECK(worker.get("/livez").status == 200);
  CHECK(worker.get("/v1/tensors/x").body == "on the other");
  CHECK(worker.put_bytes("host", "1").status == 201);
}

TEST_CASE("a GPU that hangs stops neither the API of its worker nor the worker's end") {
  auto options = test_options();
  options.gpu_limits.patience = std::chrono::milliseconds(20);
  GpuWorker worker(1, options);
  worker.gpu().hang();
  auto const put = put_on(worker, "cuda:0", "1");
  CHECK(put.code() == "device_failed");
  CHECK(detail(put) == "cuda:0: a copy took longer than 20 ms");
  CHECK(put_on(worker, "cuda:0", "1").code() == "device_failed");
  CHECK(worker.get("/livez").status == 200);
  CHECK(worker.put_bytes("host", "1").status == 201);
  CHECK(detail(worker.get("/readyz")) == "a GPU is lost: cuda:0: a copy took longer than 20 ms");
}

TEST_CASE("a client that goes away in the middle leaves nothing behind") {
  auto options = test_options();
  options.gpu_limits.pinned_bytes = 2 << 20;
  GpuWorker worker(1, options);
  {
    chorus::testing::RawConnection client(worker.port());
    client.send(
        "PUT /v1/tensors/x HTTP/1.1\r\nHost: 127.0.0.1\r\nTensor-Dtype: u8\r\nTensor-Shape: 3000000\r\n"
        "Tensor-Device: cuda:0\r\nContent-Length: 3000000\r\n\r\n" +
        pattern(2000000));
  }
  // The slots come back when the worker has noticed.
  auto put = put_on(worker, "cuda:0", "1");
  while (put.code() == "unavailable") put = put_on(worker, "cuda:0", "1");
  CHECK(put.status == 201);
  CHECK(put.header("Tensor-Version") == "1");
}

TEST_CASE(
    "clients that trickle hold no pinned memory: others come and go through the one slot of two that they may have") {
  auto options = test_options();
  options.gpu_limits.pinned_bytes = 2 << 20;
  GpuWorker worker(1, options);
  auto const bytes = pattern(7 << 20);
  REQUIRE(put_on(worker, "cuda:0", bytes).status == 201);
  // One client stops in the middle of a piece, and one does not read.
  chorus::testing::RawConnection sends(worker.port()), takes(worker.port(), 4096);
  sends.send(
      "PUT /v1/tensors/slow HTTP/1.1\r\nHost: 127.0.0.1\r\nTensor-Dtype: u8\r\nTensor-Shape: 3000000\r\n"
      "Tensor-Device: cuda:0\r\nContent-Length: 3000000\r\n\r\n" +
      pattern(2000000));
  takes.send("GET /v1/tensors/x HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
  for (int again = 0; again < 5; ++again) {
    CHECK((worker.get("/v1/tensors/x").body == bytes));
    CHECK(put_on(worker, "cuda:0", bytes).status == 200);
  }
  sends.send(pattern(3000000).substr(2000000));
  CHECK(chorus::testing::status_of(sends.read_answer(std::chrono::seconds(20))) == 201);
  CHECK((worker.get("/v1/tensors/slow").body == pattern(3000000)));
  CHECK(takes.read_to_end(std::chrono::seconds(20)).ends_with(bytes));
}

TEST_CASE("a worker lists its GPUs") {
  GpuWorker worker(2);
  auto const gpus = worker.get("/v1").json().at("gpus").as_array();
  REQUIRE(gpus.size() == 2);
  CHECK(gpus.at(1).at("device") == "cuda:1");
  CHECK(gpus.at(1).at("uuid") == "GPU-00000000-0000-0000-0000-000000000001");
  CHECK(gpus.at(1).at("memory_bytes") == 64 << 20);
  CHECK(LiveWorker().get("/v1").json().at("gpus").as_array().empty());
}
