// A worker after the file of its shared memory was truncated.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/mentions.hpp"
#include "worker/service/testing/live_group.hpp"

using namespace chorus::service::testing;
using chorus::testing::mentions;

namespace {

// Longer than the rest of the file.
std::string const value(5 << 20, 'v');

}  // namespace

TEST_CASE("truncated memory gives a problem, not zeros") {
  LiveWorker worker;
  worker.put_bytes("x", value);
  worker.truncate_memory();
  CHECK(worker.get("/v1/tensors/x").code() == "memory_damaged");
  CHECK(worker.get("/v1/tensors/x", {{"Want-Repr-Digest", "crc32c=1"}}).code() == "memory_damaged");
  CHECK(worker.get("/v1/tensors/x", {{"Range", "bytes=0-1"}}).code() == "memory_damaged");
}

TEST_CASE("an upload after the truncation is refused with the cause, not as the client's fault") {
  LiveWorker worker;
  worker.truncate_memory();
  CHECK(worker.put_bytes("y", value).code() == "memory_damaged");
  CHECK(worker.get("/v1/tensors/y").code() == "memory_damaged");
}

TEST_CASE("a worker whose memory was truncated is not ready, says why, and once in its log") {
  LiveWorker worker;
  CHECK(worker.get("/readyz").status == 200);
  worker.truncate_memory();
  for (int i = 0; i < 2; ++i) {
    auto const ready = worker.get("/readyz");
    CHECK(ready.status == 503);
    CHECK_MESSAGE(mentions(ready.body, "was truncated"), ready.body);
  }
  auto const log = worker.logged();
  auto const said = log.find("has to be started again");
  CHECK(said != std::string::npos);
  CHECK(log.find("has to be started again", said + 1) == std::string::npos);
  CHECK(worker.get("/livez").status == 200);
}

TEST_CASE("a run with truncated memory fails with the cause on the rank that has it") {
  LiveGroup group(2);
  group.put_everywhere("x", 1000);
  group.at(1).truncate_memory();
  auto const answers = group.run(7);
  CHECK(answers[1].code() == "memory_damaged");
}

TEST_CASE("tensors in truncated memory can be deleted, and a worker that shares none is not affected") {
  LiveWorker worker;
  worker.put_bytes("x", value);
  worker.truncate_memory();
  CHECK(worker.erase("/v1/tensors/x").status == 204);
}
