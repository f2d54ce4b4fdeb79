// `chorus tensors` against real workers: files are sent and received, and all errors on the way.
#include <doctest/doctest.h>
#include <signal.h>

#include <filesystem>

#include "tests/support/faults/fault_proxy.hpp"
#include "tests/support/fleets/cluster.hpp"
#include "tests/support/fleets/secure_fleet.hpp"
#include "tests/support/scratch_directory.hpp"
#include "tests/support/terminal.hpp"

using namespace chorus::testing;

namespace {

std::vector<std::string> words_of(Cluster const& cluster, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {binary("chorus"), "--coordinator", cluster.coordinator.url, "tensors"});
  return arguments;
}

Ran tensors(Cluster const& cluster, std::vector<std::string> arguments) {
  return run(words_of(cluster, std::move(arguments)));
}

bool has(Ran const& ran, std::string const& part) {
  INFO(ran.output);
  CHECK(ran.output.find(part) != std::string::npos);
  return ran.output.find(part) != std::string::npos;
}

// A vector of floats in the format of numpy.save.
std::string npy_of(std::vector<float> const& values) {
  std::string line = "{'descr': '<f4', 'fortran_order': False, 'shape': (" + std::to_string(values.size()) + ",), }";
  line.resize(117, ' ');
  using namespace std::string_literals;
  return "\x93NUMPY\x01\0\x76\0"s + line + "\n" +
         std::string(reinterpret_cast<char const*>(values.data()), 4 * values.size());
}

// Integers, whose sums are exact in any order.
std::vector<float> numbers(std::size_t count, std::size_t factor) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(factor * (i % 1000));
  return values;
}

// A worker "far" behind a proxy, through which all processes but this test reach it.
struct FarWorker {
  explicit FarWorker(Cluster const& cluster)
      : worker("far", {binary("chorus-worker"), "--port", "0", "--coordinator", cluster.coordinator.url, "--id", "far",
                       "--locality", "host=h9", "--log-level", "error", "--advertise",
                       "127.0.0.1:" + std::to_string(proxy.port())}) {
    proxy.forward_to(worker.port());
    REQUIRE(eventually([&] { return worker.get("/readyz").status == 200; }));
  }
  FaultProxy proxy{1};
  Service worker;
};

}  // namespace

TEST_CASE("a .npy file on two workers is summed, and the sum is written as a .npy file, bit for bit") {
  Cluster cluster(2);
  cluster.make_group("g");
  ScratchDirectory directory;
  constexpr std::size_t count = 300'001;
  write_file(directory / "in.npy", npy_of(numbers(count, 3)));
  auto const put = tensors(cluster, {"put", "grad/0", directory / "in.npy", "--worker", "w0,w1", "--table"});
  CHECK(put.status == 0);
  CHECK(has(put, "grad/0 on w0: f32[300001], 1.1 MiB, version 1, "));
  CHECK(has(put, "grad/0 on w1: f32[300001], 1.1 MiB, version 1, "));
  CHECK(run({binary("chorus"), "--coordinator", cluster.coordinator.url, "run", "all_reduce", "--group", "g",
             "--tensor", "grad/0"})
            .status == 0);

  CHECK(has(tensors(cluster, {"get", "grad/0", directory / "sum.npy", "--worker", "w1", "--table"}),
            "grad/0 from w1: f32[300001], 1.1 MiB, version 2, "));
  CHECK(content_of(directory / "sum.npy") == npy_of(numbers(count, 6)));
  CHECK(tensors(cluster, {"get", "grad/0", directory / "sum", "--worker", "w0"}).status == 0);
  CHECK(content_of(directory / "sum") == content_of(directory / "sum.npy").substr(128));

  CHECK(has(tensors(cluster, {}), "w1      grad/0  f32    [300001]  1.1 MiB        2  cpu"));
  CHECK(tensors(cluster, {"remove", "grad/0", "--worker", "w0"}).output == "grad/0 on w0: removed\n");
  auto const again = tensors(cluster, {"remove", "grad/0", "--worker", "w0,w1"});
  CHECK(again.status == 1);
  CHECK(has(again, "worker 'w0': there is no tensor grad/0 (unknown_tensor)"));
  CHECK(has(again, "grad/0 on w1: removed\n"));
}

TEST_CASE("raw files of any dtype and shape, empty or longer than a range, come back unchanged") {
  Cluster cluster(1);
  ScratchDirectory directory;
  auto const there_and_back = [&](std::string const& content, std::vector<std::string> const& description) {
    write_file(directory / "in", content);
    std::vector<std::string> put{"put", "x", directory / "in", "--worker", "w0"};
    put.insert(put.end(), description.begin(), description.end());
    CHECK(tensors(cluster, put).status == 0);
    CHECK(tensors(cluster, {"get", "x", directory / "out", "--worker", "w0", "--force"}).status == 0);
    return content_of(directory / "out") == content;
  };
  std::string large((64 << 20) + 2, 'x');
  for (std::size_t i = 0; i < large.size(); i += 4093) large[i] = static_cast<char>(i / 4093);
  CHECK(there_and_back("12345678", {"--dtype", "bf16", "--shape", "2,1,2"}));
  CHECK(cluster.worker(0).get("/v1/tensors").json().at("items").at(0).at("shape") == boost::json::array{2, 1, 2});
  CHECK(there_and_back("", {"--dtype", "i64"}));
  CHECK(there_and_back(large, {"--dtype", "i16"}));
}

TEST_CASE("a tensor that a worker refuses is reported before it is sent, and not tried again") {
  Cluster cluster(0);
  auto& small = cluster.add_worker("small", "host=h0", {"--tensor-limit-bytes", "1048576"});
  auto& other = cluster.add_worker("other", "host=h1");
  ScratchDirectory directory;
  write_file(directory / "large", "");
  std::filesystem::resize_file(directory / "large", 1ull << 30);
  auto const refused = tensors(cluster, {"put", "x", directory / "large", "--worker", "small,other", "--dtype", "u8"});
  CHECK(refused.status == 1);
  CHECK(has(refused,
            "error: The body is too large: worker 'small': a tensor has at most 1048576 bytes here, this one "
            "has 1073741824 (payload_too_large)"));
  CHECK(small.tensor_version("x") == 0);
  CHECK(other.tensor_version("x") == 0);
  write_file(directory / "odd", "12345");
  CHECK(tensors(cluster, {"put", "x", directory / "odd", "--worker", "other", "--dtype", "f32"}).status == 2);
  CHECK(has(tensors(cluster, {"put", "x", directory / "odd", "--worker", "othr", "--dtype", "u8"}),
            "there is no worker 'othr'; did you mean 'other'? (unknown_worker)"));
}

TEST_CASE("an unreachable worker is named, and not taken for the coordinator") {
  Cluster cluster(2);
  ScratchDirectory directory;
  write_file(directory / "x", "12345");
  cluster.kill_worker(1);
  std::vector<std::vector<std::string>> const all{{"--worker", "w0,w1"},
                                                  {"put", "x", directory / "x", "--worker", "w1", "--dtype", "u8"},
                                                  {"get", "x", directory / "y", "--worker", "w1"},
                                                  {"remove", "x", "--worker", "w1"}};
  for (auto const& arguments : all) {
    auto const ran = tensors(cluster, arguments);
    CHECK(ran.status == 1);
    CHECK(has(ran, "error: A worker is unreachable: worker 'w1': "));
  }
}

TEST_CASE("a terminal shows the progress of a file") {
  Cluster cluster(0);
  FarWorker far(cluster);
  ScratchDirectory directory;
  write_file(directory / "x", "");
  std::filesystem::resize_file(directory / "x", 64 << 20);
  far.proxy.suffer(Harm::deaf);
  Terminal terminal(words_of(cluster, {"put", "x", directory / "x", "--worker", "far", "--dtype", "u8"}), 120, 10);
  CHECK(terminal.shows("x to far: 0 B of 64 MiB"));
  CHECK(far.worker.tensor_version("x") == 0);
  far.proxy.suffer(Harm::delay);
  CHECK(terminal.shows(" MiB, "));
  CHECK(terminal.shows(" s left"));
  far.proxy.suffer(Harm::none);
  CHECK(terminal.shows("x on far: u8[67108864], 64 MiB, version 1, "));
  CHECK(terminal.wait() == 0);
  CHECK(terminal.screen().text().find("left") == std::string::npos);
}

TEST_CASE("a tensor that changes after its version was read is not written") {
  Cluster cluster(0);
  FarWorker far(cluster);
  ScratchDirectory directory;
  far.worker.put_tensor("x", "u8", std::vector<std::uint8_t>(1000, 1));
  far.proxy.suffer(Harm::mute);
  Process get(words_of(cluster, {"get", "x", directory / "x", "--worker", "far", "--json"}));
  CHECK(eventually([&] { return far.proxy.harmed() > 0; }));  // version 1 was found, but has not arrived
  far.worker.put_tensor("x", "u8", std::vector<std::uint8_t>(1000, 2));
  far.proxy.suffer(Harm::none);
  CHECK(get.read_line().find("tensor x changed while it was read: it was at version 1") != std::string::npos);
  CHECK(get.wait() == 1);
  CHECK(std::filesystem::is_empty(directory / ""));
}

TEST_CASE("an interrupted command leaves no file behind, and ends by the signal") {
  Cluster cluster(0);
  FarWorker far(cluster);
  ScratchDirectory directory;
  far.worker.put_tensor("x", "u8", std::vector<std::uint8_t>(64 << 20, 1));
  for (auto const number : {SIGINT, SIGTERM}) {
    far.proxy.suffer(Harm::delay);
    Terminal get(words_of(cluster, {"get", "x", directory / "x", "--worker", "far"}), 120, 10);
    CHECK(get.shows(" s left"));
    CHECK(std::filesystem::exists(directory / "x.part"));
    CHECK(!std::filesystem::exists(directory / "x"));
    get.signal(number);
    CHECK(get.wait() == 128 + number);
    CHECK(std::filesystem::is_empty(directory / ""));
  }
}

TEST_CASE("files go over TLS with a token of the right role, and are refused with any other") {
  SecureFleet fleet(1);
  ScratchDirectory directory;
  write_file(directory / "x", std::string(9 << 20, 'x'));
  std::vector<std::string> const put{"tensors",          "put",     "x", directory / "x", "--worker",
                                     fleet.worker(0).id, "--dtype", "u8"};
  auto const submit = fleet.badge("submit");
  CHECK(fleet.chorus(submit, put).status == 0);
  CHECK(fleet.chorus(submit, {"tensors", "get", "x", directory / "y", "--worker", fleet.worker(0).id}).status == 0);
  CHECK(content_of(directory / "y") == content_of(directory / "x"));
  auto const refused = fleet.chorus(fleet.badge("read"), put);
  CHECK(refused.status == 1);
  CHECK(has(refused, "(forbidden)"));
}
