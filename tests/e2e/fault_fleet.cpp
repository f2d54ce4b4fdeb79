#include "tests/e2e/fault_fleet.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <optional>

namespace chorus::testing {
namespace {

namespace json = boost::json;
using Values = std::vector<std::uint64_t>;

// Each worker has a byte of its own in every element: a sum says who took part, exactly.
Values input_of(std::size_t worker) {
  Values values(FaultFleet::elements);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = (i % 251 + 1) << (8 * worker);
  return values;
}

Values sum_of(std::vector<std::size_t> const& members) {
  Values sum(FaultFleet::elements);
  for (auto const member : members) {
    auto const values = input_of(member);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  return sum;
}

// Rows are dealt out evenly, the first ranks getting one more.
Values share_of(Values const& values, std::size_t rank, std::size_t ranks) {
  auto const begin = [&](std::size_t r) { return r * (values.size() / ranks) + std::min(r, values.size() % ranks); };
  return {values.begin() + static_cast<std::ptrdiff_t>(begin(rank)),
          values.begin() + static_cast<std::ptrdiff_t>(begin(rank + 1))};
}

// What a rank gets; nothing if the operation leaves it as it is. The root is rank 0.
std::optional<Values> expected(std::string const& op, std::vector<std::size_t> const& members, std::size_t rank) {
  if (op == "barrier") return std::nullopt;
  if ((op == "reduce" || op == "gather") && rank != 0) return std::nullopt;
  if (op == "all_reduce" || op == "reduce") return sum_of(members);
  if (op == "broadcast") return input_of(members[0]);
  if (op == "reduce_scatter") return share_of(sum_of(members), rank, members.size());
  if (op == "scatter") return share_of(input_of(members[0]), rank, members.size());
  Values all;
  for (auto const member : members) {
    auto const values = input_of(member);
    auto const part = op == "all_to_all" ? share_of(values, rank, members.size()) : values;
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// In rank order.
std::vector<std::size_t> members_of(json::value const& record) {
  std::vector<std::size_t> members;
  for (auto const& rank : record.at("ranks").as_array())
    members.push_back(static_cast<std::size_t>(rank.at("worker").as_string().back() - '0'));
  return members;
}

bool was_committing(json::value const& error) {
  auto const detail = std::string_view(error.at("detail").as_string());
  return detail.ends_with("the other ranks have the result as their next version") ||
         detail.ends_with("no rank has confirmed its commit");
}

std::string outcome_of(json::value const& record) {
  if (!record.as_object().contains("state")) return "refused: " + std::string(record.at("code").as_string());
  auto state = std::string(record.at("state").as_string());
  if (state == "succeeded") return record.at("attempts").as_array().empty() ? state : state + " without it";
  auto const& error = record.at("error");
  return state + (was_committing(error) ? " in its commit: " : ": ") + std::string(error.at("code").as_string());
}

}  // namespace

FaultFleet::FaultFleet(std::uint64_t seed)
    : coordinator_(std::make_unique<Service>(
          "coordinator", std::vector<std::string>{binary("chorus-coordinator"), "--port", "0", "--lease-ms", "1000",
                                                  "--log-level", "error"})),
      workers_(workers_count) {
  for (std::size_t i = 0; i < workers_count; ++i) proxies_.push_back(std::make_unique<FaultProxy>(seed + i));
  for (std::size_t i = 0; i < workers_count; ++i) start(i);
  auto const made =
      coordinator_->put("/v1/groups/g", R"({"workers":["w0","w1","w2","w3"],"on_failure":"shrink","min_ranks":2})");
  REQUIRE_MESSAGE(made.status == 201, made.body);
}

void FaultFleet::start(std::size_t i) {
  auto const id = "w" + std::to_string(i);
  workers_[i] = std::make_unique<Service>(
      id, std::vector<std::string>{binary("chorus-worker"), "--port", "0", "--coordinator", coordinator_->url, "--id",
                                   id, "--locality", "host=h0", "--shm", "off", "--advertise",
                                   "127.0.0.1:" + std::to_string(proxies_[i]->port()), "--log-level", "error"});
  proxies_[i]->forward_to(workers_[i]->port());
  REQUIRE(workers_[i]->put_tensor("x", "u64", input_of(i)).status == 201);
  REQUIRE(eventually([&] { return workers_[i]->get("/readyz").status == 200; }));
}

void FaultFleet::restart(std::size_t i) {
  workers_[i]->process.wait();
  proxies_[i]->forward_to(0);
  start(i);
}

std::vector<FaultFleet::Held> FaultFleet::look() {
  std::vector<Held> held;
  for (auto const& worker : workers_) {
    auto const version = worker->tensor_version("y");
    held.push_back({version, version == 0 ? Values() : worker->get_tensor<std::uint64_t>("y")});
  }
  return held;
}

void FaultFleet::expect_health() {
  CHECK(coordinator_->get("/readyz").status == 200);
  for (auto const& worker : workers_) CHECK(worker->get("/readyz").status == 200);
}

bool FaultFleet::stands_again() {
  return eventually(
      [&] {
        for (auto const& worker : workers_)
          if (worker->get("/readyz").status != 200) return false;
        auto const group = coordinator_->get("/v1/groups/g").json();
        return group.at("state") == "ready" && group.at("members").as_array().size() == workers_count;
      },
      std::chrono::seconds(30));
}

json::value FaultFleet::run(std::string const& op, bool goes_on) {
  json::object request{{"group", "g"}, {"op", op}, {"timeout_ms", 2500}, {"on_failure", goes_on ? "shrink" : "fail"}};
  if (op != "barrier") {
    request["tensor"] = "x";
    request["output"] = "y";
  }
  return coordinator_->post("/v1/collectives?wait=30s", json::serialize(request)).json();
}

std::string FaultFleet::judge(json::value const& record, std::string const& op, std::vector<Held> const& before,
                              std::size_t restarted) {
  INFO(json::serialize(record).substr(0, 400));
  auto const outcome = outcome_of(record);
  INFO(outcome);
  bool const succeeded = outcome.starts_with("succeeded");
  bool const undecided = outcome.find("in its commit") != std::string::npos;
  auto const members = succeeded || undecided ? members_of(record) : std::vector<std::size_t>();
  auto const now = look();
  for (std::size_t i = 0; i < workers_count; ++i) {
    if (i == restarted) continue;
    INFO("w" << i << " had version " << before[i].version << ", has " << now[i].version);
    auto const place = std::ranges::find(members, i);
    auto const gets = place == members.end() ? std::nullopt
                                             : expected(op, members, static_cast<std::size_t>(place - members.begin()));
    bool const is_old = now[i] == before[i];
    bool const is_new = gets && now[i].version == before[i].version + 1 && now[i].values == *gets;
    CHECK((succeeded && gets ? is_new : undecided && gets ? is_old || is_new : is_old));
  }
  return outcome;
}

}  // namespace chorus::testing
