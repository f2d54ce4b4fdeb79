#include "server/cli/files/npy.hpp"

#include <doctest/doctest.h>

#include "server/cli/files/tensor_file.hpp"
#include "tests/support/scratch_directory.hpp"

using namespace chorus;
using namespace chorus::cli;
using chorus::testing::ScratchDirectory;
using chorus::testing::write_file;
using namespace std::string_literals;

namespace {

std::span<std::byte const> bytes_of(std::string const& text) { return std::as_bytes(std::span(text)); }

// Makes a file of version 1.0 with this line as its head.
std::string npy(std::string const& line) {
  auto const length = line.size() + 1;
  return "\x93NUMPY\x01\0"s + static_cast<char>(length & 255) + static_cast<char>(length >> 8) + line + '\n';
}

std::string why_not(std::string const& file) {
  auto const head = parse_npy(bytes_of(file));
  return head ? "" : head.error().detail;
}

std::string with_shape(std::string const& shape) {
  return npy("{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }");
}

}  // namespace

TEST_CASE("files from NumPy are understood") {
  auto const file = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }        ");
  auto const head = parse_npy(bytes_of(file + "elements"));
  REQUIRE(head.has_value());
  CHECK(head->dtype == Dtype::f32);
  CHECK(head->shape == Shape{3, 4});
  CHECK(head->bytes == file.size());
  CHECK(parse_npy(bytes_of(with_shape("()")))->shape.empty());
  CHECK(parse_npy(bytes_of(with_shape("(7,)")))->shape == Shape{7});
  CHECK(parse_npy(bytes_of(with_shape("(0, 18446744073709551615)")))->shape == Shape{0, UINT64_MAX});
  CHECK(parse_npy(bytes_of(npy(R"({"shape":(1,2,),"descr":"|i1","fortran_order":False})")))->dtype == Dtype::i8);

  auto second = "\x93NUMPY\x02\0"s + "\x3a\0\0\0"s + "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }\n";
  REQUIRE(parse_npy(bytes_of(second)).has_value());
  CHECK(parse_npy(bytes_of(second))->dtype == Dtype::i64);
}

TEST_CASE("written files equal those of NumPy, and are read back") {
  CHECK(npy_head(Dtype::f32, Shape{1024, 1024}).value() ==
        "\x93NUMPY\x01\0\x76\0"s + "{'descr': '<f4', 'fortran_order': False, 'shape': (1024, 1024), }" +
            std::string(52, ' ') + "\n");
  for (auto const dtype : all_dtypes)
    for (auto const& shape : {Shape{}, Shape{0}, Shape{5}, Shape{1, 2, 3}, Shape(32, 1)}) {
      auto const head = npy_head(dtype, shape);
      REQUIRE(head.has_value() == (dtype != Dtype::bf16));
      if (!head) continue;
      CHECK(head->size() % 64 == 0);
      auto const again = parse_npy(bytes_of(*head));
      REQUIRE_MESSAGE(again.has_value(), again.error().detail);
      CHECK(again->dtype == dtype);
      CHECK(again->shape == shape);
      CHECK(again->bytes == head->size());
    }
}

TEST_CASE("a .npy file that is broken or unsupported is refused with the reason") {
  struct Case {
    std::string file, why;
  };
  std::string const good = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }";
  std::vector<Case> const cases{
      {"", "it does not begin as .npy files do"},
      {"NUMPY", "it does not begin as .npy files do"},
      {"\x93NUMPY", "it ends within its head"},
      {"\x93NUMPY\x01\0"s, "it ends within its head"},
      {"\x93NUMPY\x01\0\x05"s, "it ends within its head"},
      {"\x93NUMPY\x02\0\x05\0\0"s, "it ends within its head"},
      {npy(good).substr(0, 40), "it ends within its head"},
      {"\x93NUMPY\x03\0\x05\0\0\0"s, "its version is 3.0: 1.0 and 2.0 are taken"},
      {"\x93NUMPY\x01\x01\x05\0"s, "its version is 1.1: 1.0 and 2.0 are taken"},
      {"\x93NUMPY\x02\0\xff\xff\xff\xff"s, "its head has more than 65536 bytes"},
      {"\x93NUMPY\x01\0\x02\0{}"s, "its head does not end with the end of a line"},
      {npy(""), "its head does not begin with '{'"},
      {npy("{}"), "its head lacks one of 'descr', 'fortran_order' and 'shape'"},
      {npy("{'descr': '<f4', 'shape': (3,)}"), "its head lacks one of 'descr', 'fortran_order' and 'shape'"},
      {npy(good + "x"), "its head goes on behind its '}'"},
      {npy("{'descr' '<f4'}"), "its head has no 'NAME': before each value"},
      {npy("{descr: '<f4'}"), "its head has no 'NAME': before each value"},
      {npy("{'descr: <f4}"), "its head has no 'NAME': before each value"},
      {npy("{'des\\x63r': '<f4'}"), "its head has no 'NAME': before each value"},
      {npy("{'descr': '<f4' 'fortran_order': False}"), "its head has neither ',' nor '}' behind a value"},
      {npy("{'descr': '<f4',"), "its head has no 'NAME': before each value"},
      {npy("{'descr': '<f4'"), "its head has neither ',' nor '}' behind a value"},
      {npy("{'descr': '<f4', 'descr': '<f8'}"), "its head has 'descr' once too often"},
      {npy("{'colour': 'red'}"), "its head has an entry 'colour', which is none of the format"},
      {npy("{'descr': [('a', '<f4')]}"),
       "its head has a 'descr' that is no text: only arrays of plain numbers are taken"},
      {npy("{'descr': '>f4'}"), "its head says that the elements are big-endian ('>f4')"},
      {npy("{'descr': '<c8'}"), "its head has elements '<c8', which no dtype of tensors is"},
      {npy("{'descr': '|b1'}"), "its head has elements '|b1', which no dtype of tensors is"},
      {npy("{'descr': '|O'}"), "its head has elements '|O', which no dtype of tensors is"},
      {npy("{'fortran_order': 0}"), "its head has a 'fortran_order' that is neither True nor False"},
      {npy("{'fortran_order': True}"),
       "its head says that columns come first: numpy.ascontiguousarray() turns it round before it is saved"},
      {with_shape("3"), "its head has a 'shape' that is no tuple"},
      {with_shape("(3)"), "its head has a 'shape' that is no tuple of whole numbers"},
      {with_shape("(3 4)"), "its head has a 'shape' that is no tuple of whole numbers"},
      {with_shape("(,)"), "its head has a 'shape' that is no tuple of whole numbers"},
      {with_shape("(3,,4)"), "its head has a 'shape' that is no tuple of whole numbers"},
      {with_shape("(-3,)"), "its head has a 'shape' that is no tuple of whole numbers"},
      {with_shape("(3.0,)"), "its head has a 'shape' that is no tuple of whole numbers"},
      {with_shape("(03,)"), "its head has a 'shape' that is no tuple of whole numbers"},
      {with_shape("(3L,)"), "its head has a 'shape' that is no tuple of whole numbers"},
      {with_shape("(3, 4"), "its head has a 'shape' that is no tuple of whole numbers"},
      {with_shape("(18446744073709551616,)"), "its head has a dimension beyond 2^64"},
      {with_shape("(" +
                  [] {
                    std::string many;
                    for (int i = 0; i < 33; ++i) many += "1,";
                    return many;
                  }() +
                  ")"),
       "its head has more than 32 dimensions"},
  };
  for (auto const& [file, why] : cases) {
    CAPTURE(file);
    CHECK(why_not(file) == why);
  }
}

TEST_CASE("the length of a file must fit its dtype and shape") {
  ScratchDirectory directory;
  auto const path = directory / "x";
  auto const why = [&](std::string const& content, std::optional<Dtype> dtype, std::optional<Shape> shape) {
    write_file(path, content);
    auto const file = TensorFile::open(path, dtype, std::move(shape));
    return file ? "" : file.error().detail.substr(path.size());
  };
  auto const twelve = "0123456789ab"s;
  CHECK(why(twelve, Dtype::f32, {}) == "");
  CHECK(why(twelve, Dtype::f32, Shape{3, 1}) == "");
  CHECK(why("", Dtype::f32, {}) == "");
  CHECK(why("", Dtype::f32, Shape{7, 0}) == "");
  CHECK(why(twelve, {}, {}) ==
        ": --dtype has to say what the elements are: it is no .npy file, which would say so itself");
  CHECK(why(twelve + "c", Dtype::f32, {}) == ": its 13 bytes are no whole number of f32 elements of 4 bytes");
  CHECK(why(twelve, Dtype::f32, Shape{4}) == ": it has 12 bytes, and f32[4] has 16");
  CHECK(why(twelve, Dtype::f32, Shape{1ull << 62, 4}) ==
        ": it has 12 bytes, and f32[4611686018427387904,4] has more than 2^64");

  auto const three = with_shape("(3,)");
  CHECK(why(three + twelve, {}, {}) == "");
  CHECK(why(three + twelve, Dtype::f32, Shape{3}) == "");
  CHECK(why(three + twelve, Dtype::i32, {}) == ": it is a .npy file of f32[3], which --dtype i32 contradicts");
  CHECK(why(three + twelve, {}, Shape{1, 3}) == ": it is a .npy file of f32[3], which --shape 1,3 contradicts");
  CHECK(why(three + "0", {}, {}) == ": it is a .npy file of f32[3], which has 12 bytes, and 1 follow its head");
  CHECK(TensorFile::open(directory / "none.npy", {}, {}).error().detail.ends_with(": No such file or directory"));
  CHECK(TensorFile::open("/dev/zero", Dtype::u8, {}).error().detail ==
        "/dev/zero: it is no plain file, which a tensor's length is taken from");
  write_file(directory / "raw.npy", twelve);
  CHECK(TensorFile::open(directory / "raw.npy", Dtype::f32, {})
            .error()
            .detail.ends_with("raw.npy: it does not begin as .npy files do"));
}

TEST_CASE("a file that was written to is reported as changed") {
  ScratchDirectory directory;
  write_file(directory / "x", "0123");
  auto const file = TensorFile::open(directory / "x", Dtype::u8, {});
  REQUIRE(file.has_value());
  CHECK(!file->has_changed());
  write_file(directory / "x", "01234");
  CHECK(file->has_changed());
}
