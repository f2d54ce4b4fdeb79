#include "tests/e2e/fault_fleet.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace chorus::testing {
namespace {

namespace json = boost::json;
using Values = std::vector<std::uint64_t>;

// Each worker has a separate byte in every element, so that a sum tells exactly which workers took part.
Values input_of(std::size_t worker, std::size_t elements) {
  Values values(elements);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = (i % 251 + 1) << (8 * worker);
  return values;
}

Values sum_of(std::vector<std::size_t> const& members, std::size_t elements) {
  Values sum(elements);
  for (auto const member : members) {
    auto const values = input_of(member, elements);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += values[i];
  }
  return sum;
}

// Number of elements of each rank in one vector: evenly, with one more for the first ranks; or unevenly, and then also
// depending on the sending rank.
std::vector<std::size_t> split(std::size_t elements, Work const& work, std::size_t ranks, std::size_t from) {
  std::vector<std::size_t> counts(ranks);
  for (std::size_t r = 0; r < ranks; ++r) counts[r] = elements / ranks + (r < elements % ranks ? 1 : 0);
  if (!work.is_uneven) return counts;
  counts[ranks - 1] += std::exchange(counts[0], 0);
  counts[1] += counts[ranks - 1] - 7;
  counts[ranks - 1] = 7;
  std::rotate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(from % ranks), counts.end());
  return counts;
}

Values share_of(Values const& values, Work const& work, std::size_t rank, std::size_t ranks, std::size_t from = 0) {
  auto const counts = split(values.size(), work, ranks, from);
  auto const begin =
      std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(rank), std::size_t{0});
  auto const first = values.begin() + static_cast<std::ptrdiff_t>(begin);
  return {first, first + static_cast<std::ptrdiff_t>(counts[rank])};
}

// The expected result of a rank; empty if the operation leaves its tensor unchanged. The root is rank 0.
std::optional<Values> expected(std::size_t elements, Work const& work, std::vector<std::size_t> const& members,
                               std::size_t rank) {
  auto const& op = work.op;
  if (op == "barrier") return std::nullopt;
  if ((op == "reduce" || op == "gather") && rank != 0) return std::nullopt;
  if (op == "all_reduce" || op == "reduce") return sum_of(members, elements);
  if (op == "broadcast") return input_of(members[0], elements);
  if (op == "reduce_scatter") return share_of(sum_of(members, elements), work, rank, members.size());
  if (op == "scatter") return share_of(input_of(members[0], elements), work, rank, members.size());
  Values all;
  for (std::size_t from = 0; from < members.size(); ++from) {
    auto const values = input_of(members[from], elements);
    auto const part = op == "all_to_all" ? share_of(values, work, rank, members.size(), from) : values;
    all.insert(all.end(), part.begin(), part.end());
  }
  return all;
}

// Returns the workers in rank order.
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

FaultFleet::FaultFleet(Setup setup)
    : setup_(std::move(setup)),
      coordinator_(std::make_unique<Service>(
          "coordinator", std::vector<std::string>{binary("chorus-coordinator"), "--port", "0", "--lease-ms", "1000",
                                                  "--log-level", "error"})),
      workers_(workers_count) {
  for (std::size_t i = 0; i < workers_count; ++i) {
    proxies_.push_back(std::make_unique<FaultProxy>(setup_.seed + i));
    if (!setup_.hanging_disk_library.empty())
      disks_.push_back(std::make_unique<HangingDisk>(logs_ / ("w" + std::to_string(i)), setup_.hanging_disk_library));
    if (setup_.has_small_disks) small_disks_.push_back(std::make_unique<SmallDisk>());
  }
  for (std::size_t i = 0; i < workers_count; ++i) start(i);
  auto const made =
      coordinator_->put("/v1/groups/g", R"({"workers":["w0","w1","w2","w3"],"on_failure":"shrink","min_ranks":2})");
  REQUIRE_MESSAGE(made.status == 201, made.body);
}

void FaultFleet::start(std::size_t i) {
  auto const id = "w" + std::to_string(i);
  std::vector<std::string> arguments{binary("chorus-worker"),
                                     "--port",
                                     "0",
                                     "--coordinator",
                                     coordinator_->url,
                                     "--id",
                                     id,
                                     "--locality",
                                     "host=h0",
                                     "--shm",
                                     "off",
                                     "--link-checksum",
                                     "on",
                                     "--advertise",
                                     "127.0.0.1:" + std::to_string(proxies_[i]->port()),
                                     "--log-level",
                                     "error"};
  if (!small_disks_.empty())
    arguments.insert(arguments.end(), {"--log-directory", small_disks_[i]->path(), "--log-snapshot-bytes", "1048576"});
  if (!disks_.empty()) {
    auto const directory = logs_ / id;
    std::filesystem::create_directory(directory);
    arguments.insert(arguments.end(), {"--log-directory", directory});
    arguments = disks_[i]->under(std::move(arguments));
  }
  workers_[i] = std::make_unique<Service>(id, std::move(arguments));
  proxies_[i]->forward_to(workers_[i]->port());
  REQUIRE(workers_[i]->put_tensor("x", "u64", input_of(i, setup_.elements)).status == 201);
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

json::value FaultFleet::run(Work const& work, bool goes_on) {
  json::object request{
      {"group", "g"}, {"op", work.op}, {"algorithm", work.algorithm}, {"timeout_ms", setup_.timeout_ms}};
  request["on_failure"] = goes_on ? "shrink" : "fail";
  if (work.is_uneven) {
    json::array counts;
    for (std::size_t from = 0; from < (work.op == "all_to_all" ? workers_count : 1); ++from)
      for (auto const count : split(setup_.elements, work, workers_count, from)) counts.emplace_back(count);
    request["counts"] = std::move(counts);
  }
  if (work.op != "barrier") {
    request["tensor"] = "x";
    request["output"] = "y";
  }
  return coordinator_->post("/v1/collectives?wait=30s", json::serialize(request)).json();
}

std::string FaultFleet::judge(json::value const& record, Work const& work, std::vector<Held> const& before,
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
    auto const gets = place == members.end()
                          ? std::nullopt
                          : expected(setup_.elements, work, members, static_cast<std::size_t>(place - members.begin()));
    bool const is_old = now[i] == before[i];
    bool const is_new = gets && now[i].version == before[i].version + 1 && now[i].values == *gets;
    CHECK((succeeded && gets ? is_new : undecided && gets ? is_old || is_new : is_old));
  }
  return outcome;
}

double FaultFleet::corruptions_found() {
  double found = 0;
  for (auto const& worker : workers_)
    for (std::size_t peer = 0; peer < workers_count; ++peer)
      found += std::max(
          0.0, worker->metric(R"(chorus_link_errors_total{peer="w)" + std::to_string(peer) + R"(",kind="corrupt"})"));
  return found;
}

}  // namespace chorus::testing
