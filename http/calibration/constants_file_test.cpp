#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "http/calibration/constants_file.hpp"

using namespace chorus;
using namespace chorus::calibration;

namespace {

class File {
 public:
  explicit File(std::string const& text)
      : path_((std::filesystem::temp_directory_path() / ("constants-" + std::to_string(getpid()))).string()) {
    std::ofstream(path_) << text;
  }
  ~File() { std::filesystem::remove(path_); }
  File(File const&) = delete;
  File& operator=(File const&) = delete;
  [[nodiscard]] std::string const& path() const { return path_; }

 private:
  std::string path_;
};

Error refused(std::string const& text) { return read_constants(File(text).path()).error(); }

}  // namespace

TEST_CASE("a file changes the constants that it names, and no others") {
  File const file(
      R"({"level":{"host":{"alpha_s":1e-05,"beta_s_per_byte":3e-10}},"host_cores":2,"message_cpu_s":5e-06})");
  auto const read = read_constants(file.path()).value();
  auto expected = model::Constants::defaults();
  CHECK(read.link(Level::host).alpha_s == 1e-5);
  CHECK(read.link(Level::host).beta_s_per_byte == 3e-10);
  CHECK(read.link(Level::rack).alpha_s == expected.link(Level::rack).alpha_s);
  CHECK(read.host_cores == 2);
  CHECK(read.message_cpu_s == 5e-6);
  CHECK(read.byte_cpu_s == expected.byte_cpu_s);
  CHECK(read.segment_bytes == expected.segment_bytes);
}

TEST_CASE("a file has the speed of codes by format; formats that it does not name keep theirs") {
  File const file(R"({"codec":{"int8":{"encode_s_per_byte":1e-10,"decode_s_per_byte":2e-10,"add_s_per_byte":3e-10}}})");
  auto const read = read_constants(file.path()).value();
  CHECK(read.codec_of(WireFormat::int8).encode_s_per_byte == 1e-10);
  CHECK(read.codec_of(WireFormat::int8).decode_s_per_byte == 2e-10);
  CHECK(read.codec_of(WireFormat::int8).add_s_per_byte == 3e-10);
  CHECK(read.codec_of(WireFormat::bf16).encode_s_per_byte ==
        model::Constants::defaults().codec_of(WireFormat::bf16).encode_s_per_byte);
}

TEST_CASE("a malformed file is refused with the position of the mistake") {
  CHECK(read_constants("/nowhere").error().detail == "cannot read /nowhere: No such file or directory");
  CHECK(refused("{").detail.find("JSON") != std::string::npos);
  CHECK(refused(R"({"gama_s_per_byte":1})").detail.find("gama_s_per_byte") != std::string::npos);
  CHECK(refused(R"({"cached_gamma_s_per_byte":-1})").detail == "cached_gamma_s_per_byte is no finite number from 0 up");
  CHECK(refused(R"({"host_cores":-1})").detail == "host_cores is no finite number from 0 up");
  CHECK(refused(R"({"level":{"zone":{"alpha_s":-1,"beta_s_per_byte":0}}})").detail ==
        "level.zone.alpha_s is no finite number from 0 up");
  CHECK(refused(R"({"uplink_s_per_byte":{"rack":-1}})").detail.find("uplink_s_per_byte.rack") == 0);
  CHECK(refused(R"({"codec":{"f16":{"encode_s_per_byte":1,"decode_s_per_byte":-1,"add_s_per_byte":1}}})").detail ==
        "codec.f16.decode_s_per_byte is no finite number from 0 up");
  CHECK(refused(R"({"codec":{"int4":{}}})").detail.find("int4") != std::string::npos);
  CHECK(refused(R"({"segment_bytes":0})").detail == "segment_bytes is 0");
}
