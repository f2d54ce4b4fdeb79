// chorus tensors with an imitated worker: its requests, its use of the answers, and its output.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <atomic>
#include <boost/json.hpp>
#include <filesystem>

#include "http/api/cluster/membership.hpp"
#include "http/api/tensors/tensors.hpp"
#include "http/json/json.hpp"
#include "server/cli/output/transfer_progress.hpp"
#include "server/cli/testing/test_support.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::cli;
using chorus::testing::content_of;
using chorus::testing::ScratchDirectory;
using chorus::testing::write_file;
namespace json = boost::json;

namespace {

// A coordinator and its only worker, "w0", with one tensor, "grad", which changes after so many ranges.
class OneWorker {
 public:
  explicit OneWorker(std::string bytes, std::size_t ranges_until_change = SIZE_MAX)
      : bytes_(std::move(bytes)), ranges_until_change_(ranges_until_change) {
    server_.Get("/v1/workers", [this](httplib::Request const&, httplib::Response& response) {
      api::Worker worker;
      worker.id = "w0";
      worker.state = "ready";
      worker.url = url + "/";
      response.set_content(http::encode(api::WorkerList{{worker}, {}}), "application/json");
    });
    server_.Get("/v1/tensors", [this](httplib::Request const&, httplib::Response& response) {
      api::TensorInfo tensor;
      tensor.name = "grad";
      tensor.dtype = "u8";
      tensor.shape = {bytes_.size()};
      tensor.bytes = bytes_.size();
      tensor.version = 1;
      response.set_content(http::encode(api::TensorList{{tensor}, {}}), "application/json");
    });
    server_.Get("/v1/tensors/grad",
                [this](httplib::Request const& request, httplib::Response& response) { give(request, response); });
    server_.Put("/v1/tensors/grad", [this](httplib::Request const& request, httplib::Response& response) {
      devices.push_back(request.get_header_value("Tensor-Device"));
      api::TensorInfo tensor;
      tensor.name = "grad";
      tensor.dtype = "u8";
      tensor.version = 2;
      if (!devices.back().empty()) tensor.device = devices.back();
      response.set_content(http::encode(tensor), "application/json");
    });
    url = "http://127.0.0.1:" + std::to_string(server_.bind_to_any_port("127.0.0.1"));
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    while (!server_.is_running()) std::this_thread::yield();
  }
  ~OneWorker() {
    server_.stop();
    thread_.join();
  }
  OneWorker(OneWorker const&) = delete;
  OneWorker& operator=(OneWorker const&) = delete;

  std::string url;
  std::vector<std::string> ranges;      // requested ranges; read them after the command has ended
  std::vector<std::string> conditions;  // If-Match of each
  std::vector<std::string> devices;     // requested device of every PUT; read them after the command has ended
  bool ignores_ranges = false;

 private:
  void give(httplib::Request const& request, httplib::Response& response) {
    std::string const version = ranges.size() < ranges_until_change_ ? "1" : "2";
    auto const tag = "\"of version " + version + "\"";
    ranges.push_back(request.get_header_value("Range"));
    conditions.push_back(request.get_header_value("If-Match"));
    if (!conditions.back().empty() && conditions.back() != tag) {
      response.status = 412;
      response.set_content(http::to_json({http::ProblemCode::precondition_failed, "If-Match does not allow it"}),
                           "application/problem+json");
      return;
    }
    response.set_header("Tensor-Version", version);
    response.set_header("ETag", tag);
    if (ignores_ranges) const_cast<httplib::Request&>(request).ranges.clear();
    response.set_content(bytes_, "application/octet-stream");
  }

  std::string bytes_;
  std::size_t ranges_until_change_;
  httplib::Server server_;
  std::thread thread_;
};

std::string many_bytes(std::size_t count) {
  std::string bytes(count, '\0');
  std::uint32_t state = 1;
  for (auto& byte : bytes) {
    state = state * 1664525 + 1013904223;
    byte = static_cast<char>(state >> 24);
  }
  return bytes;
}

Run at(OneWorker const& worker, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"--coordinator", worker.url, "tensors"});
  return chorus::cli::chorus(arguments);
}

constexpr std::size_t range_bytes = 64 << 20;

}  // namespace

TEST_CASE("a large tensor is received in ranges of the version of the first one") {
  OneWorker worker(many_bytes(range_bytes + 3));
  ScratchDirectory directory;
  auto const got = at(worker, {"get", "grad", directory / "grad", "--worker", "w0"});
  CHECK(got.err == "");
  REQUIRE(got.status == 0);
  CHECK(worker.ranges == std::vector<std::string>{"bytes=0-67108863", "bytes=67108864-67108866"});
  CHECK(worker.conditions == std::vector<std::string>{"", "\"of version 1\""});
  CHECK(content_of(directory / "grad") == many_bytes(range_bytes + 3));
  CHECK(!std::filesystem::exists(directory / "grad.part"));
  auto const line = json::parse(got.out);
  CHECK(line.at("worker") == "w0");
  CHECK(line.at("version") == 1);
  CHECK(line.at("seconds").to_number<double>() > 0);
}

TEST_CASE("a tensor is written to standard output, and what is said of it to standard error") {
  OneWorker worker("0123456789");
  auto const got = at(worker, {"get", "grad", "-", "--worker", "w0"});
  CHECK(got.status == 0);
  CHECK(got.out == "0123456789");
  CHECK(json::parse(got.err).at("bytes") == 10);
  auto const failed = at(worker, {"get", "absent", "-", "--worker", "w0", "--json"});
  CHECK(failed.status == 1);
  CHECK(failed.out.empty());
  CHECK(json::parse(failed.err).at("code") == "unknown_tensor");
}

TEST_CASE("a tensor is put on the requested device, and the output names it") {
  OneWorker worker("");
  ScratchDirectory directory;
  write_file(directory / "grad", "12");
  auto const put = [&](std::vector<std::string> more) {
    std::vector<std::string> arguments{"put", "grad", directory / "grad", "--worker", "w0", "--dtype", "u8"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return at(worker, arguments);
  };
  auto const on_gpu = put({"--device", "cuda:1"});
  REQUIRE(on_gpu.status == 0);
  CHECK(json::parse(on_gpu.out).at("device") == "cuda:1");
  CHECK(put({}).status == 0);
  CHECK(worker.devices == std::vector<std::string>{"cuda:1", ""});
  CHECK(put({"--device", "GPU 0"}).status == 2);
}

TEST_CASE("a tensor that changes while it is read is a reported error, and leaves no file") {
  for (std::size_t const ranges_until_change : {0, 1}) {
    OneWorker worker(many_bytes(range_bytes + 3), ranges_until_change);
    ScratchDirectory directory;
    auto const got = at(worker, {"get", "grad", directory / "grad", "--worker", "w0"});
    CHECK(got.status == 1);
    CHECK(got.err ==
          "error: Precondition failed: worker 'w0': tensor grad changed while it was read: it was at version 1 "
          "(precondition_failed)\n");
    CHECK(worker.ranges.size() == ranges_until_change + 1);
    CHECK(std::filesystem::is_empty(directory / ""));
  }
}

TEST_CASE("an answer with another range than requested is not accepted") {
  OneWorker worker("0123456789");
  worker.ignores_ranges = true;
  ScratchDirectory directory;
  auto const got = at(worker, {"get", "grad", directory / "grad", "--worker", "w0"});
  CHECK(got.status == 1);
  CHECK(got.err.find("it answered with status 200 and 10 bytes where bytes 0-9 were asked for") != std::string::npos);
  CHECK(std::filesystem::is_empty(directory / ""));
}

TEST_CASE("an existing file is only overwritten on request") {
  OneWorker worker("0123456789");
  ScratchDirectory directory;
  std::vector<std::string> get{"get", "grad", directory / "grad", "--worker", "w0"};
  for (auto const* name : {"grad", "grad.part"}) {
    write_file(directory / name, "mine");
    auto const refused = at(worker, get);
    CHECK(refused.status == 2);
    CHECK(refused.err.starts_with("error: " + (directory / name) + " exists: "));
    CHECK(content_of(directory / name) == "mine");
    CHECK(worker.ranges.empty());
    std::filesystem::remove(directory / name);
  }
  write_file(directory / "grad", "mine");
  get.push_back("--force");
  CHECK(at(worker, get).status == 0);
  CHECK(content_of(directory / "grad") == "0123456789");
}

TEST_CASE("a pipe, a device or a link is not replaced by a file") {
  OneWorker worker("0123456789");
  ScratchDirectory directory;
  auto const pipe = directory / "pipe", link = directory / "link";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::filesystem::create_symlink("/dev/stdout", link);
  for (auto const& path : {pipe, link}) {
    auto const refused = at(worker, {"get", "grad", path, "--worker", "w0", "--force"});
    CHECK(refused.status == 2);
    CHECK(refused.err == "error: " + path + " is no plain file, and would be replaced by one\n");
  }
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(std::filesystem::is_symlink(link));
  CHECK(worker.ranges.empty());
}

TEST_CASE("a file that cannot be written is the reported problem") {
  OneWorker worker("0123456789");
  ScratchDirectory directory;
  auto const got = at(worker, {"get", "grad", directory / std::string(300, 'x'), "--worker", "w0"});
  CHECK(got.status == 1);
  CHECK(got.err.starts_with("error: " + (directory / "xxx")));
  CHECK(got.err.find("x.part: File name too long\n") != std::string::npos);
}

TEST_CASE("tensors are listed with the worker that has them") {
  OneWorker worker("0123456789");
  CHECK(at(worker, {}).out ==
        "WORKER  NAME  DTYPE  SHAPE  BYTES  VERSION  DEVICE\n"
        "w0      grad  u8     [10]    10 B        1  cpu\n");
  auto const line = json::parse(at(worker, {"--json", "--worker", "w0"}).out);
  CHECK(line.at("worker") == "w0");
  CHECK(line.at("shape") == json::array{10});
}

TEST_CASE("unknown names are answered with the nearest known names") {
  OneWorker worker("0123456789");
  ScratchDirectory directory;
  auto const nobody = at(worker, {"--worker", "w1"});
  CHECK(nobody.status == 1);
  CHECK(nobody.err == "error: Unknown worker: there is no worker 'w1'; did you mean 'w0'? (unknown_worker)\n");
  CHECK(at(worker, {"get", "gard", directory / "x", "--worker", "w0"}).err ==
        "error: Unknown tensor: worker 'w0': there is no tensor 'gard'; did you mean 'grad'? (unknown_tensor)\n");
}

TEST_CASE("senseless arguments are refused before any service is asked") {
  ScratchDirectory directory;
  write_file(directory / "odd", "12345");
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  std::vector<Case> const cases{
      {{"put", "x", directory / "odd", "--worker", "w0", "--dtype", "f32"},
       "its 5 bytes are no whole number of f32 elements of 4 bytes"},
      {{"put", "x", directory / "odd", "--worker", "w0"}, "--dtype has to say what the elements are"},
      {{"put", "x", directory / "odd", "--worker", "w0", "--dtype", "f23"}, "unknown name 'f23'; did you mean"},
      {{"put", "x", directory / "odd", "--worker", "w0", "--dtype", "u8", "--shape", "5,"},
       "'5,' is not a shape like 1024,1024"},
      {{"put", "x", directory / "odd", "--worker", "w0", "--dtype", "u8", "--shape", "-5"},
       "'-5' is not a shape like 1024,1024"},
      {{"put", "x", directory / "odd", "--dtype", "u8"}, "--worker is required"},
      {{"get", "x", directory / "y", "--worker", "w0,w1"}, "--worker names one worker"},
      {{"get", "x", "/no/such/place/x", "--worker", "w0"}, "there is no directory /no/such/place"},
      {{"get", "x", ".", "--worker", "w0", "--force"}, ". is a directory: name the file in it"},
      {{"get", "x", directory / "odd/x", "--worker", "w0"}, "there is no directory " + (directory / "odd")},
      {{"gte", "x"}, "unknown command 'gte'; did you mean 'get'?"},
  };
  for (auto const& [arguments, message] : cases) {
    auto words = arguments;
    words.insert(words.begin(), {"--coordinator", "http://127.0.0.1:1", "tensors"});
    auto const run = chorus::cli::chorus(words);
    CAPTURE(run.err);
    CHECK(run.status == 2);
    CHECK(run.err.find(message) != std::string::npos);
  }
}

TEST_CASE("progress is one line for people") {
  constexpr std::uint64_t gibi = 1ull << 30;
  CHECK(format_progress("grad to w0", 0, 4 * gibi, 0) == "grad to w0: 0 B of 4 GiB");
  CHECK(format_progress("grad to w0", gibi * 6 / 5, 4 * gibi, 1.2) ==
        "grad to w0: 1.2 of 4 GiB, 29 %, 1.1 GB/s, 2.8 s left");
  CHECK(format_progress("x", gibi / 2, gibi, 500) == "x: 512 MiB of 1 GiB, 50 %, 1.1 MB/s, 8 min 20 s left");
  CHECK(format_progress("x", gibi, gibi, 1) == "x: 1 of 1 GiB, 100 %, 1.1 GB/s, 0.0 s left");
}
