#include <doctest/doctest.h>

#include "server/coordinator/admission/admission.hpp"

using namespace chorus;
using namespace chorus::coordinator;
using http::ProblemCode;

namespace {

RankTensor rank(std::uint32_t number, std::string dtype, std::string shape, std::uint64_t version = 1,
                std::string device = "cpu") {
  return {number, "w" + std::to_string(number), std::move(dtype), std::move(shape), std::move(device), version};
}

http::Checked<Admitted> admit_all(ReduceOp reduce, std::vector<RankTensor> const& ranks) {
  AdmissionQuestion question;
  question.tensor = "x";
  question.reduce = reduce;
  return admit(question, std::vector<std::optional<RankTensor>>(ranks.begin(), ranks.end()));
}

http::Problem refused(std::vector<RankTensor> const& ranks, ReduceOp reduce = ReduceOp::sum) {
  auto const admitted = admit_all(reduce, ranks);
  REQUIRE(admitted.has_error());
  return admitted.error();
}

http::Answer answer(unsigned status, std::vector<std::pair<std::string, std::string>> const& fields = {}) {
  http::Answer made;
  made.status = status;
  for (auto const& [name, value] : fields) made.fields.add(name, value);
  return made;
}

}  // namespace

TEST_CASE("equal tensors are admitted, each at its own version") {
  std::vector const ranks{rank(0, "f32", "4096,1024", 7), rank(1, "f32", "4096,1024", 9)};
  auto const admitted = admit_all(ReduceOp::sum, ranks).value();
  CHECK(admitted.dtype == Dtype::f32);
  CHECK(admitted.shape == std::vector<std::uint64_t>{4096, 1024});
  CHECK(admitted.elements == 4096 * 1024);
  CHECK(admitted.bytes == 4096 * 1024 * 4);
  CHECK(admitted.versions == std::vector<std::uint64_t>{7, 9});
}

TEST_CASE("scalars and empty tensors are admitted") {
  CHECK(admit_all(ReduceOp::sum, std::vector{rank(0, "f64", "")}).value().elements == 1);
  CHECK(admit_all(ReduceOp::sum, std::vector{rank(0, "f64", "3,0,5")}).value().elements == 0);
  CHECK(admit_all(ReduceOp::sum, std::vector{rank(0, "u8", "18446744073709551615,0")}).value().bytes == 0);
}

TEST_CASE("a different shape is refused with rank, field and both values") {
  auto const problem = refused({rank(0, "f32", "10"), rank(1, "f32", "10"), rank(2, "f32", "11")});
  CHECK(problem.code == ProblemCode::mismatch);
  CHECK(problem.ranks == std::vector<std::uint32_t>{2});
  REQUIRE(problem.errors.size() == 1);
  CHECK(problem.errors.front() ==
        http::FieldError{"/shape", "shape of rank 2 ('w2') is 11, that of rank 0 ('w0') is 10"});
  CHECK(problem.detail == "tensor 'x': shape of rank 2 ('w2') is 11, that of rank 0 ('w0') is 10");
}

TEST_CASE("the value of most ranks is the expected one, also if rank 0 differs") {
  auto const problem = refused({rank(0, "f64", "10"), rank(1, "f32", "10"), rank(2, "f32", "10")});
  CHECK(problem.ranks == std::vector<std::uint32_t>{0});
  CHECK(problem.errors.front().detail == "dtype of rank 0 ('w0') is f64, that of rank 1 ('w1') is f32");
  auto const draw = refused({rank(0, "f64", "10"), rank(1, "f32", "10")});
  CHECK(draw.ranks == std::vector<std::uint32_t>{1});
}

TEST_CASE("every differing field of every rank is named") {
  auto const problem = refused({rank(0, "f32", "4"), rank(1, "i32", "5"), rank(2, "f32", "6"), rank(3, "f32", "4")});
  CHECK(problem.ranks == std::vector<std::uint32_t>{1, 2});
  std::vector<std::string> pointers;
  for (auto const& error : problem.errors) pointers.push_back(error.pointer);
  CHECK(pointers == std::vector<std::string>{"/dtype", "/shape", "/shape"});
  CHECK(problem.detail.ends_with(", and 2 more"));
}

TEST_CASE("tensors may be on different devices, and the device of every rank is kept") {
  auto const admitted = admit_all(ReduceOp::sum, {rank(0, "f32", "4", 1, "cuda:0"), rank(1, "f32", "4"),
                                                  rank(2, "f32", "4", 1, "cuda:7")})
                            .value();
  CHECK(admitted.devices == std::vector<std::optional<std::string>>{"cuda:0", "cpu", "cuda:7"});
}

TEST_CASE("several tensors of one name may lie on several devices") {
  api::TensorList found;
  for (auto const* device : {"cuda:0", "cuda:1", "cuda:0"})
    found.items.push_back({"x/" + std::to_string(found.items.size()), "f32", {4}, 1, 16, device, {}});
  auto const parts = read_parts(0, "w0", "x", found).value();
  CHECK(parts.parts == 3);
  CHECK(parts.device == "cuda:0,cuda:1");
}

TEST_CASE("the same shape in another notation is another shape") {
  CHECK(refused({rank(0, "f32", "2,3"), rank(1, "f32", "3,2")}).code == ProblemCode::mismatch);
}

TEST_CASE("impossible reports of workers are refused") {
  for (auto const* shape : {",", "1,", ",1", "-1", "1.5", " 1", "1 ", "x", "4294967296,4294967296",
                            "9223372036854775807,2", "99999999999999999999"})
    CHECK(refused({rank(0, "f32", shape)}).code == ProblemCode::invalid_field);
  CHECK(refused({rank(0, "f33", "1")}).code == ProblemCode::invalid_field);
}

TEST_CASE("bit operations exist for integers only") {
  CHECK(refused({rank(0, "f32", "1")}, ReduceOp::bxor).errors.front().pointer == "/reduce");
  CHECK(admit_all(ReduceOp::bxor, std::vector{rank(0, "u16", "1")}).has_value());
}

TEST_CASE("an answer to HEAD is read, and a malformed one blames its rank") {
  auto const good = read_tensor(
      3, "w3", "x", answer(200, {{"tensor-dtype", "f32"}, {"Tensor-Shape", "4,5"}, {"Tensor-Version", "12"}}));
  REQUIRE(good.has_value());
  CHECK(good.value().rank == 3);
  CHECK(good.value().shape == "4,5");
  CHECK(good.value().version == 12);
  CHECK(good.value().device == "cpu");

  auto const code = [](http::Answer const& given) {
    auto const read = read_tensor(3, "w3", "x", given);
    REQUIRE(read.has_error());
    CHECK(read.error().ranks == std::vector<std::uint32_t>{3});
    return read.error().code;
  };
  CHECK(code(answer(404)) == ProblemCode::unknown_tensor);
  CHECK(code(answer(409)) == ProblemCode::busy);
  CHECK(code(answer(500)) == ProblemCode::worker_unreachable);
  CHECK(code(answer(200)) == ProblemCode::worker_unreachable);
  CHECK(code(answer(200, {{"Tensor-Dtype", "f32"}, {"Tensor-Shape", "4"}, {"Tensor-Version", "1x"}})) ==
        ProblemCode::worker_unreachable);
}

TEST_CASE("refusals of several ranks are one problem that names them all") {
  http::Problem first(ProblemCode::unknown_tensor, "rank 1 has none");
  first.ranks = {1};
  auto second = first;
  second.detail = "rank 3 has none";
  second.ranks = {3};
  auto const joined = join_refusals(std::vector{first, second});
  CHECK(joined.code == ProblemCode::unknown_tensor);
  CHECK(joined.ranks == std::vector<std::uint32_t>{1, 3});
  CHECK(joined.detail == "rank 1 has none, and 1 more");
  CHECK(joined.errors.size() == 2);
  CHECK(join_refusals(std::vector{first}) == first);
}
