// Clients' shared memory over HTTP: registration, tensors in it, and collectives on them.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <span>
#include <thread>

#include "worker/service/testing/live_group.hpp"

using namespace chorus;
using namespace chorus::service::testing;
using Floats = std::vector<float>;

namespace {

void allow(service::WorkerOptions& options) { options.allows_client_shm = true; }

// A client's mapped object of `count` floats.
class ClientObject {
 public:
  explicit ClientObject(std::string const& suffix, std::size_t count = 100000)
      : key("/test-" + std::to_string(getpid()) + "-client-" + suffix), bytes(count * sizeof(float)) {
    descriptor_ = shm_open(key.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
    REQUIRE(descriptor_ >= 0);
    resize(bytes);
    auto* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor_, 0);
    REQUIRE(at != MAP_FAILED);
    values = {static_cast<float*>(at), count};
  }
  ~ClientObject() {
    munmap(values.data(), bytes);
    close(descriptor_);
    shm_unlink(key.c_str());
  }
  ClientObject(ClientObject const&) = delete;
  ClientObject& operator=(ClientObject const&) = delete;

  void resize(std::size_t size) const { REQUIRE(ftruncate(descriptor_, static_cast<off_t>(size)) == 0); }
  void fill(float value) const { std::fill(values.begin(), values.end(), value); }
  [[nodiscard]] Floats read(std::size_t begin, std::size_t count) const {
    return {values.begin() + static_cast<std::ptrdiff_t>(begin),
            values.begin() + static_cast<std::ptrdiff_t>(begin + count)};
  }

  std::string const key;
  std::size_t const bytes;
  std::span<float> values;

 private:
  int descriptor_ = -1;
};

Answer enroll(LiveWorker const& worker, ClientObject const& object, std::string const& name = "r") {
  return worker.put("/v1/shm/system/" + name,
                    R"({"key":")" + object.key + R"(","bytes":)" + std::to_string(object.bytes) + "}");
}

Answer place(LiveWorker const& worker, std::string const& tensor, std::size_t offset_elements, std::size_t count,
             std::string const& region = "r") {
  return worker.put("/v1/tensors/" + tensor, R"({"dtype":"f32","shape":[)" + std::to_string(count) +
                                                 R"(],"shm":{"region":")" + region + R"(","offset":)" +
                                                 std::to_string(offset_elements * 4) + "}}");
}

std::string pointer_of(Answer const& answer) {
  auto const body = answer.json();
  if (!body.as_object().contains("errors")) return answer.body;
  return std::string(body.at("errors").at(0).at("pointer").as_string());
}

// Two workers; tensor x of the first is in a client's memory and all 1, x of the other is 2.
struct Pair {
  explicit Pair(std::string const& suffix, std::size_t count = 100000) : object(suffix, count), elements(count) {
    group.assign(1);
    object.fill(1);
    REQUIRE(enroll(group.at(0), object).status == 201);
    REQUIRE(place(group.at(0), "x", 0, count).status == 201);
    REQUIRE(group.at(1).put_tensor("x", "f32", Floats(count, 2)).status == 201);
  }
  // The answer to the first member's all_reduce if its client truncates the memory while the call waits for the second.
  Answer truncated_during(std::string const& body) {
    Answer answer;
    std::thread call([&] { answer = group.at(0).post("/v1/groups/g/all_reduce", body); });
    while (group.at(1).metrics().find(R"(chorus_link_connections{peer="w0",link="shm"} 1)") == std::string::npos)
      continue;
    object.resize(4096);
    group.at(1).post("/v1/groups/g/all_reduce", body);
    call.join();
    return answer;
  }

  ClientObject object;
  std::size_t const elements;
  LiveGroup group{2, allow};
};

}  // namespace

TEST_CASE("a worker that does not allow clients' memory refuses, and says how to allow it") {
  LiveWorker worker;
  ClientObject const object("forbidden");
  auto const answer = enroll(worker, object);
  CHECK(answer.code() == "forbidden");
  CHECK(answer.body.find("--allow-client-shm") != std::string::npos);
  CHECK(worker.get("/v1/shm/system").code() == "forbidden");
  CHECK(worker.get("/v1/shm/system/r").code() == "forbidden");
  CHECK(worker.erase("/v1/shm/system/r").code() == "forbidden");
  CHECK(place(worker, "x", 0, 1).code() == "forbidden");
}

TEST_CASE("regions are registered, shown, listed and deleted") {
  auto options = test_options();
  allow(options);
  LiveWorker worker(options);
  ClientObject const object("shown");
  auto const put = enroll(worker, object, "b");
  CHECK(put.status == 201);
  CHECK(put.header("Location") == "/v1/shm/system/b");
  CHECK(enroll(worker, object, "a").status == 201);
  CHECK(enroll(worker, object, "b").status == 200);
  auto const region = worker.get("/v1/shm/system/b").json();
  CHECK(region.at("key") == boost::json::string_view(object.key));
  CHECK(region.at("bytes") == object.bytes);
  CHECK(region.at("state") == "ready");
  auto const first = worker.get("/v1/shm/system?limit=1").json();
  CHECK(first.at("items").at(0).at("name") == "a");
  CHECK(worker.get("/v1/shm/system?cursor=a").json().at("items").at(0).at("name") == "b");
  CHECK(worker.erase("/v1/shm/system/b").status == 204);
  CHECK(worker.get("/v1/shm/system/b").code() == "unknown_region");
  CHECK(worker.erase("/v1/shm/system/b").code() == "unknown_region");
}

TEST_CASE("impossible regions and places are refused with the field") {
  auto options = test_options();
  allow(options);
  LiveWorker worker(options);
  ClientObject const object("refused", 1000);
  auto const put = [&](std::string const& body) { return pointer_of(worker.put("/v1/shm/system/r", body)); };
  auto const key = R"({"key":")" + object.key + '"';
  CHECK(put(R"({"key":"/../etc/passwd","bytes":1})") == "/key");
  CHECK(put(R"({"key":"/chorus-0123456789abcdef","bytes":1})") == "/key");
  CHECK(put(R"({"key":"/nobody-has-this","bytes":1})") == "/key");
  CHECK(put(key + R"(,"bytes":4001})") == "/bytes");
  CHECK(put(key + R"(,"bytes":0})") == "/bytes");
  CHECK(put(key + R"(,"bytes":2,"offset":18446744073709551615})") == "/bytes");
  CHECK(put(key + "}") == "/bytes");
  CHECK(put(R"({"bytes":1})") == "/key");
  CHECK(worker.put("/v1/shm/system/a%20b", key + R"(,"bytes":1})").status == 400);
  REQUIRE(enroll(worker, object).status == 201);
  CHECK(pointer_of(place(worker, "x", 0, 1001)) == "/shm/offset");
  CHECK(pointer_of(place(worker, "x", 1000, 1)) == "/shm/offset");
  CHECK(place(worker, "x", 1000, 0).status == 201);
  CHECK(place(worker, "x", 0, 1, "nobody").code() == "unknown_region");
  auto const odd = [&](std::string const& body) { return pointer_of(worker.put("/v1/tensors/y", body)); };
  CHECK(odd(R"({"dtype":"f32","shape":[1],"shm":{"region":"r","offset":2}})") == "/shm/offset");
  CHECK(odd(R"({"dtype":"f32","shape":[1],"shm":{"region":"r","offset":18446744073709551612}})") == "/shm/offset");
  CHECK(odd(R"({"dtype":"f31","shape":[1],"shm":{"region":"r"}})") == "/dtype");
  CHECK(odd(R"({"dtype":"f32","shape":[9223372036854775807,4],"shm":{"region":"r"}})") == "/shape");
  CHECK(odd(R"({"dtype":"f32","shape":[9000000],"shm":{"region":"r"}})") == "/shape");
  CHECK(odd(R"({"dtype":"f32","shape":[1]})") == "/shm");
  CHECK(worker.version_of("y") == 0);
}

TEST_CASE("a tensor in a client's memory is what the client has there now") {
  auto options = test_options();
  allow(options);
  LiveWorker worker(options);
  ClientObject const object("read");
  REQUIRE(enroll(worker, object).status == 201);
  auto const put = place(worker, "x", 10, 100);
  CHECK(put.json().at("shm").at("region") == "r");
  CHECK(put.json().at("shm").at("offset") == 40);
  object.fill(3);
  CHECK(worker.get_tensor<float>("x") == Floats(100, 3));
  object.fill(4);
  auto const got = worker.get("/v1/tensors/x", {{"If-None-Match", "\"0000000000000010-1\""}});
  CHECK(got.status == 200);  // no tag: the bytes change without a new version
  CHECK(got.header("ETag").empty());
  CHECK(got.header("Tensor-Shm-Region") == "r");
  CHECK(got.header("Tensor-Shm-Offset") == "40");
  CHECK(worker.get_tensor<float>("x") == Floats(100, 4));
  CHECK(worker.get("/v1/shm/system/r").json().at("tensors").at(0) == "x");
  CHECK(worker.get("/v1/tensors").json().at("items").at(0).at("shm").at("region") == "r");
}

TEST_CASE("a region in use is neither deleted nor replaced; an upload or DELETE of the tensor sets it free") {
  auto options = test_options();
  allow(options);
  LiveWorker worker(options);
  ClientObject const object("used"), other("other");
  REQUIRE(enroll(worker, object).status == 201);
  REQUIRE(place(worker, "x", 0, 100).status == 201);
  auto const refused = worker.erase("/v1/shm/system/r");
  CHECK(refused.status == 409);
  CHECK(refused.code() == "region_in_use");
  CHECK(refused.body.find("holds x") != std::string::npos);
  CHECK(enroll(worker, other).code() == "region_in_use");
  object.fill(5);
  worker.put_tensor<float>("x", "f32", {1, 2, 3});
  CHECK(object.read(0, 4) == Floats(4, 5));
  CHECK(enroll(worker, other).status == 200);
  CHECK(worker.get("/v1/shm/system/r").json().at("key") == boost::json::string_view(other.key));
  REQUIRE(place(worker, "x", 0, 100).status == 200);
  CHECK(worker.erase("/v1/tensors/x").status == 204);
  CHECK(worker.erase("/v1/shm/system/r").status == 204);
}

TEST_CASE("a collective reads the client's memory and leaves its result there") {
  Pair pair("reduced");
  for (auto const* body : {R"({"tensor":"x"})", R"({"tensor":"x","in_place":true})"}) {
    pair.object.fill(7);
    pair.group.at(1).put_tensor("x", "f32", Floats(pair.elements, 2));
    auto const before = pair.group.at(0).version_of("x");
    for (auto const& answer : pair.group.all_reduce(body)) {
      INFO(answer.body);
      CHECK(answer.status == 200);
    }
    CHECK(pair.object.read(0, pair.elements) == Floats(pair.elements, 9));
    CHECK(pair.group.at(0).version_of("x") == before + 1);
    CHECK(pair.group.at(0).get("/v1/tensors").json().at("items").at(0).as_object().contains("shm"));
    CHECK(pair.group.at(1).get_tensor<float>("x") == Floats(pair.elements, 9));
  }
}

TEST_CASE("the result of a launched run reaches the client's memory when it is committed, and not before") {
  Pair pair("launched", 1000);
  for (auto const& answer : pair.group.run(7)) {
    INFO(answer.body);
    REQUIRE(answer.status == 200);
  }
  CHECK(pair.object.read(0, 1000) == Floats(1000, 1));
  CHECK(pair.group.commit(0, 7).json().at("version") == 2);
  CHECK(pair.group.commit(0, 7).json().at("version") == 2);
  CHECK(pair.object.read(0, 1000) == Floats(1000, 3));
  for (auto const& answer : pair.group.run(8, [](auto& request) { request.version = request.rank == 0 ? 2 : 1; }))
    REQUIRE(answer.status == 200);
  pair.group.abort(0, 8);
  CHECK(pair.object.read(0, 1000) == Floats(1000, 3));
}

TEST_CASE("outputs, parts and lists of tensors may lie in clients' memory, others keep their shape") {
  Pair pair("several", 1000);
  auto& worker = pair.group.at(0);
  REQUIRE(place(worker, "half", 0, 500).status == 201);
  REQUIRE(place(worker, "rest", 500, 500).status == 201);
  for (auto const* name : {"half", "rest"}) pair.group.at(1).put_tensor(name, "f32", Floats(500, 2));
  for (auto const& answer : pair.group.all_reduce(R"({"tensors":["half","rest"]})")) {
    INFO(answer.body);
    CHECK(answer.status == 200);
  }
  CHECK(pair.object.read(0, 1000) == Floats(1000, 3));

  worker.put_tensor("own", "f32", Floats(500, 10));
  pair.group.at(1).put_tensor("own", "f32", Floats(500, 20));
  pair.group.at(1).put_tensor("rest", "f32", Floats(500));
  for (auto const& answer : pair.group.all_reduce(R"({"tensor":"own","output":"rest"})")) CHECK(answer.status == 200);
  CHECK(pair.object.read(0, 500) == Floats(500, 3));
  CHECK(pair.object.read(500, 500) == Floats(500, 30));

  auto const gather = worker.post("/v1/groups/g/all_gather", R"({"tensor":"half"})");
  CHECK(pointer_of(gather) == "/tensor");
  CHECK(gather.body.find("lies in region r") != std::string::npos);
  CHECK(pointer_of(worker.post("/v1/groups/g/all_gather", R"({"tensor":"own","output":"half"})")) == "/output");
}

TEST_CASE("memory that is truncated before a call is refused, and the others' call still fits the next one") {
  Pair pair("short");
  pair.object.resize(4096);
  auto const answer = pair.group.at(0).post("/v1/groups/g/all_reduce", R"({"tensor":"x"})");
  INFO(answer.body);
  CHECK(answer.code() == "region_damaged");
  CHECK(pair.group.at(0).get("/v1/tensors/x").code() == "region_damaged");
  CHECK(pair.group.at(0).get("/v1/shm/system/r").json().at("state") == "damaged");
  pair.group.at(0).put_tensor("x", "f32", Floats(pair.elements, 1));
  for (auto const& again : pair.group.all_reduce(R"({"tensor":"x"})")) CHECK(again.status == 200);
}

TEST_CASE("memory that is truncated during a call fails it here, with the cause") {
  for (bool const in_place : {false, true}) {
    CAPTURE(in_place);
    Pair pair("during");
    std::string const body =
        R"({"tensor":"x","timeout_ms":20000,"in_place":)" + std::string(in_place ? "true}" : "false}");
    auto const failed = pair.truncated_during(body);
    INFO(failed.body);
    CHECK(failed.code() == "region_damaged");
    CHECK(failed.json().at("ranks").at(0) == 0);
    CHECK(pair.group.at(0).get("/readyz").status == 200);
    // In place there is a new version, whatever its contents.
    CHECK(pair.group.at(0).get("/v1/tensors").json().at("items").at(0).at("version") == (in_place ? 2 : 1));
  }
}

TEST_CASE("a result whose place is gone at the end fails the call, and the group has to begin anew") {
  Pair pair("nowhere");
  for (std::size_t rank = 0; rank < 2; ++rank) pair.group.at(rank).put_tensor("own", "f32", Floats(pair.elements, 1));
  std::string const body = R"({"tensor":"own","output":"x","timeout_ms":20000})";
  auto const failed = pair.truncated_during(body);
  INFO(failed.body);
  CHECK(failed.code() == "region_damaged");
  CHECK(pair.group.at(0).post("/v1/groups/g/barrier", "{}").code() == "group_broken");
}

TEST_CASE("memory that is truncated before the commit fails the commit and not the worker") {
  Pair pair("late", 1000);
  for (auto const& answer : pair.group.run(7)) REQUIRE(answer.status == 200);
  pair.object.resize(0);
  CHECK(pair.group.commit(0, 7).code() == "region_damaged");
  CHECK(pair.group.at(0).get("/readyz").status == 200);
  CHECK(pair.group.at(0).version_of("x") == 0);  // HEAD of a damaged tensor is an error
}

TEST_CASE("memory that is truncated and restored while calls are on never ends the worker") {
  Pair pair("torn", 250000);
  std::atomic<bool> over = false;
  std::thread tearing([&] {
    while (!over) {
      pair.object.resize(0);
      pair.object.resize(pair.object.bytes);
    }
  });
  for (std::uint32_t round = 0; round < 20; ++round) {
    pair.group.at(0).erase("/v1/tensors/x");
    enroll(pair.group.at(0), pair.object);
    place(pair.group.at(0), "x", 0, pair.elements);
    pair.group.assign(2 + round);
    pair.group.all_reduce(R"({"tensor":"x","timeout_ms":2000})");
    pair.group.at(0).get("/v1/tensors/x");
  }
  over = true;
  tearing.join();
  CHECK(pair.group.at(0).get("/readyz").status == 200);
}
