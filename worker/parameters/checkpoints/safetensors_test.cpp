#include "worker/parameters/checkpoints/safetensors_parse.hpp"

#include <doctest/doctest.h>

#include <cstring>

#include "worker/parameters/checkpoints/errc.hpp"

using namespace chorus;
using namespace chorus::checkpoints;

namespace {

// Parses a header that is followed by `data_bytes` bytes of tensors.
Result<SafetensorsHeader> parse(std::string const& text, std::uint64_t data_bytes) {
  return parse_safetensors(text, safetensors_prefix + text.size() + data_bytes);
}

SafetensorsErrc refusal(std::string const& text, std::uint64_t data_bytes = 8) {
  auto const parsed = parse(text, data_bytes);
  REQUIRE(parsed.has_error());
  REQUIRE(parsed.error().code.category() == safetensors_category());
  CHECK_FALSE(parsed.error().detail.empty());
  return static_cast<SafetensorsErrc>(parsed.error().code.value());
}

std::string tensor(std::string const& name, std::string const& dtype, std::string const& shape,
                   std::string const& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

std::string one(std::string const& dtype, std::string const& shape, std::string const& offsets) {
  return "{" + tensor("a", dtype, shape, offsets) + "}";
}

Result<std::uint64_t> length_of(std::uint64_t header_bytes, std::uint64_t file_bytes) {
  std::array<std::byte, 8> prefix{};
  std::memcpy(prefix.data(), &header_bytes, 8);
  return safetensors_header_bytes(prefix, file_bytes);
}

}  // namespace

TEST_CASE("a header is read as the format says") {
  auto const header =
      parse("{" + tensor("b", "I64", "[]", "[8,16]") + "," + tensor("a", "F32", "[2,1]", "[0,8]") +
                R"(,"__metadata__":{"k":"v","e":""},)" + tensor("none", "U8", "[0,7]", "[16,16]") + "}   ",
            16)
          .value();
  REQUIRE(header.tensors.size() == 3);
  CHECK(header.tensors[0] == TensorEntry{"a", Dtype::f32, {2, 1}, 0, 8});
  CHECK(header.tensors[1] == TensorEntry{"b", Dtype::i64, {}, 8, 16});
  CHECK(header.tensors[2] == TensorEntry{"none", Dtype::u8, {0, 7}, 16, 16});
  CHECK(header.metadata == std::vector<std::pair<std::string, std::string>>{{"k", "v"}, {"e", ""}});
  CHECK(header.find("b") == &header.tensors[1]);
  CHECK(header.find("c") == nullptr);
  CHECK(parse("{}", 0).value().tensors.empty());
}

TEST_CASE("every dtype has the format's name, in upper case") {
  for (auto const dtype : all_dtypes) {
    std::vector<TensorEntry> tensors{{"t", dtype, {3, 5}, 0, 0}};
    auto const file = make_safetensors_header(tensors).value();
    auto const text = file.substr(8);
    CHECK(parse(text, 15 * element_bytes(dtype)).value().tensors == tensors);
  }
  for (auto const* dtype : {"f32", "BOOL", "F8_E4M3", "F4", "C64", "float32", "", "F3 2"})
    CHECK(refusal(one(dtype, "[1]", "[0,8]")) == SafetensorsErrc::bad_dtype);
}

TEST_CASE("a written header is read again, aligned, with the tensors in their order") {
  std::vector<TensorEntry> tensors{
      {"b", Dtype::f64, {3}, 0, 0}, {"a/\"quoted\"", Dtype::u8, {2, 2}, 0, 0}, {"e", Dtype::f32, {0}, 0, 0}};
  auto const file = make_safetensors_header(tensors, {{"made", "here"}}).value();
  CHECK(file.size() % 64 == 0);
  CHECK(tensors[1].begin == 24);
  CHECK(tensors[1].end == 28);
  auto const prefix = std::as_bytes(std::span(file)).first(8);
  CHECK(safetensors_header_bytes(prefix, file.size() + 28).value() == file.size() - 8);
  auto const header = parse(file.substr(8), 28).value();
  CHECK(header.tensors == tensors);
  CHECK(header.data_begin == file.size());
  CHECK(header.metadata.at(0).second == "here");
}

TEST_CASE("tensors that could not be read are not written") {
  auto const refused = [](std::vector<TensorEntry> tensors) {
    return static_cast<SafetensorsErrc>(make_safetensors_header(tensors).error().code.value());
  };
  CHECK(refused({{"", Dtype::f32, {}, 0, 0}}) == SafetensorsErrc::bad_name);
  CHECK(refused({{"__metadata__", Dtype::f32, {}, 0, 0}}) == SafetensorsErrc::bad_name);
  CHECK(refused({{"\xff", Dtype::f32, {}, 0, 0}}) == SafetensorsErrc::bad_name);
  CHECK(refused({{"a", Dtype::f32, {}, 0, 0}, {"a", Dtype::u8, {}, 0, 0}}) == SafetensorsErrc::duplicate_name);
  CHECK(refused({{"a", Dtype::f32, {std::uint64_t{1} << 62}, 0, 0}}) == SafetensorsErrc::size_overflow);
  CHECK(refused({{"a", Dtype::u8, {~std::uint64_t{0}}, 0, 0}, {"b", Dtype::u8, {1}, 0, 0}}) ==
        SafetensorsErrc::size_overflow);
}

TEST_CASE("a length of the header that is not in the file, or beyond the format, is refused") {
  CHECK(length_of(10, 18).value() == 10);
  CHECK(length_of(11, 18).error().code == SafetensorsErrc::truncated);
  CHECK(length_of(0, 7).error().code == SafetensorsErrc::truncated);
  CHECK(length_of(100'000'000, 200'000'000).value() == 100'000'000);
  CHECK(length_of(100'000'001, 200'000'000).error().code == SafetensorsErrc::header_too_large);
  CHECK(length_of(~std::uint64_t{0}, 200).error().code == SafetensorsErrc::header_too_large);
  CHECK(safetensors_header_bytes({}, 100).error().code == SafetensorsErrc::truncated);
  CHECK(parse_safetensors("{}", 9).error().code == SafetensorsErrc::truncated);
}

TEST_CASE("a header that does not begin with { is refused") {
  for (auto const* text : {"", " {}", "[]", "null", "\xef\xbb\xbf{}", "\"{}\""})
    CHECK(refusal(text, 0) == SafetensorsErrc::bad_start);
}

TEST_CASE("a header that is not JSON, or not in the format, is refused") {
  for (std::string const text : {"{",
                                 "{]",
                                 "{} x",
                                 "{}{}",
                                 "{\"a\"}",
                                 "{\"a\":}",
                                 "{\"\xff\":{}}",
                                 R"({"a":1})",
                                 R"({"a":"F32"})",
                                 R"({"a":[]})",
                                 R"({"a":null})",
                                 R"({"a":true})",
                                 R"({"a":{}})",
                                 R"({"a":{"dtype":"F32"}})",
                                 R"({"a":{"dtype":"F32","shape":[2]}})",
                                 R"({"a":{"shape":[2],"data_offsets":[0,8]}})",
                                 R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8],"more":1}})",
                                 R"({"__metadata__":{"a":1}})",
                                 R"({"__metadata__":{"a":{}}})",
                                 R"({"__metadata__":"a"})"}) {
    INFO(text);
    CHECK(refusal(text) == SafetensorsErrc::bad_header);
  }
  for (auto const* shape :
       {"2", "[-2]", "[2.0]", "[2e0]", "[\"2\"]", "[[2]]", "[null]", "[18446744073709551616]", "{}"}) {
    INFO(std::string(shape));
    CHECK(refusal(one("F32", shape, "[0,8]")) == SafetensorsErrc::bad_header);
  }
  for (auto const* offsets : {"8", "[8]", "[]", "[0,8,8]", "[0,8.0]", "[-0.0,8]", "[0,-8]", "{}"}) {
    INFO(std::string(offsets));
    CHECK(refusal(one("F32", "[2]", offsets)) == SafetensorsErrc::bad_header);
  }
  std::string deep = "{\"a\":";
  for (int i = 0; i < 10000; ++i) deep += "[";
  CHECK(refusal(deep) == SafetensorsErrc::bad_header);
}

TEST_CASE("names that are repeated or empty are refused") {
  auto const a = tensor("a", "F32", "[2]", "[0,8]");
  CHECK(refusal("{" + a + "," + a + "}") == SafetensorsErrc::duplicate_name);
  CHECK(refusal("{" + a + "," + tensor("\\u0061", "F32", "[2]", "[0,8]") + "}") == SafetensorsErrc::duplicate_name);
  CHECK(refusal(R"({"__metadata__":{},"__metadata__":{}})") == SafetensorsErrc::duplicate_name);
  CHECK(refusal(R"({"__metadata__":{"k":"1","k":"2"}})") == SafetensorsErrc::duplicate_name);
  CHECK(refusal(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})") ==
        SafetensorsErrc::duplicate_name);
  CHECK(refusal("{" + tensor("", "F32", "[2]", "[0,8]") + "}") == SafetensorsErrc::bad_name);
}

TEST_CASE("offsets that end early, do not fit the shape, overflow, overlap or leave holes are refused") {
  CHECK(refusal(one("F32", "[2]", "[8,0]")) == SafetensorsErrc::bad_offsets);
  CHECK(refusal(one("F32", "[3]", "[0,8]")) == SafetensorsErrc::size_mismatch);
  CHECK(refusal(one("F16", "[2]", "[0,8]")) == SafetensorsErrc::size_mismatch);
  CHECK(refusal(one("F32", "[4294967296,4294967296]", "[0,0]")) == SafetensorsErrc::size_overflow);
  CHECK(refusal(one("F64", "[2305843009213693952]", "[0,0]")) == SafetensorsErrc::size_overflow);
  CHECK(refusal(one("F32", "[2]", "[0,8]"), 7) == SafetensorsErrc::truncated);
  CHECK(refusal(one("F32", "[2]", "[0,8]"), 9) == SafetensorsErrc::hole);
  CHECK(refusal("{}", 1) == SafetensorsErrc::hole);
  CHECK(refusal(one("F32", "[1]", "[4,8]")) == SafetensorsErrc::hole);
  auto const two = [](std::string const& first, std::string const& second) {
    return "{" + tensor("a", "U8", "[4]", first) + "," + tensor("b", "U8", "[4]", second) + "}";
  };
  CHECK(parse(two("[4,8]", "[0,4]"), 8).has_value());
  CHECK(refusal(two("[0,4]", "[2,6]")) == SafetensorsErrc::overlap);
  CHECK(refusal(two("[0,4]", "[0,4]")) == SafetensorsErrc::overlap);
  CHECK(refusal(two("[0,4]", "[5,9]"), 9) == SafetensorsErrc::hole);
}

TEST_CASE("an empty tensor with a shape beyond 64 bits is refused, and not written either, wherever the 0 stands") {
  for (auto const* shape : {"[9223372036854775807,9,0]", "[0,9223372036854775807,9]"})
    CHECK(refusal(one("F32", shape, "[0,0]"), 0) == SafetensorsErrc::size_overflow);
  constexpr std::uint64_t large = std::uint64_t{1} << 62;
  for (auto const& shape : {std::vector<std::uint64_t>{large, 9, 0}, std::vector<std::uint64_t>{0, large, 9}}) {
    std::vector<TensorEntry> tensors{{"a", Dtype::f32, shape, 0, 0}};
    CHECK(make_safetensors_header(tensors).error().code == SafetensorsErrc::size_overflow);
  }
}

TEST_CASE("no changed byte of a header, and no truncation, makes the parser crash") {
  auto const right = "{" + tensor("a", "F32", "[2]", "[0,8]") + R"(,"__metadata__":{"k":"v"}})";
  for (std::size_t at = 0; at < right.size(); ++at)
    for (int value = 0; value < 256; ++value) {
      auto changed = right;
      changed[at] = static_cast<char>(value);
      auto const parsed = parse(changed, 8);
      if (parsed.has_value()) CHECK(parsed->tensors.size() == 1);
    }
  for (std::size_t size = 1; size < right.size(); ++size)
    CHECK(refusal(right.substr(0, size)) == SafetensorsErrc::bad_header);
}
