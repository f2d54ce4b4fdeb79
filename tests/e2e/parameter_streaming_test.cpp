// Large parameters through a worker that owns no part of them: it needs memory for a piece, not for the whole.
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <future>

#include "tests/support/fleets/parameters.hpp"
#include "tests/support/process_size.hpp"
#include "tests/support/raw_http.hpp"

using namespace chorus::testing;

namespace {

using Floats = std::vector<float>;
constexpr std::size_t elements = 64 << 20;  // 256 MiB

// Workers w0 and w1 in group "g" have the parameter; requests go to w2.
void make(Cluster& cluster, std::size_t count) {
  cluster.make_group("g", {"w0", "w1"});
  auto const request = R"({"group":"g","shards":3,"shape":[)" + std::to_string(count) + "]}";
  // A busy machine may not make the parameter in time: no part of the attempt remains then.
  REQUIRE(eventually([&] { return cluster.coordinator.put("/v1/parameters/w", request).status / 100 == 2; },
                     std::chrono::seconds(60)));
}

Floats counting(std::size_t count) {
  Floats values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1021);
  return values;
}

}  // namespace

TEST_CASE("256 MiB are pushed and pulled through a worker that needs a few MiB for them") {
  Cluster cluster(3);
  make(cluster, elements);
  auto& entry = cluster.worker(2);
  auto const before = (size_of(entry.process).peak_kib >> 10);
  ParameterClient client(entry.url, "c");
  auto const values = counting(elements);
  auto const bytes = ParameterClient::bytes(values);
  auto const pushed = client.push("w", bytes);
  REQUIRE_MESSAGE(pushed.status == 200, pushed.body);
  CHECK(pushed.json().at("version") == 1);
  CHECK(client.repeat("w", bytes, 0).json().at("duplicate") == true);
  auto const answer = client.pull("w");
  CHECK(answer.status == 200);
  CHECK(answer.header("ETag") == "\"1.1\"");
  CHECK((answer.body == bytes));
  CHECK(answer.header("Content-Length") == std::to_string(bytes.size()));  // so that no client takes a part for all
  CHECK(client.pull("w", {{"If-None-Match", answer.header("ETag")}}).status == 304);
  auto const part = client.pull("w", {{"Range", "bytes=4-200000003"}});
  CHECK(part.status == 206);
  CHECK(part.header("Content-Length") == "200000000");
  CHECK((part.body == bytes.substr(4, 200'000'000)));
  CHECK(client.push("w", bytes.substr(0, 4)).code() == "length_mismatch");
  if (under_sanitizer())
    MESSAGE("memory is not looked at: a sanitizer keeps what was freed");
  else
    CHECK((size_of(entry.process).peak_kib >> 10) < before + 48);
}

TEST_CASE("a chunked push counts only if it has all elements at its end") {
  Cluster cluster(3);
  make(cluster, 6);
  std::uint64_t sequence = 0;
  // Pushes through an owner, and through a worker that owns no part of the parameter.
  for (std::size_t entry : {0, 2}) {
    auto& worker = cluster.worker(entry);
    auto const push = [&](std::string const& bytes, std::string const& more = "") {
      RawConnection pipe(worker.port());
      pipe.send("POST /v1/parameters/w/gradient HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n" + more +
                "Chorus-Client: c\r\nChorus-Sequence: " + std::to_string(sequence) + "\r\n\r\n5\r\n" +
                bytes.substr(0, 5) + "\r\n");
      std::array<char, 16> size{};
      std::snprintf(size.data(), size.size(), "%zx", bytes.size() - 5);
      pipe.send(size.data() + ("\r\n" + bytes.substr(5)) + "\r\n0\r\n\r\n");
      return status_of(pipe.read_answer(std::chrono::seconds(60)));
    };
    auto const ones = ParameterClient::bytes(Floats(6, 1));
    CHECK(push(ones.substr(4)) == 422);
    CHECK(push(ones + ones.substr(4)) == 422);
    CHECK(push(ones, "Chorus-Compression: two_bit\r\n") == 411);  // a compressed push needs a Content-Length
    CHECK(push(ones) == 200);
    ++sequence;
    CHECK(ParameterClient::values<float>(ParameterClient(worker.url, "r").pull("w").body) ==
          Floats(6, static_cast<float>(sequence)));
  }
}

TEST_CASE("a value that is read in pieces has one version per shard, even during pushes") {
  constexpr std::size_t count = 12 << 20;  // three shards of 16 MiB
  Cluster cluster(3);
  make(cluster, count);
  std::atomic<bool> ends = false;
  auto pushes = std::async(std::launch::async, [&] {
    ParameterClient client(cluster.worker(2).url, "c");
    auto const ones = ParameterClient::bytes(Floats(count, 1));
    while (!ends)
      if (client.push("w", ones).status != 200) throw std::runtime_error("a push was refused");
    return client.sequence("w");
  });
  ParameterClient const reader(cluster.worker(2).url, "r");
  for (int i = 0; i < 5; ++i) {
    auto const answer = reader.pull("w");
    REQUIRE(answer.status == 200);
    auto const values = ParameterClient::values<float>(answer.body);
    REQUIRE(values.size() == count);
    for (std::size_t shard = 0; shard < 3; ++shard) {
      auto const begin = values.begin() + static_cast<std::ptrdiff_t>(shard * count / 3);
      auto const end = begin + static_cast<std::ptrdiff_t>(count / 3);
      CHECK(std::all_of(begin, end, [&](float value) { return value == *begin; }));
    }
  }
  ends = true;
  auto const total = static_cast<float>(pushes.get());
  CHECK((ParameterClient::values<float>(reader.pull("w").body) == Floats(count, total)));
}
