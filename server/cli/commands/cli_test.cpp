// The built `chorus` as a process: exit codes, requests to the coordinator, output.
#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <fstream>
#include <regex>

#include "collectives/algorithms/catalogue.hpp"
#include "collectives/plan/text/text.hpp"
#include "collectives/topology/dgx1.hpp"
#include "http/api/cluster/membership.hpp"
#include "http/api/collectives/collectives.hpp"
#include "http/api/collectives/groups.hpp"
#include "http/json/json.hpp"
#include "server/cli/testing/test_support.hpp"

using namespace chorus;
using namespace chorus::cli;
namespace json = boost::json;

namespace {

constexpr auto all_workers = "GET /v1/workers?limit=1000";

api::Worker worker(std::string id, std::string state) {
  api::Worker worker;
  worker.id = std::move(id);
  worker.url = "http://127.0.0.1:7071";
  worker.locality = {"eu", "eu-1", "r7", "h3"};
  worker.state = std::move(state);
  worker.heard_ms_ago = 250;
  worker.groups = {"train"};
  return worker;
}

api::Group group(std::string name, std::string state) {
  api::Group group;
  group.name = std::move(name);
  group.epoch = 3;
  group.state = std::move(state);
  group.stretch = {2.5, 1};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    api::Member member;
    member.rank = rank;
    member.worker = "w" + std::to_string(rank);
    member.url = "http://127.0.0.1:7071";
    member.roles = {{"tree", rank == 0 ? "root" : "leaf", {1 - rank}, {1 - rank}}};
    group.members.push_back(member);
  }
  group.selection = {{"all_reduce", 4096, "tree", 0, 2, {}, "few steps"},
                     {"all_reduce", {}, "ring", 0, 2, {}, "few bytes"}};
  return group;
}

api::Collective collective(std::string state) {
  api::Collective collective;
  collective.id = "c7";
  collective.state = std::move(state);
  collective.request.group = "train";
  collective.request.tensor = "grad";
  collective.dtype = "f32";
  collective.shape = {1024, 1024};
  collective.bytes = 4 << 20;
  collective.algorithm = "ring";
  collective.reason = "few bytes";
  collective.seconds = 0.002;
  api::RankRecord record;
  record.worker = "w0";
  record.state = collective.state;
  record.report.emplace().seconds = 0.0019;
  record.report->bytes_sent = 4 << 20;
  collective.ranks = {record};
  return collective;
}

}  // namespace

TEST_CASE("lists are read to their last page, and printed one object per line") {
  FakeCoordinator coordinator;
  coordinator.answer(all_workers, 200, http::encode(api::WorkerList{{worker("w0", "ready")}, "w 0"}));
  coordinator.answer(std::string(all_workers) + "&cursor=w%200", 200,
                     http::encode(api::WorkerList{{worker("w1", "lost")}, {}}));
  auto const lines = lines_of(at(coordinator, {"--json", "workers"}).out);
  REQUIRE(lines.size() == 2);
  CHECK(json::parse(lines[0]).at("id") == "w0");
  CHECK(json::parse(lines[1]).at("state") == "lost");
  CHECK(lines_of(at(coordinator, {"workers"}).out)[1].find("w0      ready  eu/eu-1/r7/h3  250 ms ago  train") == 0);
}

TEST_CASE("the workers' GPUs are listed, with the workers of their host at the other ends of NVLinks") {
  auto const gpus = topology::dgx1_gpus();
  std::vector<api::Worker> workers{worker("a", "ready"), worker("b", "ready"), worker("c", "ready"),
                                   worker("d", "ready")};
  workers[0].gpus = {gpus[0]};
  workers[1].gpus = {gpus[3]};
  workers[2].gpus = {GpuLocality{"GPU-00000000-0000-0000-0000-000000000009", "0000:00:18.0", "another"}};
  workers[2].gpus[0].nvlinks = {{"0000:00:01.0", true, 5, 125}, {"0000:00:02.0", true, 4, 100}};
  workers[2].locality.host = "another";
  FakeCoordinator coordinator;
  coordinator.answer(all_workers, 200, http::encode(api::WorkerList{workers, {}}));
  auto const table = lines_of(at(coordinator, {"workers", "gpus"}).out);
  REQUIRE(table.size() == 4);
  CHECK(table[0] == "WORKER  PCI ADDRESS   NAME                    MEMORY  PCIE   NVLINKS");
  CHECK(table[1] ==
        "a       0000:00:17.0  Tesla V100-SXM2-16GB  898 GB/s  3 x16  "
        "0000:00:18.0 25 GB/s, 0000:00:19.0 25 GB/s, b 50 GB/s, 0000:00:1b.0 50 GB/s");
  CHECK(table[3] == "c       0000:00:18.0  another                      -  -      switches 225 GB/s");
  auto const lines = lines_of(at(coordinator, {"--json", "workers", "gpus"}).out);
  REQUIRE(lines.size() == 3);
  CHECK(json::parse(lines[1]).at("worker") == "b");
  CHECK(json::parse(lines[1]).at("pci_address") == "0000:00:1a.0");
}

TEST_CASE("a worker is removed") {
  FakeCoordinator coordinator;
  coordinator.answer("DELETE /v1/workers/w%200", 204, "");
  auto const removed = at(coordinator, {"workers", "remove", "w 0"});
  CHECK(removed.status == 0);
  CHECK(removed.out == "worker w 0 is out; while its process runs it joins again\n");
  CHECK(at(coordinator, {"--json", "workers", "remove", "w 0"}).out == R"({"removed":"w 0"})"
                                                                       "\n");
  coordinator.answer("DELETE /v1/workers/w1", 404,
                     http::to_json({http::ProblemCode::unknown_worker, "there is no w1"}));
  CHECK(at(coordinator, {"workers", "remove", "w1"}).status == 1);
}

TEST_CASE("a group is shown with ranks, roles and the chosen algorithms by size") {
  FakeCoordinator coordinator;
  coordinator.answer("GET /v1/groups/train", 200, http::encode(group("train", "ready")));
  auto const lines = lines_of(at(coordinator, {"groups", "show", "train"}).out);
  REQUIRE(lines.size() == 9);
  CHECK(lines[0] == "group train, epoch 3: ready, 2 ranks, ring stretch 1.00 (2.50 in the order of arrival)");
  CHECK(lines[3] == "   0  w0      -         http://127.0.0.1:7071  root 1");
  CHECK(lines[7] == "all_reduce  4 KiB  tree arity 2 root 0  few steps");
  CHECK(lines[8] == "all_reduce    any  ring                 few bytes");
}

TEST_CASE("a member of a group is shown alone, with its roles") {
  FakeCoordinator coordinator;
  coordinator.answer("GET /v1/groups/train/members/1", 200, http::encode(group("train", "ready").members[1]));
  auto const lines = lines_of(at(coordinator, {"groups", "show", "train", "--rank", "1"}).out);
  REQUIRE(lines.size() == 2);
  CHECK(lines[1] == "   1  w1      -         http://127.0.0.1:7071  leaf 0");
  CHECK(at(coordinator, {"groups", "show", "train", "--rank", "x"}).status == 2);
}

TEST_CASE("the stretch of a measured group is that over its links") {
  FakeCoordinator coordinator;
  auto measured = group("train", "ready");
  measured.order = "measured";
  coordinator.answer("GET /v1/groups/train", 200, http::encode(measured));
  auto const lines = lines_of(at(coordinator, {"groups", "show", "train"}).out);
  CHECK(lines.at(0) ==
        "group train, epoch 3: ready, 2 ranks, ring stretch 1.00 over measured links (2.50 by locality)");
}

TEST_CASE("groups are created by size or by name, and deleted") {
  FakeCoordinator coordinator;
  coordinator.answer("PUT /v1/groups/train", 201, http::encode(group("train", "ready")));
  coordinator.answer("DELETE /v1/groups/train", 204, "");
  CHECK(at(coordinator, {"groups", "create", "train", "--size", "2"}).status == 0);
  CHECK(json::parse(coordinator.body_of("PUT /v1/groups/train")).at("size") == 2);
  CHECK(at(coordinator, {"groups", "create", "--workers", "w1,w0", "train"}).status == 0);
  CHECK(json::parse(coordinator.body_of("PUT /v1/groups/train")).at("workers") == json::array{"w1", "w0"});
  CHECK_FALSE(json::parse(coordinator.body_of("PUT /v1/groups/train")).as_object().contains("order"));
  CHECK(at(coordinator, {"groups", "create", "train", "--size", "2", "--order", "measured"}).status == 0);
  CHECK(json::parse(coordinator.body_of("PUT /v1/groups/train")).at("order") == "measured");
  CHECK(at(coordinator, {"groups", "create", "train"}).status == 2);
  CHECK(at(coordinator, {"groups", "create", "train", "--size", "2", "--workers", "w0"}).status == 2);
  CHECK(at(coordinator, {"groups", "delete", "train"}).out == "group train is deleted\n");
}

TEST_CASE("run sends the typed request, and shows every rank") {
  FakeCoordinator coordinator;
  constexpr auto question = "PUT /v1/collectives/mine?wait=2000ms";
  coordinator.answer(question, 200, http::encode(collective("succeeded")));
  auto const run = at(coordinator, {"run",      "all_reduce", "--group",     "train", "--tensor",   "grad",
                                    "--reduce", "max",        "--algorithm", "tree",  "--root",     "1",
                                    "--arity",  "4",          "--timeout",   "5m",    "--in-place", "--segment-bytes",
                                    "64K",      "--wait",     "2s",          "--id",  "mine"});
  CHECK(run.status == 0);
  CHECK(run.err == "");
  auto const lines = lines_of(run.out);
  CHECK(lines.at(0) == "all_reduce of grad in train: succeeded in 2 ms, 2.1 GB/s");
  CHECK(lines.back().find("   0  w0      succeeded  1.9 ms") == 0);
  auto const sent = http::decode<api::CollectiveRequest>(coordinator.body_of(question));
  REQUIRE(sent.has_value());
  CHECK(sent->reduce == "max");
  CHECK(sent->algorithm == "tree");
  CHECK(sent->root == 1);
  CHECK(sent->arity == 4);
  CHECK(sent->timeout_ms == 300'000);
  CHECK(sent->in_place);
  CHECK(sent->schedule.segment_bytes == 65536);
}

TEST_CASE("a failed collective is shown with its problem, and the exit code says so") {
  FakeCoordinator coordinator;
  auto failed = collective("failed");
  failed.error = http::Problem(http::ProblemCode::peer_lost, "rank 1 (w1) closed its link");
  coordinator.answer("POST /v1/collectives?wait=600000ms", 200, http::encode(failed));
  std::vector<std::string> const arguments{"run", "all_reduce", "--group", "train", "--tensor", "grad"};
  auto const run = at(coordinator, arguments);
  CHECK(run.status == 1);
  CHECK(run.err.find("rank 1 (w1) closed its link (peer_lost)\n") != std::string::npos);
  auto as_json = arguments;
  as_json.push_back("--json");
  auto const machine = at(coordinator, as_json);
  CHECK(machine.status == 1);
  CHECK(machine.err == "");
  CHECK(json::parse(machine.out).at("error").at("code") == "peer_lost");
}

TEST_CASE("a running collective is a success only without a wait") {
  FakeCoordinator coordinator;
  coordinator.answer("POST /v1/collectives?wait=0ms", 202, http::encode(collective("running")));
  coordinator.answer("POST /v1/collectives?wait=1000ms", 202, http::encode(collective("running")));
  auto planned = collective("planned");
  planned.ranks[0].state = "pending";
  planned.ranks[0].report.reset();
  coordinator.answer("POST /v1/collectives?validate_only=true", 200, http::encode(planned));
  auto const run = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"run", "all_reduce", "--group", "train", "--tensor", "grad"});
    return at(coordinator, more);
  };
  CHECK(run({"--wait", "0s"}).status == 0);
  CHECK(run({"--wait", "1s"}).status == 1);
  CHECK(run({"--wait", "1s"}).err == "still running; ask again: " + coordinator.url + "/v1/collectives/c7\n");
  CHECK(run({"--wait", "1s", "--coordinator", coordinator.url + ",http://127.0.0.1:1"}).err ==
        "still running; ask again: " + coordinator.url + "/v1/collectives/c7\n");
  CHECK(run({"--validate-only"}).status == 0);
  CHECK(lines_of(run({"--validate-only"}).out).back() == "   0  w0      pending");
}

TEST_CASE("problems of the service are printed for people, or unchanged as JSON") {
  FakeCoordinator coordinator;
  http::Problem problem(http::ProblemCode::invalid_field, "the request has 1 wrong field");
  problem.errors = {{"/size", "expected 1..65536, found 70000"}};
  coordinator.answer("PUT /v1/groups/train", 422, http::to_json(problem));
  std::vector<std::string> const arguments{"groups", "create", "train", "--size", "2"};
  auto const run = at(coordinator, arguments);
  CHECK(run.status == 1);
  CHECK(run.out == "");
  CHECK(run.err == "error: " + std::string(http::kind(problem.code).title) +
                       ": the request has 1 wrong field (invalid_field)\n  /size: expected 1..65536, found 70000\n");
  auto as_json = arguments;
  as_json.insert(as_json.begin(), "--json");
  CHECK(at(coordinator, as_json).out == http::to_json(problem) + "\n");
}

TEST_CASE("answers that are neither a problem nor a message are reported, not trusted") {
  FakeCoordinator coordinator;
  coordinator.answer("GET /v1/groups/a", 502, "<html>Bad Gateway</html>");
  coordinator.answer("GET /v1/groups/b", 200, "<html>Welcome</html>");
  CHECK(at(coordinator, {"groups", "show", "a"}).status == 1);
  CHECK(at(coordinator, {"groups", "show", "a"}).err.find("Bad Gateway") != std::string::npos);
  CHECK(at(coordinator, {"groups", "show", "b"}).status == 1);
  CHECK(at(coordinator, {"groups", "show", "b"}).err.find("GET /v1/groups/b is not understood") != std::string::npos);
}

TEST_CASE("without a coordinator the exit code is 3 and the problem has the URL") {
  for (auto const& command : {"status", "workers", "groups"}) {
    auto const run = chorus::cli::chorus({command, "--coordinator", "http://127.0.0.1:1"});
    CHECK(run.status == 3);
    CHECK(run.err.find("cannot reach the coordinator at http://127.0.0.1:1: ") != std::string::npos);
  }
  auto const run = chorus::cli::chorus({"--json", "status"}, {"CHORUS_COORDINATOR=http://127.0.0.1:1"});
  CHECK(run.status == 3);
  CHECK(json::parse(run.out).at("code") == "unavailable");
}

TEST_CASE("a worker that is asked for the coordinator is called one") {
  FakeCoordinator worker;
  auto const nothing = [](std::string const& path) {
    return http::to_json({http::ProblemCode::not_found, "there is nothing at " + path});
  };
  worker.answer("GET /v1/status", 404, nothing("/v1/status"));
  worker.answer("GET /v1/events", 404, nothing("/v1/events"));
  for (auto const* command : {"status", "events"}) {
    worker.answer("GET /v1", 200, R"({"name":"chorus-coordinator"})");
    CHECK(at(worker, {command}).err.find("this is a worker") == std::string::npos);
    worker.answer("GET /v1", 200, R"({"name":"chorus-worker"})");
    auto const run = at(worker, {command});
    CHECK(run.status == 1);
    CHECK(run.err.find("this is a worker, and --coordinator has to name its coordinator") != std::string::npos);
  }
}

TEST_CASE("what is no coordinator is called so, and a coordinator that fails is one") {
  FakeCoordinator other;  // 404 and an empty page, wherever one asks
  for (auto const* command : {"status", "events", "check"}) {
    auto const run = at(other, {command});
    CHECK(run.status == 3);
    CHECK(run.err.find("what answers at " + other.url + " is no coordinator of Chorus: status 404") !=
          std::string::npos);
  }
  other.answer("GET /v1", 200, R"({"name":"chorus-coordinator"})");
  CHECK(at(other, {"status"}).status == 1);
}

TEST_CASE("a wrong command line does nothing, exits with 2 and suggests the right word") {
  struct Case {
    std::vector<std::string> arguments;
    std::string message;
  };
  std::vector<Case> const cases{
      {{"staus"}, "error: unknown command 'staus'; did you mean 'status'?\nsee: chorus --help\n"},
      {{"groups", "sho", "g"}, "error: unknown command 'sho'; did you mean 'show'?\nsee: chorus groups --help\n"},
      {{"run", "all_reduce", "--grup", "g"}, "error: unknown option '--grup'; did you mean '--group'?\n"},
      {{"run", "all_reduce", "--jsno"}, "error: unknown option '--jsno'; did you mean '--json'?\n"},
      {{"status", "now"}, "error: unexpected argument 'now'\n"},
      {{"run", "all_reduc", "--group", "g", "--tensor", "t"}, "did you mean 'all_reduce'?"},
      {{"run", "all_reduce", "--group", "g", "--tensor", "t", "--reduce", "summ"}, "did you mean 'sum'?"},
      {{"run", "all_reduce", "--group", "g"}, "--tensor is required"},
      {{"run", "all_reduce", "--group", "g", "--tensor", "t", "--wait", "30"}, "'30' is not a duration"},
      {{"run", "all_reduce", "--group", "g", "--tensor", "t", "--arity", "0"}, "'0' is not a whole number from 1"},
      {{"groups", "create", "g", "--size", "-4"}, "'-4' is not a whole number from 1"},
      {{"groups", "create", "g", "--workers", "w0,"}, "--workers: 'w0,' is a list with an empty part"},
      {{"run", "all_reduce", "--counts", "-1,3"}, "--counts: '-1' is not a whole number from 0"},
      {{"run", "all_reduce", "--counts", "1,a"}, "--counts: 'a' is not a whole number from 0"},
      {{"run", "all_reduce", "--counts", "1,"}, "--counts: '1,' is a list with an empty part"},
      {{"run", "all_reduce", "--algorithm-shape", "-1,2"}, "--algorithm-shape: '-1' is not a whole number from 0"},
      {{"run", "all_reduce", "--compression", "auto", "--allow", "bf16,f17"}, "'f17'; did you mean 'f16'?"},
      {{"run", "all_reduce", "--group", "g", "--group", "h"}, "error: --group is given 2 times, expected once\n"},
      {{"run", "all_reduce", "--group"}, "error: --group needs a value\n"},
      {{"status", "--json=x"}, "error: --json: 'x' is not a valid value\n"},
      {{"plan", "--ranks", "4", "--constants", "/tmp"}, "--constants: cannot read /tmp: Is a directory\n"},
      {{"plan", "--links", "/tmp"}, "--links: cannot read /tmp: Is a directory\n"},
      {{"events", "--count", "x"}, "--count: 'x' is not a whole number from 0"},
      {{"verify", "--ranks", "3,,4"}, "--ranks: '3,,4' is a list with an empty part"},
      {{"--tls-cert", "w0.pem", "status"}, "--tls-cert requires --tls-key"},
      {{"--tls-key", "w0.key", "status"}, "--tls-key requires --tls-cert"},
      {{"plan", "--ranks", "4", "--bytes", "1MB"}, "'1MB' is not a size"},
      {{"plan", "--bytes", "1M"}, "error: plan takes either --group, or --ranks, --locality, --topology or --links\n"},
      {{"plan", "--ranks", "4", "--bytes", "1M", "--text"}, "error: --text and --rank go together\n"},
      {{"verify", "--max-ranks", "257"}, "'257' is not a whole number from 1 to 256"},
      {{"--coordinator", "nonsense", "status"}, "--coordinator"},
      {{}, "Usage: chorus"},
  };
  for (auto const& [arguments, message] : cases) {
    auto const run = chorus::cli::chorus(arguments);
    CAPTURE(run.err);
    CHECK(run.status == 2);
    CHECK(run.out == "");
    CHECK(run.err.find(message) != std::string::npos);
  }
}

TEST_CASE("help is no error") {
  for (std::vector<std::string> const& arguments : {std::vector<std::string>{"--help"}, {"run", "--help"}}) {
    auto const run = chorus::cli::chorus(arguments);
    CHECK(run.status == 0);
    CHECK(run.err == "");
    CHECK(run.out.find("Usage: chorus") != std::string::npos);
  }
}

TEST_CASE("docs/reference/cli has every command and every option") {
  std::string page;
  for (std::string const name : {"chorus", "chorus_diagnosis", "chorus_planning", "chorus-bench"}) {
    std::ifstream file(CHORUS_SOURCE_DIR "/docs/reference/cli/" + name + ".md");
    page.append(std::istreambuf_iterator<char>(file), {});
  }
  std::regex const option("--[a-z-]+"), command("\n  ([a-z]+) ");
  std::vector<std::vector<std::string>> open{{}};
  for (std::size_t i = 0; i < open.size(); ++i) {
    if (open[i] == std::vector<std::string>{"bench"}) continue;  // has no help of its own
    auto arguments = open[i];
    arguments.push_back("--help");
    auto const help = chorus::cli::chorus(arguments).out;
    for (std::sregex_iterator hit(help.begin(), help.end(), option), end; hit != end; ++hit) {
      CAPTURE(hit->str());
      CHECK(page.find("`" + hit->str()) != std::string::npos);
    }
    for (std::sregex_iterator hit(help.begin(), help.end(), command), end; hit != end; ++hit) {
      auto words = open[i];
      words.push_back(hit->str(1));
      CAPTURE(hit->str(1));
      CHECK(page.find(words.size() == 1 ? "\n## " + words[0] + "\n" : "`" + words[0] + " " + words[1]) !=
            std::string::npos);
      open.push_back(std::move(words));
    }
  }
  CHECK(open.size() == 35);
}

TEST_CASE("a plan for an existing group comes from the coordinator, and the text is made for its ranks") {
  FakeCoordinator coordinator;
  api::PlanAnswer answer;
  answer.algorithm = "ring";
  coordinator.answer("POST /v1/plans", 200, http::encode(answer));
  coordinator.answer("GET /v1/groups/train", 200, http::encode(group("train", "ready")));
  auto const run = at(coordinator, {"plan", "--group", "train", "--bytes", "4", "--text", "--rank", "1"});
  CHECK(run.out == plan::to_text(plan::build(algorithms::ring, {.algorithm = "ring", .ranks = 2}, 1).value()));
  CHECK(json::parse(coordinator.body_of("POST /v1/plans")).at("group") == "train");
}
