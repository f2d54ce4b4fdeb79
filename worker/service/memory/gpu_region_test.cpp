// Clients' memory on GPUs, registered by its IPC handle. The client is another double, with memory of its own.
#include "worker/service/memory/gpu_region.hpp"

#include <doctest/doctest.h>
#include <algorithm>
#include <cstring>

#include "worker/devices/cuda/testing/handle_text.hpp"
#include "worker/service/testing/doubles.hpp"
#include "worker/service/testing/live_group.hpp"

using namespace chorus;
using namespace chorus::service;
using namespace chorus::service::testing;
using devices::testing::in_base64;

namespace {

// A program with 64 KiB on its GPU.
class Client {
 public:
  ~Client() { gpu_.free(memory_); }
  [[nodiscard]] std::string handle() { return in_base64(gpu_.share(memory_).value()); }
  [[nodiscard]] std::string request(std::uint64_t offset, std::uint64_t size) {
    return R"({"handle":")" + handle() + R"(","device":"cuda:0","offset":)" + std::to_string(offset) + R"(,"bytes":)" +
           std::to_string(size) + "}";
  }
  void write(std::uint64_t offset, std::vector<float> const& values) {
    std::memcpy(behind(offset, values.size() * 4).data(), values.data(), values.size() * 4);
  }
  [[nodiscard]] std::vector<float> read(std::uint64_t offset, std::size_t count) {
    std::vector<float> values(count);
    std::memcpy(values.data(), behind(offset, count * 4).data(), count * 4);
    return values;
  }

  static constexpr std::uint64_t bytes = 64 << 10;

 private:
  [[nodiscard]] std::span<std::byte> behind(std::uint64_t offset, std::uint64_t size) {
    return gpu_.behind({memory_ + offset, size});
  }
  devices::testing::GpuDouble gpu_{0, 1 << 20};
  std::byte* const memory_ = gpu_.allocate(bytes).value();
};

WorkerOptions allowing() {
  auto options = test_options();
  options.allows_client_shm = true;
  return options;
}

std::string place(std::size_t count, std::uint64_t offset) {
  return R"({"dtype":"f32","shape":[)" + std::to_string(count) + R"(],"shm":{"region":"mine","offset":)" +
         std::to_string(offset) + "}}";
}

}  // namespace

TEST_CASE("a tensor in a client's memory on a GPU is what the client writes there") {
  GpuWorker worker(1, allowing());
  Client client;
  auto const registered = worker.put("/v1/shm/cuda/mine", client.request(256, 4096));
  CHECK(registered.status == 201);
  CHECK(registered.header("Location") == "/v1/shm/cuda/mine");
  CHECK(worker.put("/v1/shm/cuda/mine", client.request(256, 4096)).status == 200);
  client.write(256 + 8, {1, 2, 3});
  auto const placed = worker.put("/v1/tensors/x", place(3, 8));
  CHECK(placed.status == 201);
  CHECK(placed.json().at("device") == "cuda:0");
  CHECK(placed.header("ETag").empty());
  CHECK(worker.get_tensor<float>("x") == std::vector<float>{1, 2, 3});
  client.write(256 + 8, {4});
  CHECK(worker.get_tensor<float>("x") == std::vector<float>{4, 2, 3});

  auto const seen = worker.get("/v1/shm/cuda/mine").json();
  CHECK(seen.at("device") == "cuda:0");
  CHECK(seen.at("state") == "ready");
  CHECK(seen.at("tensors").at(0) == "x");
  CHECK(worker.get("/v1/shm/cuda").json().at("items").as_array().size() == 1);
  CHECK(worker.get("/v1/shm/system").json().at("items").as_array().empty());
  CHECK(worker.erase("/v1/shm/cuda/mine").code() == "region_in_use");
  CHECK(worker.erase("/v1/tensors/x").status == 204);
  CHECK(worker.erase("/v1/shm/cuda/mine").status == 204);
  CHECK(worker.get("/v1/shm/cuda/mine").code() == "unknown_region");
}

TEST_CASE("a result appears in the client's memory, wherever it was made") {
  std::vector<Doubles> doubles;
  for (int rank = 0; rank < 2; ++rank) doubles.push_back(make_doubles(1));
  Client client;
  LiveGroup group(
      2, [](WorkerOptions& options) { options.allows_client_shm = true; },
      [&](std::size_t rank) { return std::move(doubles[rank].found); });
  group.assign(1);
  group.put_everywhere("host", 4);
  CHECK(group.at(0).put("/v1/shm/cuda/mine", client.request(0, 4096)).status == 201);
  client.write(0, {0, 0, 0, 0});
  CHECK(group.at(0).put("/v1/tensors/x", place(4, 0)).status == 201);
  CHECK(group.at(1).put_tensor<float>("x", "f32", {0, 0, 0, 0}).status == 201);
  for (auto const& answer : group.all_reduce(R"({"tensor":"host","output":"x"})"))
    CHECK_MESSAGE(answer.status == 200, answer.body);
  CHECK(client.read(0, 4) == std::vector<float>{3, 3, 3, 3});
  CHECK(group.at(0).version_of("x") == 2);
}

// Mapped memory of another process is seen only by the GPU that it was mapped for, whatever peer access GPUs have.
TEST_CASE("a client's memory is one of several tensors of a name, on GPUs that see each other") {
  auto doubles = make_doubles(2);
  for (std::size_t const one : {0u, 1u}) doubles.gpus[one]->neighbour(doubles.gpus[1 - one]->info().uuid);
  Client client;
  LiveGroup group(
      1, [](WorkerOptions& options) { options.allows_client_shm = true; },
      [&](std::size_t) { return std::move(doubles.found); });
  group.assign(1);
  auto& worker = group.at(0);
  std::vector<float> const ours(4, 2);
  std::string const bytes(reinterpret_cast<char const*>(ours.data()), 16);
  CHECK(worker
            .put("/v1/tensors/grad%2F0", bytes,
                 {{"Tensor-Dtype", "f32"}, {"Tensor-Shape", "4"}, {"Tensor-Device", "cuda:1"}},
                 "application/octet-stream")
            .status == 201);
  CHECK(worker.put("/v1/shm/cuda/mine", client.request(0, 4096)).status == 201);
  client.write(0, {1, 2, 3, 4});
  CHECK(worker.put("/v1/tensors/grad%2F1", place(4, 0)).status == 201);
  for (auto const& answer : group.all_reduce(R"({"tensor":"grad"})")) CHECK_MESSAGE(answer.status == 200, answer.body);
  CHECK(client.read(0, 4) == std::vector<float>{3, 4, 5, 6});
  CHECK(worker.get_tensor<float>("grad%2F0") == std::vector<float>{3, 4, 5, 6});
}

TEST_CASE("an invalid handle, and a size that the driver does not confirm, are refused") {
  GpuWorker worker(1, allowing());
  Client client;
  auto const refused = [&](std::string const& body, char const* pointer) {
    auto const answer = worker.put("/v1/shm/cuda/mine", body);
    CHECK(answer.status == 422);
    CHECK_MESSAGE(answer.json().at("errors").at(0).at("pointer") == pointer, answer.body);
  };
  refused(client.request(0, Client::bytes + 1), "/handle");
  refused(client.request(Client::bytes, 1), "/handle");
  refused(client.request(0, 0), "/bytes");
  refused(client.request(std::uint64_t{1} << 63, std::uint64_t{1} << 63), "/handle");
  auto const with = [&](std::string const& handle, std::string const& device) {
    return R"({"handle":")" + handle + R"(","device":")" + device + R"(","bytes":1})";
  };
  refused(with(in_base64({}), "cuda:0"), "/handle");
  refused(with("AAAA", "cuda:0"), "/handle");
  refused(with(client.handle().substr(1) + "=", "cuda:0"), "/handle");
  refused(with(client.handle(), "cuda:999"), "/device");
  refused(with(client.handle(), "cpu"), "/device");
  CHECK(worker.get("/v1/shm/cuda").json().at("items").as_array().empty());
}

TEST_CASE("without --allow-client-shm no client's memory is used on a GPU either") {
  GpuWorker worker;
  Client client;
  CHECK(worker.put("/v1/shm/cuda/mine", client.request(0, 1)).code() == "forbidden");
  CHECK(worker.get("/v1/shm/cuda").code() == "forbidden");
}

TEST_CASE("a tensor must not be in a part that ends beyond the region") {
  GpuWorker worker(1, allowing());
  Client client;
  worker.put("/v1/shm/cuda/mine", client.request(0, 16));
  CHECK(worker.put("/v1/tensors/x", place(4, 0)).status == 201);
  CHECK(worker.put("/v1/tensors/x", place(4, 4)).code() == "invalid_field");
  CHECK(worker.put("/v1/tensors/x", place(1, 2)).code() == "invalid_field");
  CHECK(worker.put("/v1/tensors/x", place(1, 0), {{"Tensor-Device", "cpu"}}).code() == "bad_request");
}

TEST_CASE("a handle is 64 bytes in base64, and nothing else") {
  devices::IpcHandle handle;
  for (std::size_t i = 0; i < handle.size(); ++i) handle[i] = static_cast<std::byte>(i * 37);
  auto const text = in_base64(handle);
  CHECK(parse_handle(text) == handle);
  for (auto const& wrong : {std::string(), text + "=", text.substr(1), "=" + text.substr(1),
                            text.substr(0, 86) + "A=", std::string(88, '='), std::string(88, '.')})
    CHECK_FALSE(parse_handle(wrong).has_value());
}
