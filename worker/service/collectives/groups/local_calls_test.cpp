// All operations as members' calls.
#include <doctest/doctest.h>

#include <numeric>

#include "worker/service/testing/live_group.hpp"

using namespace chorus;
using namespace chorus::service::testing;
using Values = std::vector<std::int32_t>;

namespace {

constexpr std::size_t ranks = 3;

// Three ranks in epoch 1, and tensors of two columns of i32.
class Calls {
 public:
  Calls() { group.assign(1); }

  // rank * 100 + index
  static Values values(std::size_t rank, std::size_t rows) {
    Values values(rows * 2);
    std::iota(values.begin(), values.end(), static_cast<std::int32_t>(rank * 100));
    return values;
  }
  void put(std::size_t rank, std::size_t rows, std::string const& name = "x") {
    auto const data = values(rank, rows);
    auto const answer = group.at(rank).put(
        "/v1/tensors/" + name, std::string(reinterpret_cast<char const*>(data.data()), data.size() * 4),
        {{"Tensor-Dtype", "i32"}, {"Tensor-Shape", std::to_string(rows) + ",2"}}, "application/octet-stream");
    REQUIRE(answer.status / 100 == 2);
  }
  void put_all(std::size_t rows) {
    for (std::size_t rank = 0; rank < ranks; ++rank) put(rank, rows);
  }
  std::vector<Answer> call(std::string const& op, std::string const& body) {
    auto answers = group.call(op, body);
    for (auto const& answer : answers) {
      INFO(op, " ", body, " ", answer.body);
      CHECK(answer.status == 200);
    }
    return answers;
  }
  Values at(std::size_t rank, std::string const& name = "x") { return group.at(rank).get_tensor<std::int32_t>(name); }
  std::string shape(std::size_t rank, std::string const& name = "x") {
    return group.at(rank).head("/v1/tensors/" + name).header("Tensor-Shape");
  }

  LiveGroup group{ranks};
};

// Rows [begin, end) of the tensor that `put` has stored.
Values rows(std::size_t rank, std::size_t begin, std::size_t end) {
  auto const all = Calls::values(rank, end);
  return {all.begin() + static_cast<std::ptrdiff_t>(2 * begin), all.end()};
}

Values joined(std::vector<Values> const& parts) {
  Values all;
  for (auto const& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

Values sum_of_rows(std::size_t begin, std::size_t end) {
  auto sum = rows(0, begin, end);
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    auto const more = rows(rank, begin, end);
    std::transform(sum.begin(), sum.end(), more.begin(), sum.begin(), std::plus<>());
  }
  return sum;
}

}  // namespace

TEST_CASE("every operation, from every root, gives the right result") {
  Calls calls;
  calls.put_all(6);
  calls.call("all_reduce", R"({"tensor":"x","output":"y"})");
  calls.call("all_gather", R"({"tensor":"x","output":"all"})");
  calls.call("reduce_scatter", R"({"tensor":"x","output":"part"})");
  calls.call("all_to_all", R"({"tensor":"x","output":"mine"})");
  auto const everything = joined({rows(0, 0, 6), rows(1, 0, 6), rows(2, 0, 6)});
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    CHECK(calls.at(rank, "y") == sum_of_rows(0, 6));
    CHECK(calls.at(rank, "all") == everything);
    CHECK(calls.shape(rank, "all") == "18,2");
    CHECK(calls.at(rank, "part") == sum_of_rows(2 * rank, 2 * rank + 2));
    auto const from = [&](std::size_t sender) { return rows(sender, 2 * rank, 2 * rank + 2); };
    CHECK(calls.at(rank, "mine") == joined({from(0), from(1), from(2)}));
  }
  for (std::size_t root = 0; root < ranks; ++root) {
    auto const at_root = R"(","root":)" + std::to_string(root) + "}";
    calls.put_all(6);
    calls.call("reduce", R"({"tensor":"x","output":"sum)" + at_root);
    calls.call("gather", R"({"tensor":"x","output":"all)" + at_root);
    calls.call("scatter", R"({"tensor":"x","counts":[2,2,2],"output":"part)" + at_root);
    CHECK(calls.at(root, "sum") == sum_of_rows(0, 6));
    CHECK(calls.at(root, "all") == everything);
    calls.call("broadcast", R"({"tensor":"x)" + at_root);
    for (std::size_t rank = 0; rank < ranks; ++rank) CHECK(calls.at(rank) == rows(root, 0, 6));
  }
  for (auto const& answer : calls.call("barrier", "{}")) CHECK(answer.json().at("version").to_number<int>() == 0);
}

TEST_CASE("scatter gives every rank its rows, as many as its own tensor has") {
  Calls calls;
  for (std::size_t rank = 0; rank < ranks; ++rank) calls.put(rank, rank == 1 ? 6 : 2);
  calls.call("scatter", R"({"tensor":"x","root":1})");
  for (std::size_t rank = 0; rank < ranks; ++rank) CHECK(calls.at(rank) == rows(1, 2 * rank, 2 * rank + 2));
}

TEST_CASE("counts make blocks uneven, and all_to_all of different sizes finds one algorithm") {
  Calls calls;
  calls.group.assign(2, [](auto& message) {
    message.group.selection.push_back({"all_to_all", {}, "direct", 0, 2, {}, "large"});
    message.group.selection[message.group.selection.size() - 3].max_bytes = 16;  // pairwise
  });
  calls.put_all(4);
  calls.call("reduce_scatter", R"({"tensor":"x","output":"part","counts":[3,0,1]})");
  CHECK(calls.at(0, "part") == sum_of_rows(0, 3));
  CHECK(calls.shape(1, "part") == "0,2");
  for (std::size_t rank = 0; rank < ranks; ++rank) calls.put(rank, rank + 1);
  calls.call("all_gather", R"({"tensor":"x","output":"all","counts":[1,2,3]})");
  CHECK(calls.at(1, "all") == joined({rows(0, 0, 1), rows(1, 0, 2), rows(2, 0, 3)}));
  // Rank 0 sends 8 bytes, rank 2 sends 24: the limit in the table lies between them.
  std::vector<std::string> const counts{R"([0,1,0],"receive_counts":[0,1,2])", R"([1,0,1],"receive_counts":[1,0,1])",
                                        R"([2,1,0],"receive_counts":[0,1,0])"};
  for (auto const& answer : calls.group.call(
           "all_to_all", [&](std::size_t rank) { return R"({"tensor":"x","counts":)" + counts[rank] + "}"; })) {
    INFO(answer.body);
    CHECK(answer.status == 200);
  }
  CHECK(calls.at(0) == joined({rows(1, 0, 1), rows(2, 0, 2)}));
  CHECK(calls.at(1) == joined({rows(0, 0, 1), rows(2, 2, 3)}));
  CHECK(calls.at(2) == rows(1, 1, 2));
}

TEST_CASE("all_to_all with counts: blocks of one rank may be equal while those of the others are not") {
  Calls calls;
  std::vector<std::size_t> const sent{3, 4, 5};
  for (std::size_t rank = 0; rank < ranks; ++rank) calls.put(rank, sent[rank]);
  std::vector<std::string> const counts{R"([1,1,1],"receive_counts":[1,1,1])", R"([1,1,2],"receive_counts":[1,1,1])",
                                        R"([1,1,3],"receive_counts":[1,2,3])"};
  for (auto const& answer : calls.group.call(
           "all_to_all", [&](std::size_t rank) { return R"({"tensor":"x","counts":)" + counts[rank] + "}"; })) {
    INFO(answer.body);
    CHECK(answer.status == 200);
  }
  CHECK(calls.at(0) == joined({rows(0, 0, 1), rows(1, 0, 1), rows(2, 0, 1)}));
  CHECK(calls.at(2) == joined({rows(0, 2, 3), rows(1, 2, 4), rows(2, 2, 5)}));
}

TEST_CASE("a rank that only receives needs no tensor, but must describe it") {
  Calls calls;
  calls.put(2, 6);
  auto const body = [](std::string const& shape) {
    return [shape](std::size_t rank) {
      auto const declared = R"(,"dtype":"i32","shape":)" + shape;
      return R"({"tensor":"x","root":2)" + (rank == 2 ? "" : declared) + "}";
    };
  };
  for (auto const& answer : calls.group.call("scatter", body("[2,2]"))) {
    INFO(answer.body);
    CHECK(answer.status == 200);
  }
  CHECK(calls.at(0) == rows(2, 0, 2));
  CHECK(calls.at(1) == rows(2, 2, 4));
  calls.group.at(0).erase("/v1/tensors/x");
  calls.group.at(1).erase("/v1/tensors/x");
  calls.put(2, 6);
  auto const reports = calls.group.call("broadcast", body("[6,2]"));
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    INFO(reports[rank].body);
    CHECK(reports[rank].status == 200);
    CHECK(reports[rank].json().at("tensors") == (rank == 2 ? 1 : 0));
    CHECK(calls.at(rank) == rows(2, 0, 6));
  }
}

TEST_CASE("in place where the result is as large as the input") {
  Calls calls;
  calls.put_all(6);
  calls.call("all_to_all", R"({"tensor":"x","in_place":true})");
  CHECK(calls.at(1) == joined({rows(0, 2, 4), rows(1, 2, 4), rows(2, 2, 4)}));
  calls.put_all(6);
  calls.call("reduce", R"({"tensor":"x","in_place":true,"root":2})");
  CHECK(calls.at(2) == sum_of_rows(0, 6));
  CHECK(calls.at(0) == rows(0, 0, 6));
  calls.call("broadcast", R"({"tensor":"x","in_place":true,"root":2})");
  CHECK(calls.at(0) == sum_of_rows(0, 6));
}

TEST_CASE("every refusal names the field, costs no number, and breaks nothing") {
  Calls calls;
  calls.put_all(6);
  auto& worker = calls.group.at(0);
  auto const refused = [&](std::string const& op, std::string const& body, std::string const& pointer,
                           std::string const& hint = "") {
    auto const answer = worker.post("/v1/groups/g/" + op, body);
    INFO(op, " ", body, " -> ", answer.body);
    CHECK(answer.status / 100 == 4);
    REQUIRE(answer.json().as_object().contains("errors"));
    CHECK(answer.json().at("errors").at(0).at("pointer").as_string() == pointer);
    CHECK(answer.body.find(hint) != std::string::npos);
  };
  refused("all_reduce", "{}", "/tensor", "missing");
  refused("all_reduce", R"({"tensor":"../x"})", "/tensor");
  refused("all_reduce", R"({"tensor":"nobody"})", "/tensor");
  refused("broadcast", R"({"tensor":"nobody","root":1})", "/tensor", "dtype and shape");
  refused("broadcast", R"({"tensor":"nobody","root":1,"dtype":"i32"})", "/shape");
  refused("broadcast", R"({"tensor":"nobody","root":1,"shape":[6,2]})", "/dtype");
  refused("broadcast", R"({"tensor":"nobody","root":1,"shape":[6,2],"dtype":"i33"})", "/dtype", "did you mean 'i32'?");
  refused("broadcast", R"({"tensor":"nobody","root":1,"shape":[9223372036854775807,9],"dtype":"i32"})", "/shape");
  refused("broadcast", R"({"tensor":"nobody","shape":[6,2],"dtype":"i32"})", "/tensor");
  refused("all_reduce", R"({"tensor":"x","dtype":"f32"})", "/dtype", "i32");
  refused("all_reduce", R"({"tensor":"x","shape":[3,4]})", "/shape", "6,2");
  refused("all_reduce", R"({"tensor":"x","reduce":"average"})", "/reduce", "there are sum, avg, min");
  refused("all_reduce", R"({"tensor":"x","reduce":"summ"})", "/reduce", "did you mean 'sum'?");
  refused("all_reduce", R"({"tensor":"x","output":"a b"})", "/output");
  refused("all_reduce", R"({"tensor":"x","algorithm":"rign"})", "/algorithm", "did you mean 'ring'?");
  CHECK(worker.post("/v1/groups/g/all_redcue", "{}").json().at("detail") ==
        "unknown operation 'all_redcue'; did you mean 'all_reduce'?");
  refused("all_reduce", R"({"tensor":"x","root":1})", "/root", "has none");
  auto const other = worker.post("/v1/groups/g/broadcast", R"({"tensor":"x","algorithm":"ring_naive"})");
  CHECK(other.code() == "unsupported");
  CHECK(other.json().at("errors").at(0).at("pointer") == "/algorithm");
  refused("reduce", R"({"tensor":"x","root":3})", "/root", "group of 3");
  refused("all_reduce", R"({"tensor":"x","counts":[2,2,2]})", "/counts");
  refused("scatter", R"({"tensor":"x","counts":[6]})", "/counts", "3 ranks");
  refused("scatter", R"({"tensor":"x","counts":[1,1,1]})", "/counts", "6 rows");
  refused("all_gather", R"({"tensor":"x","counts":[1,1,1]})", "/counts", "6 rows");
  refused("reduce_scatter", R"({"tensor":"x","counts":[18446744073709551615,1,6]})", "/counts");
  refused("all_to_all", R"({"tensor":"x","counts":[2,2,2]})", "/receive_counts", "together");
  refused("all_to_all", R"({"tensor":"x","counts":[1,1,1],"receive_counts":[1,1,1]})", "/counts", "6 rows");
  refused("all_to_all", R"({"tensor":"x","counts":[2,2,2],"receive_counts":[3,1,1]})", "/receive_counts", "itself");
  refused("gather", R"({"tensor":"x","receive_counts":[1,1,1]})", "/receive_counts");
  refused("all_gather", R"({"tensor":"x","in_place":true})", "/in_place", "another size");
  refused("all_reduce", R"({"tensor":"x","in_place":true,"output":"y"})", "/in_place", "another tensor");
  refused("barrier", R"({"tensor":"x"})", "/tensor");
  refused("all_reduce", R"({"tensor":"x","contributions":4})", "/contributions");
  refused("all_reduce", R"({"tensor":"x","reduce":"avg","contributions":0})", "/contributions");
  refused("all_reduce", R"({"tensor":"x","timeout_ms":0})", "/timeout_ms");
  refused("all_reduce", R"({"tensor":"x","schedule":{"window":0}})", "/schedule/window");
  for (auto const& answer : calls.call("all_reduce", R"({"tensor":"x"})"))
    CHECK(answer.json().at("sequence").to_number<int>() == 0);
}

TEST_CASE("a table without a line for the operation says which field to give") {
  Calls calls;
  calls.group.assign(2, [](auto& message) { message.group.selection.clear(); });
  calls.put_all(6);
  auto const answer = calls.group.at(0).post("/v1/groups/g/reduce", R"({"tensor":"x"})");
  CHECK(answer.code() == "unsupported");
  CHECK(answer.json().at("errors").at(0).at("pointer") == "/algorithm");
  calls.call("reduce", R"({"tensor":"x","algorithm":"chain"})");
}

namespace {

using Longs = std::vector<std::int64_t>;

// Puts grad/0, grad/1, ...: counts[r] of them on rank r; all values of part k of rank r are 6 * (r * 10 + k).
void put_parts(LiveGroup& group, std::vector<std::size_t> const& counts) {
  for (std::size_t rank = 0; rank < group.ranks(); ++rank)
    for (std::size_t part = 0; part < counts[rank]; ++part)
      REQUIRE(group.at(rank)
                      .put_tensor("grad/" + std::to_string(part), "i64",
                                  Longs(5001, static_cast<std::int64_t>(6 * (rank * 10 + part))))
                      .status /
                  100 ==
              2);
}

}  // namespace

TEST_CASE("several tensors of one name are contributed as one, and all get the result") {
  LiveGroup group(2);
  group.assign(1);
  put_parts(group, {2, 1});
  for (auto const* local : {"auto", "tree", "ring"}) {
    put_parts(group, {2, 1});
    auto const reports = group.all_reduce(R"({"tensor":"grad","local_algorithm":")" + std::string(local) + "\"}");
    for (auto const& report : reports) {
      INFO(local, " ", report.body);
      CHECK(report.status == 200);
    }
    CHECK(reports[0].json().at("tensors") == 2);
    for (auto const* name : {"grad/0", "grad/1"})
      CHECK(group.at(0).get_tensor<std::int64_t>(name) == Longs(5001, 6 * (0 + 1 + 10)));
    CHECK(group.at(1).get_tensor<std::int64_t>("grad/0") == Longs(5001, 6 * 11));
  }
  group.call("broadcast", R"({"tensor":"grad","root":1})");
  CHECK(group.at(0).get_tensor<std::int64_t>("grad/1") == Longs(5001, 66));
}

TEST_CASE("an average over several tensors per worker is over all of them, or refused where their number is unknown") {
  LiveGroup group(2);
  group.assign(1);
  put_parts(group, {2, 2});
  for (auto const& answer : group.all_reduce(R"({"tensor":"grad","reduce":"avg"})")) CHECK(answer.status == 200);
  CHECK(group.at(1).get_tensor<std::int64_t>("grad/1") == Longs(5001, 6 * (0 + 1 + 10 + 11) / 4));

  group.at(1).erase("/v1/tensors/grad/1");
  put_parts(group, {2, 1});
  for (auto const& answer : group.all_reduce(R"({"tensor":"grad","reduce":"avg","contributions":3})")) {
    INFO(answer.body);
    CHECK(answer.status == 200);
  }
  CHECK(group.at(0).get_tensor<std::int64_t>("grad/0") == Longs(5001, 6 * (0 + 1 + 10) / 3));
  for (auto const& answer : group.all_reduce(R"({"tensor":"grad","reduce":"avg"})")) {
    INFO(answer.body);
    CHECK(answer.code() == "plan_mismatch");
    CHECK(answer.body.find("over 2 contributions") != std::string::npos);
    CHECK(answer.body.find("over 4 contributions") != std::string::npos);
  }
}

TEST_CASE("several tensors of one name: impossible calls") {
  LiveGroup group(1);
  group.assign(1);
  put_parts(group, {2});
  auto const refused = [&](std::string const& op, std::string const& body, std::string const& pointer) {
    auto const answer = group.at(0).post("/v1/groups/g/" + op, body);
    INFO(answer.body);
    REQUIRE(answer.json().as_object().contains("errors"));
    CHECK(answer.json().at("errors").at(0).at("pointer").as_string() == pointer);
  };
  refused("all_gather", R"({"tensor":"grad"})", "/tensor");
  refused("all_reduce", R"({"tensor":"grad","in_place":true})", "/in_place");
  refused("all_reduce", R"({"tensor":"grad","output":"y"})", "/output");
  refused("all_reduce", R"({"tensor":"grad","local_algorithm":"bruck"})", "/local_algorithm");
  group.at(0).put_tensor("grad/1", "i64", Longs(7));
  CHECK(group.at(0).post("/v1/groups/g/all_reduce", R"({"tensor":"grad"})").code() == "mismatch");
}

TEST_CASE("a compressed reduction takes an algorithm that adds at one place where the table has another one") {
  LiveGroup group(ranks);
  group.assign(1);
  auto const algorithm_of = [&](std::string const& op, std::string const& body) {
    std::string algorithm;
    for (auto const& answer : group.call(op, body)) {
      INFO(op, " ", answer.body);
      REQUIRE(answer.status == 200);
      algorithm = answer.json().at("algorithm").as_string();
    }
    return algorithm;
  };
  group.put_everywhere("x", 3000);
  CHECK(algorithm_of("all_reduce", R"({"tensor":"x","output":"y"})") == "ring");
  CHECK(algorithm_of("all_reduce", R"({"tensor":"x","output":"y","compression":"bf16"})") == "allpairs");
  CHECK(group.at(2).get_tensor<float>("y") == group.sum(3000));
  CHECK(algorithm_of("reduce", R"({"tensor":"x","output":"y","compression":"f16"})") == "centralized");
  CHECK(group.at(0).get_tensor<float>("y") == group.sum(3000));
  CHECK(algorithm_of("reduce_scatter", R"({"tensor":"x","output":"y","compression":"bf16"})") == "direct");
  CHECK(group.at(1).get_tensor<float>("y") == group.sum(1000));
  CHECK(algorithm_of("all_gather", R"({"tensor":"x","output":"y","compression":"bf16"})") == "ring");
  CHECK(group.at(1).get_tensor<float>("y").size() == 9000);
  for (auto const& answer : group.all_reduce(R"({"tensor":"x","compression":"bf16","algorithm":"ring"})")) {
    INFO(answer.body);
    CHECK(answer.code() == "invalid_field");
    CHECK(answer.body.find("ring does not add every element at one place") != std::string::npos);
  }
}
