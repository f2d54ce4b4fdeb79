// The `chorus` command against live services.
#include <doctest/doctest.h>
#include <signal.h>

#include <sstream>

#include "tests/support/fleets/cluster.hpp"
#include "tests/support/scratch_directory.hpp"
#include "tests/support/terminal.hpp"

using namespace chorus::testing;
namespace json = boost::json;

namespace {

struct Run {
  int status;
  std::string output;
  [[nodiscard]] json::value last_line() const {
    std::istringstream lines(output);
    std::string line, last;
    while (std::getline(lines, line))
      if (!line.empty()) last = line;
    return json::parse(last);
  }
};

Run call(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), binary("chorus"));
  Process process(std::move(arguments));
  auto output = process.read_all();
  return {process.wait(), std::move(output)};
}

// True if the loader finds the libraries of PROGRAM under LIMIT.
bool loads(std::string const& limit, std::string const& program) {
  Process process({"/bin/sh", "-c", "exec >/dev/null 2>&1; " + limit + "exec " + binary(program) + " --version"});
  return process.wait() != 127;
}

}  // namespace

TEST_CASE("status, workers, groups and run print JSON lines about a live cluster") {
  Cluster cluster(3);
  cluster.make_group("g");
  for (std::size_t i = 0; i < 3; ++i) cluster.worker(i).put_tensor("x", "f32", std::vector<float>(1000, 1));
  auto const at = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"--coordinator", cluster.coordinator.url});
    return call(std::move(arguments));
  };
  CHECK(at({"status", "--json"}).last_line().is_object());
  CHECK(at({"workers", "--json"}).last_line().at("state") == "ready");
  CHECK(at({"groups", "--json"}).last_line().at("name") == "g");
  auto const run = at({"run", "all_reduce", "--group", "g", "--tensor", "x", "--json"});
  CHECK(run.status == 0);
  CHECK(run.last_line().at("state") == "succeeded");
  auto const table = at({"run", "all_reduce", "--group", "g", "--tensor", "x"});
  CHECK(table.output.find("succeeded") != std::string::npos);
  CHECK(at({"run", "all_reduce", "--group", "nobody", "--tensor", "x"}).status == 1);
  CHECK(cluster.worker(1).get_tensor<float>("x") == std::vector<float>(1000, 9));
}

TEST_CASE("check compares every rank's bits with the expected ones, and leaves no tensor behind") {
  Cluster cluster(3);
  auto const check = [&](std::string const& ranks) {
    return call({"check", "--ranks", ranks, "--json", "--coordinator", cluster.coordinator.url});
  };
  auto const run = check("3");
  CHECK(run.status == 0);
  CHECK(run.output == "{\"ranks\":3,\"elements\":1000,\"correct\":true}\n");
  CHECK(cluster.coordinator.get("/v1/groups").json().at("items").as_array().empty());
  CHECK(cluster.worker(0).get("/v1/tensors").json().at("items").as_array().empty());
  auto const too_many = check("4");
  CHECK(too_many.status == 1);
  CHECK(too_many.last_line().at("code") == "not_enough_workers");
}

TEST_CASE("plan and verify need no cluster") {
  auto const verify = call({"verify", "--max-ranks", "9", "--json"});
  CHECK(verify.status == 0);
  CHECK(verify.last_line().at("failed").to_number<int>() == 0);
  CHECK(verify.last_line().at("max_ranks").to_number<int>() == 9);
  CHECK(verify.last_line().at("plans").to_number<int>() > 100);
  auto const plan = call({"plan", "--ranks", "4", "--op", "all_reduce", "--bytes", "64M", "--json"});
  CHECK(plan.status == 0);
  CHECK(plan.last_line().at("verified").as_bool());
}

TEST_CASE("bench starts real ranks, checks the data and prints one line per size") {
  auto const bench = call({"bench", "--op", "all_reduce", "--ranks", "2", "--link", "tcp", "--bytes", "4,64K",
                           "--algorithm", "ring", "--dtype", "f32", "--json"});
  CHECK(bench.status == 0);
  auto const line = bench.last_line();
  for (auto const* member : {"op", "algorithm", "link", "ranks", "bytes", "dtype", "iterations", "p50_us", "p99_us",
                             "algbw_GBps", "busbw_GBps", "correct"})
    CHECK(line.as_object().contains(member));
  CHECK(line.at("correct").as_bool());
  CHECK(line.at("bytes").to_number<int>() == 65536);
}

TEST_CASE("bench says which certificate its ranks cannot use") {
  Process bench(
      {"/bin/sh", "-c", "exec 2>&1 " + binary("chorus-bench") + " --link tls --tls-cert /none --tls-key /none"});
  auto const said = bench.read_all();
  CAPTURE(said);
  CHECK(bench.wait() == 1);
  CHECK(said.find("the certificate /none cannot be read: No such file or directory") != std::string::npos);
  CHECK(said.find("terminate") == std::string::npos);
}

TEST_CASE("long commands show progress and a table on a terminal, and JSON lines in a pipe") {
  struct Long {
    std::vector<std::string> arguments;
    std::string progress, table, member;
  };
  std::vector<Long> const all{
      {{"verify", "--max-ranks", "32"}, "plans, 0 failed", "are correct", "plans"},
      {{"simulate", "--ranks", "256", "--bytes", "1M"}, "simulated", "BOTTLENECK", "bytes_per_rank"},
      {{"bench", "--ranks", "2", "--link", "tcp", "--bytes", "4,64K", "--seconds", "0.5"},
       "1 of 2: all_reduce",
       "busbw",
       "busbw_GBps"}};
  for (auto const& one : all) {
    INFO(one.arguments.front());
    auto arguments = one.arguments;
    arguments.insert(arguments.begin(), binary("chorus"));
    Terminal terminal(arguments, 120, 60);
    CHECK(terminal.shows(one.progress));
    CHECK(terminal.shows(one.table));
    CHECK(terminal.wait() == 0);
    CHECK(call(one.arguments).last_line().as_object().contains(one.member));
  }
}

TEST_CASE("mistyped arguments end with exit status 2, and an unreachable coordinator with 3") {
  CHECK(call({"staus"}).status == 2);
  CHECK(call({"run", "all_reduce", "--grup", "g"}).status == 2);
  CHECK(call({"--coordinator", "http://127.0.0.1:1", "status"}).status == 3);
}

TEST_CASE("each program prints its build as text and as JSON") {
  for (std::string const name : {"chorus", "chorus-bench", "chorus-coordinator", "chorus-worker"}) {
    CAPTURE(name);
    auto const answer = [&](std::vector<std::string> arguments) {
      arguments.insert(arguments.begin(), binary(name));
      Process process(std::move(arguments));
      auto output = process.read_all();
      return Run{process.wait(), std::move(output)};
    };
    auto const fields = answer({"--version", "--json"});
    CHECK(fields.status == 0);
    auto const build = fields.last_line();
    CHECK(build.at("program").as_string() == name);
    auto const line = answer({"--version"});
    CHECK(line.status == 0);
    CHECK(line.output.starts_with(name + " "));
    for (auto const* field : {"version", "commit", "compiler", "boost", "cuda", "tls", "plan_generator"}) {
      CAPTURE(field);
      auto const value = std::string(build.at(field).as_string());
      CHECK_FALSE(value.empty());
      CHECK(line.output.find(value) != std::string::npos);
    }
  }
}

TEST_CASE("a coordinator says that it does not use --advertise without --etcd") {
  ScratchDirectory const scratch;
  auto const errors = scratch / "errors";
  auto const program = binary("chorus-coordinator") + " --port 0 --advertise coordinator:7070";
  Process process({"/bin/sh", "-c", "exec 2>" + errors + "; exec " + program});
  CHECK(process.read_line().starts_with("listening on "));
  CHECK(content_of(errors).find("--advertise is not used without --etcd") != std::string::npos);
  process.signal(SIGTERM);
  CHECK(process.wait() == 0);
}

TEST_CASE("a service that cannot start with its arguments says why, and ends with 1 or 2") {
  struct Start {
    std::string limit, arguments;
    int status;
    std::string said;
  };
  ScratchDirectory const scratch;
  for (std::string const program : {"chorus-coordinator", "chorus-worker"}) {
    std::vector<Start> starts;
    for (auto const* host : {"''", "'http://0.0.0.0'", "'my host'"})
      starts.push_back({"", "--host " + std::string(host), 2, "is neither an address nor a name"});
    starts.push_back({"", "--host no-such-host.invalid", 1, "no-such-host.invalid:70"});
    starts.push_back({"", "--port 0 --token-file /no/such/file", 1, "/no/such/file: No such file or directory"});
    starts.push_back({"", "--port 0 --auth-tokens /tmp", 1, "/tmp: Is a directory"});
    starts.push_back({"", "--port 0 --port 0", 2, "--port is given 2 times, expected once\nRun with --help"});
    starts.push_back({"", "--port", 2, "--port needs a value\n"});
    starts.push_back({"", "--port 65536", 2, "--port: '65536' is not a valid value\n"});
    // How few descriptors are too few depends on the system: with some number here the program starts, and ends when
    // told to. With fewer the loader finds no libraries, which depends on the descriptors of the shell.
    auto const with_files = [](int files) { return "ulimit -n " + std::to_string(files) + "; "; };
    int least = 3;
    while (least < 16 && !loads(with_files(least), program)) ++least;
    for (int files = least; files < least + 20; ++files)
      starts.push_back({with_files(files), "--port 0", 1, "Too many open files"});
    for (auto const& [limit, arguments, status, said] : starts) {
      CAPTURE(limit);
      CAPTURE(arguments);
      auto const errors = scratch / "errors";
      auto const command = "exec 2>" + errors + "; " + limit + "exec " + binary(program) + " " + arguments;
      Process process({"/bin/sh", "-c", command});
      try {
        auto const line = process.read_line();
        REQUIRE(!limit.empty());
        CHECK(line.starts_with("listening on "));
        process.signal(SIGTERM);
        auto const ended = process.wait();
        CHECK((ended == 0 || ended == 1));
      } catch (std::runtime_error const&) {
        CHECK(process.wait() == status);
        auto const text = content_of(errors);
        CHECK_MESSAGE(text.find(said) != std::string::npos, text);
      }
    }
  }
}
