// Every operation over real processes: the result of each rank, element by element.
#include <doctest/doctest.h>

#include <numeric>
#include <set>
#include <thread>

#include "tests/support/fleets/cluster.hpp"

using namespace chorus::testing;
namespace json = boost::json;
using Values = std::vector<std::int32_t>;

namespace {

constexpr std::size_t columns = 3;

// Rows of worker w's tensor, with values that no other row of any worker has.
Values rows_of(std::size_t worker, std::size_t begin, std::size_t end) {
  Values values;
  for (auto row = begin; row < end; ++row)
    for (std::size_t column = 0; column < columns; ++column)
      values.push_back(static_cast<std::int32_t>(worker * 1'000'000 + row * 10 + column));
  return values;
}

Values joined(std::vector<Values> const& parts) {
  Values all;
  for (auto const& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

class Fleet {
 public:
  explicit Fleet(std::size_t workers) : cluster(workers) { cluster.make_group("g"); }

  void put(std::size_t worker, std::size_t rows) {
    auto const values = rows_of(worker, 0, rows);
    REQUIRE(
        cluster.worker(worker)
                .put_tensor("x", "i32", std::to_string(rows) + "," + std::to_string(columns),
                            std::string(reinterpret_cast<char const*>(values.data()), values.size() * sizeof values[0]))
                .status /
            100 ==
        2);
  }
  void put_all(std::size_t rows) {
    for (std::size_t worker = 0; worker < size(); ++worker) put(worker, rows);
  }
  void erase(std::size_t worker) { cluster.worker(worker).erase("/v1/tensors/x"); }

  json::value run(json::object request) {
    request["group"] = "g";
    if (request["op"] != "barrier") request["tensor"] = "x";
    auto answer = cluster.run(request);
    INFO(json::serialize(request), " -> ", json::serialize(answer));
    REQUIRE(answer.as_object().contains("state"));
    CHECK(answer.at("state") == "succeeded");
    return answer;
  }

  Values at(std::size_t worker, std::string const& tensor = "x") {
    return cluster.worker(worker).get_tensor<std::int32_t>(tensor);
  }
  std::string shape(std::size_t worker, std::string const& tensor = "x") {
    return cluster.worker(worker).get("/v1/tensors/" + tensor).header("Tensor-Shape");
  }
  [[nodiscard]] std::size_t size() const { return cluster.size(); }

  std::set<std::string> algorithms_for(std::string const& op) {
    auto const answer = cluster.coordinator.post(
        "/v1/plans", json::serialize(json::object{{"ranks", size()}, {"op", op}, {"bytes", 4096}}));
    auto const body = answer.json();
    std::set<std::string> names;
    for (auto const& each : body.at("considered").as_array())
      names.insert(std::string(each.at("algorithm").as_string()));
    CHECK(names.size() >= 2);
    return names;
  }

  Cluster cluster;
};

Values sum_of(std::size_t workers, std::size_t begin, std::size_t end) {
  Values sum((end - begin) * columns);
  for (std::size_t worker = 0; worker < workers; ++worker) {
    auto const values = rows_of(worker, begin, end);
    std::transform(sum.begin(), sum.end(), values.begin(), sum.begin(), std::plus<>());
  }
  return sum;
}

}  // namespace

TEST_CASE("every operation by every algorithm, from every root") {
  Fleet fleet(4);
  auto const each = [&](std::string const& op, bool rooted, auto check) {
    for (auto const& algorithm : fleet.algorithms_for(op))
      for (std::size_t root = 0; root < (rooted ? 4u : 1u); ++root) {
        CAPTURE(op);
        CAPTURE(algorithm);
        CAPTURE(root);
        fleet.put_all(8);
        json::object request{{"op", op}, {"algorithm", algorithm}};
        if (rooted) request["root"] = root;
        fleet.run(std::move(request));
        check(root);
      }
  };
  each("all_reduce", false, [&](std::size_t) {
    for (std::size_t w = 0; w < 4; ++w) CHECK(fleet.at(w) == sum_of(4, 0, 8));
  });
  each("reduce", true, [&](std::size_t root) {
    for (std::size_t w = 0; w < 4; ++w) CHECK(fleet.at(w) == (w == root ? sum_of(4, 0, 8) : rows_of(w, 0, 8)));
  });
  each("broadcast", true, [&](std::size_t root) {
    for (std::size_t w = 0; w < 4; ++w) CHECK(fleet.at(w) == rows_of(root, 0, 8));
  });
  auto const gathered = joined({rows_of(0, 0, 8), rows_of(1, 0, 8), rows_of(2, 0, 8), rows_of(3, 0, 8)});
  each("all_gather", false, [&](std::size_t) {
    for (std::size_t w = 0; w < 4; ++w) CHECK(fleet.at(w) == gathered);
    CHECK(fleet.shape(2) == "32,3");
  });
  each("gather", true, [&](std::size_t root) {
    for (std::size_t w = 0; w < 4; ++w) CHECK(fleet.at(w) == (w == root ? gathered : rows_of(w, 0, 8)));
  });
  each("reduce_scatter", false, [&](std::size_t) {
    for (std::size_t w = 0; w < 4; ++w) CHECK(fleet.at(w) == sum_of(4, 2 * w, 2 * w + 2));
  });
  each("scatter", true, [&](std::size_t root) {
    for (std::size_t w = 0; w < 4; ++w) CHECK(fleet.at(w) == rows_of(root, 2 * w, 2 * w + 2));
  });
  each("all_to_all", false, [&](std::size_t) {
    for (std::size_t w = 0; w < 4; ++w) {
      auto const from = [&](std::size_t sender) { return rows_of(sender, 2 * w, 2 * w + 2); };
      CHECK(fleet.at(w) == joined({from(0), from(1), from(2), from(3)}));
    }
  });
  each("barrier", false, [](std::size_t) {});
}

TEST_CASE("uneven blocks: gather and scatter move the counts that ranks have or the request names") {
  Fleet fleet(3);
  for (std::size_t w = 0; w < 3; ++w) fleet.put(w, w == 1 ? 0 : w + 2);
  fleet.run({{"op", "all_gather"}, {"output", "all"}});
  for (std::size_t w = 0; w < 3; ++w) {
    CHECK(fleet.at(w, "all") == joined({rows_of(0, 0, 2), rows_of(2, 0, 4)}));
    CHECK(fleet.shape(w, "all") == "6,3");
  }
  CHECK(fleet.at(2) == rows_of(2, 0, 4));  // the input is unchanged

  fleet.put_all(7);
  fleet.run({{"op", "reduce_scatter"}, {"counts", {4, 0, 3}}, {"output", "part"}});
  CHECK(fleet.at(0, "part") == sum_of(3, 0, 4));
  CHECK(fleet.at(1, "part").empty());
  CHECK(fleet.shape(1, "part") == "0,3");
  CHECK(fleet.at(2, "part") == sum_of(3, 4, 7));

  fleet.run({{"op", "scatter"}, {"root", 1}});  // counts 3, 2, 2
  CHECK(fleet.at(0) == rows_of(1, 0, 3));
  CHECK(fleet.at(2) == rows_of(1, 5, 7));

  for (std::size_t w = 0; w < 3; ++w) fleet.put(w, w + 1);
  fleet.run({{"op", "all_to_all"}, {"counts", {0, 1, 0, 1, 0, 1, 2, 1, 0}}});
  CHECK(fleet.at(0) == joined({rows_of(1, 0, 1), rows_of(2, 0, 2)}));
  CHECK(fleet.at(1) == joined({rows_of(0, 0, 1), rows_of(2, 2, 3)}));
  CHECK(fleet.at(2) == rows_of(1, 1, 2));
}

TEST_CASE("broadcast and scatter create the tensor on workers that do not have it") {
  Fleet fleet(3);
  fleet.put(2, 6);
  fleet.run({{"op", "broadcast"}, {"root", 2}});
  for (std::size_t w = 0; w < 3; ++w) CHECK(fleet.at(w) == rows_of(2, 0, 6));
  CHECK(fleet.cluster.worker(0).tensor_version("x") == 1);
  CHECK(fleet.cluster.worker(2).tensor_version("x") == 2);
  fleet.erase(0);
  fleet.run({{"op", "scatter"}, {"root", 2}});
  CHECK(fleet.at(0) == rows_of(2, 0, 2));
}

TEST_CASE("in_place works where the result is as large as the input, and is refused elsewhere") {
  Fleet fleet(4);
  fleet.put_all(8);
  fleet.run({{"op", "all_to_all"}, {"in_place", true}});
  CHECK(fleet.at(1) == joined({rows_of(0, 2, 4), rows_of(1, 2, 4), rows_of(2, 2, 4), rows_of(3, 2, 4)}));
  fleet.put_all(8);
  fleet.run({{"op", "reduce"}, {"root", 3}, {"in_place", true}});
  CHECK(fleet.at(3) == sum_of(4, 0, 8));
  CHECK(fleet.at(0) == rows_of(0, 0, 8));
  fleet.run({{"op", "broadcast"}, {"root", 3}, {"in_place", true}});
  CHECK(fleet.at(0) == sum_of(4, 0, 8));
  auto const refused = fleet.cluster.coordinator.post(
      "/v1/collectives?wait=30s", R"({"group":"g","op":"all_gather","tensor":"x","in_place":true})");
  CHECK(refused.status == 422);
  CHECK(refused.json().at("errors").at(0).at("pointer") == "/in_place");
}

TEST_CASE("an impossible request is refused with the field and the possible values") {
  Fleet fleet(3);
  fleet.put_all(6);
  auto const refused = [&](std::string const& body, std::string const& pointer, std::string const& hint) {
    auto const answer = fleet.cluster.coordinator.post("/v1/collectives?wait=30s", body);
    INFO(body, " -> ", answer.body);
    CHECK(answer.status == 422);
    CHECK(answer.json().at("errors").at(0).at("pointer").as_string() == pointer);
    CHECK(answer.body.find(hint) != std::string::npos);
  };
  refused(R"({"group":"g","op":"gather","tensor":"x","algorithm":"bcube"})", "/algorithm", "binomial");
  refused(R"({"group":"g","op":"gather","tensor":"x","root":3})", "/root", "group of 3");
  refused(R"({"group":"g","op":"all_reduce","tensor":"x","algorithm":"tree","arity":0})", "/arity", "at least one");
  refused(R"({"group":"g","op":"all_reduce","tensor":"x","algorithm":"torus_2d","algorithm_shape":[2,2]})",
          "/algorithm_shape", "3 ranks");
  refused(R"({"group":"g","op":"scatter","tensor":"x","counts":[1,2]})", "/counts", "expected 3");
  refused(R"({"group":"g","op":"all_reduce","tensor":"x","counts":[1,2,3]})", "/counts", "reduce_scatter");
  refused(R"({"group":"g","op":"barrier","tensor":"x"})", "/tensor", "none");
  for (std::size_t w = 0; w < 3; ++w) CHECK(fleet.cluster.worker(w).tensor_version("x") == 1);
}

TEST_CASE("members call every operation at their own workers") {
  Fleet fleet(3);
  auto const call_all = [&](std::string const& op, std::string const& body) {
    std::vector<Answer> answers(3);
    std::vector<std::thread> calls;
    for (std::size_t w = 0; w < 3; ++w)
      calls.emplace_back([&, w] { answers[w] = fleet.cluster.worker(w).post("/v1/groups/g/" + op, body); });
    for (auto& call : calls) call.join();
    for (auto const& answer : answers) {
      INFO(op, " ", answer.body);
      CHECK(answer.status == 200);
    }
  };
  fleet.put_all(6);
  call_all("reduce", R"({"tensor":"x","root":1})");
  CHECK(fleet.at(1) == sum_of(3, 0, 6));
  CHECK(fleet.at(0) == rows_of(0, 0, 6));
  call_all("broadcast", R"({"tensor":"x","root":1})");
  CHECK(fleet.at(2) == sum_of(3, 0, 6));
  fleet.put_all(6);
  call_all("all_gather", R"({"tensor":"x","output":"all"})");
  CHECK(fleet.at(2, "all") == joined({rows_of(0, 0, 6), rows_of(1, 0, 6), rows_of(2, 0, 6)}));
  call_all("reduce_scatter", R"({"tensor":"x","output":"part","counts":[1,0,5]})");
  CHECK(fleet.at(2, "part") == sum_of(3, 1, 6));
  call_all("all_to_all", R"({"tensor":"x"})");
  CHECK(fleet.at(0) == joined({rows_of(0, 0, 2), rows_of(1, 0, 2), rows_of(2, 0, 2)}));
  for (int again = 0; again < 20; ++again) call_all("barrier", "{}");
  fleet.put_all(6);
  call_all("gather", R"({"tensor":"x","output":"all","root":2})");
  CHECK(fleet.at(2, "all") == joined({rows_of(0, 0, 6), rows_of(1, 0, 6), rows_of(2, 0, 6)}));
  call_all("scatter", R"({"tensor":"x","root":1,"counts":[1,2,3]})");
  CHECK(fleet.at(0) == rows_of(1, 0, 1));
  CHECK(fleet.at(2) == rows_of(1, 3, 6));
  for (std::size_t w = 0; w < 3; ++w)
    for (auto const* name : {"a", "b"})
      fleet.cluster.worker(w).put_tensor(name, "f32", std::vector<float>(1000, static_cast<float>(w + 1)));
  call_all("all_reduce", R"({"tensors":["a","b"],"reduce":"avg"})");
  CHECK(fleet.cluster.worker(1).get_tensor<float>("b") == std::vector<float>(1000, 2));
}

TEST_CASE("reproducible sums and averages have the same bits for every algorithm, size, segment and order of ranks") {
  // The second fleet's localities give the same workers other ranks.
  Cluster plain(4), mixed(4, {"rack=b", "rack=a", "rack=b", "rack=a"});
  plain.make_group("g");
  CHECK(mixed.make_group("g") == std::vector<std::string>{"w0", "w2", "w1", "w3"});
  std::vector<float> telling{1e8F, 1, -1e8F, 1};
  std::sort(telling.begin(), telling.end());
  do {
    for (std::size_t const count : {1, 7, 20000}) {
      auto const sum = ((telling[0] + telling[1]) + telling[2]) + telling[3];
      for (auto* cluster : {&plain, &mixed})
        for (auto const& [reduce, expected] : {std::pair("sum", sum), std::pair("avg", sum / 4)})
          for (auto const* algorithm : {"centralized", "mesh", "allpairs", "auto"}) {
            for (std::size_t w = 0; w < 4; ++w)
              cluster->worker(w).put_tensor("x", "f32", std::vector<float>(count, telling[w]));
            auto const answer = cluster->run({{"group", "g"},
                                              {"tensor", "x"},
                                              {"reduce", reduce},
                                              {"algorithm", algorithm},
                                              {"reproducible", true},
                                              {"schedule", {{"segment_bytes", count == 7 ? 4096 : 65536}}}});
            INFO(json::serialize(answer));
            REQUIRE(answer.at("state") == "succeeded");
            for (std::size_t w = 0; w < 4; ++w)
              CHECK(cluster->worker(w).get_tensor<float>("x") == std::vector<float>(count, expected));
          }
    }
  } while (std::next_permutation(telling.begin(), telling.end()));
}

TEST_CASE("reproducible sums of several tensors of one name on a worker follow their order") {
  Cluster cluster(2);
  cluster.make_group("g");
  std::vector<float> telling{1e8F, 1, -1e8F, 1};
  std::sort(telling.begin(), telling.end());
  do {
    auto const expected = ((telling[0] + telling[1]) + telling[2]) + telling[3];
    for (auto const* local : {"auto", "centralized"})
      for (auto const* algorithm : {"centralized", "mesh", "allpairs", "auto"}) {
        for (std::size_t w = 0; w < 2; ++w)
          for (std::size_t k = 0; k < 4; ++k)
            cluster.worker(w).put_tensor("grad/" + std::to_string(k), "f32",
                                         std::vector<float>(1000, w == 0 ? telling[k] : 0));
        auto const answer = cluster.run({{"group", "g"},
                                         {"tensor", "grad"},
                                         {"algorithm", algorithm},
                                         {"local_algorithm", local},
                                         {"reproducible", true}});
        REQUIRE(answer.at("state") == "succeeded");
        for (std::size_t w = 0; w < 2; ++w)
          CHECK(cluster.worker(w).get_tensor<float>("grad/3") == std::vector<float>(1000, expected));
      }
  } while (std::next_permutation(telling.begin(), telling.end()));
}

TEST_CASE("several tensors of one name on a worker are one contribution, and all of them get the result") {
  Cluster cluster(3);
  cluster.make_group("g");
  std::vector<std::size_t> const parts{2, 1, 3};
  auto const part = [](std::size_t worker, std::size_t k) {
    std::vector<std::int64_t> values(5001);
    for (std::size_t i = 0; i < values.size(); ++i)
      values[i] = static_cast<std::int64_t>(6 * (worker * 100 + k * 10 + i));
    return values;
  };
  auto const name = [](std::size_t k) { return "grad/" + std::to_string(k); };
  auto const put_all = [&] {
    for (std::size_t w = 0; w < 3; ++w)
      for (std::size_t k = 0; k < parts[w]; ++k)
        REQUIRE(cluster.worker(w).put_tensor(name(k), "i64", part(w, k)).status / 100 == 2);
  };
  std::vector<std::int64_t> sum(5001);
  for (std::size_t w = 0; w < 3; ++w)
    for (std::size_t k = 0; k < parts[w]; ++k) {
      auto const values = part(w, k);
      std::transform(sum.begin(), sum.end(), values.begin(), sum.begin(), std::plus<>());
    }
  auto average = sum;
  for (auto& value : average) value /= 6;

  for (auto const* local : {"auto", "centralized", "tree", "ring", "binomial", "chain", "double_tree"})
    for (auto const* global : {"ring", "tree"})
      for (auto const* reduce : {"sum", "avg"}) {
        put_all();
        auto const answer = cluster.run({{"group", "g"},
                                         {"tensor", "grad"},
                                         {"reduce", reduce},
                                         {"algorithm", global},
                                         {"local_algorithm", local}});
        INFO(json::serialize(answer));
        REQUIRE(answer.at("state") == "succeeded");
        CHECK(answer.at("ranks").at(2).at("parts") == 3);
        for (std::size_t w = 0; w < 3; ++w)
          for (std::size_t k = 0; k < parts[w]; ++k)
            CHECK(cluster.worker(w).get_tensor<std::int64_t>(name(k)) ==
                  (reduce == std::string("sum") ? sum : average));
      }

  put_all();
  auto const before = cluster.worker(0).tensor_version(name(0));
  CHECK(cluster.run({{"group", "g"}, {"op", "reduce"}, {"root", 2}, {"tensor", "grad"}}).at("state") == "succeeded");
  CHECK(cluster.worker(2).get_tensor<std::int64_t>(name(1)) == sum);
  CHECK(cluster.worker(0).get_tensor<std::int64_t>(name(1)) == part(0, 1));
  CHECK(cluster.worker(0).tensor_version(name(0)) == before);
  CHECK(cluster.run({{"group", "g"}, {"op", "broadcast"}, {"root", 2}, {"tensor", "grad"}}).at("state") == "succeeded");
  for (std::size_t k = 0; k < 2; ++k) CHECK(cluster.worker(0).get_tensor<std::int64_t>(name(k)) == sum);

  cluster.worker(2).put_tensor(name(1), "i64", std::vector<std::int64_t>(7));
  auto const refused = cluster.coordinator.post("/v1/collectives?wait=30s", R"({"group":"g","tensor":"grad"})");
  CHECK(refused.status == 409);
  CHECK(refused.body.find("grad/1 is not like grad/0") != std::string::npos);
  CHECK(
      cluster.coordinator.post("/v1/collectives?wait=30s", R"({"group":"g","tensor":"grad","local_algorithm":"bruck"})")
          .body.find("/local_algorithm") != std::string::npos);
}
