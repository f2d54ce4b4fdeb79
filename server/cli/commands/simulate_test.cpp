// The commands simulate, algorithms and crossover as processes: they need no coordinator.
#include <doctest/doctest.h>

#include <algorithm>
#include <boost/json.hpp>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "collectives/algorithms/catalogue.hpp"
#include "server/cli/testing/test_support.hpp"

using namespace chorus;
using namespace chorus::cli;
namespace json = boost::json;

namespace {

std::vector<json::value> json_lines(Run const& run) {
  CHECK(run.status == 0);
  CHECK(run.err.empty());
  std::vector<json::value> lines;
  std::istringstream in(run.out);
  for (std::string line; std::getline(in, line);) lines.push_back(json::parse(line));
  return lines;
}

std::string content(std::filesystem::path const& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// A directory that is removed with its content.
struct Directory {
  Directory() : path(std::filesystem::temp_directory_path() / ("chorus-pages-" + std::to_string(getpid()))) {
    std::filesystem::create_directories(path);
  }
  ~Directory() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
};

}  // namespace

TEST_CASE("simulate prints one object per line with the fields of its interface") {
  auto const lines = json_lines(chorus::cli::chorus({"simulate", "--op", "all_reduce", "--ranks", "8", "--bytes", "1M",
                                                     "--algorithm", "ring", "--topology", "hosts:2x4", "--json"}));
  REQUIRE(lines.size() == 1);
  CHECK(lines[0].at("algorithm") == "ring");
  CHECK(lines[0].at("rounds") == 14);
  CHECK(lines[0].at("bytes_per_rank") == (1 << 20) * 2 * 7 / 8);
  CHECK(lines[0].at("seconds").as_double() > 0);
  CHECK(lines[0].at("bottleneck").is_string());
}

TEST_CASE("simulate shows every algorithm, the fastest first") {
  auto const lines = json_lines(chorus::cli::chorus({"--json", "simulate", "--ranks", "4", "--bytes", "4K"}));
  auto const all = algorithms::all_for(Op::all_reduce);
  // Those that are for codes between groups are shown by name.
  auto const shown = std::ranges::count_if(all, [](auto const* one) { return one->coded_from == nullptr; });
  CHECK(lines.size() == static_cast<std::size_t>(shown));
  for (std::size_t i = 1; i < lines.size(); ++i)
    CHECK(lines[i - 1].at("seconds").as_double() <= lines[i].at("seconds").as_double());
  auto const table = chorus::cli::chorus({"simulate", "--ranks", "4", "--bytes", "4K", "--op", "barrier", "--table"});
  CHECK(table.out.starts_with("barrier of 4 KiB over 4 ranks, flat:4; the least is 2 rounds"));
  CHECK(table.out.find("dissemination") != std::string::npos);
}

TEST_CASE("simulate reports a mistake and the possible values") {
  auto const refused = [](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"simulate", "--bytes", "4K"});
    auto const run = chorus::cli::chorus(arguments);
    CHECK(run.status == 2);
    CHECK(run.out.empty());
    return run.err;
  };
  CHECK(refused({}).find("hosts:4x8") != std::string::npos);
  CHECK(refused({"--topology", "hosts:4"}).find("hosts:HxW") != std::string::npos);
  CHECK(refused({"--topology", "hosts:2x4", "--ranks", "9"}).find("8 workers") != std::string::npos);
  CHECK(refused({"--ranks", "8", "--op", "gather", "--algorithm", "ring"}).find("binomial") != std::string::npos);
  CHECK(refused({"--ranks", "8", "--root", "8"}).find("group of 8") != std::string::npos);
  CHECK(refused({"--ranks", "0"}).find("--ranks") != std::string::npos);
  CHECK(refused({"--ranks", "6", "--algorithm", "torus_2d", "--algorithm-shape", "4,2"}).find("2,3") !=
        std::string::npos);
}

TEST_CASE("algorithms lists all algorithms") {
  auto const lines = json_lines(chorus::cli::chorus({"algorithms", "--op", "all_reduce", "--json"}));
  REQUIRE(lines.size() == algorithms::all_for(Op::all_reduce).size());
  CHECK(lines[0].at("op") == "all_reduce");
  CHECK_FALSE(lines[0].at("summary").as_string().empty());
  auto const all = chorus::cli::chorus({"algorithms"});
  for (auto const* algorithm : algorithms::all())
    CHECK(all.out.find(" " + std::string(algorithm->name) + " ") != std::string::npos);
}

TEST_CASE("pages and pictures equal the committed ones") {
  auto const docs = std::filesystem::path(CHORUS_SOURCE_DIR) / "docs/reference";
  bool const same_page = chorus::cli::chorus({"algorithms", "--markdown"}).out == content(docs / "algorithms.md");
  CHECK(same_page);
  Directory const directory;
  CHECK(chorus::cli::chorus({"algorithms", "--pictures", (directory.path / "new").string()}).status == 0);
  for (auto const* algorithm : algorithms::all()) {
    auto const file = std::string(algorithm->name) + ".svg";
    bool const same_picture = content(directory.path / "new" / file) == content(docs / "algorithms" / file);
    CHECK(same_picture);
  }
  auto const nowhere = (directory.path / "none" / "plot.svg").string();
  CHECK(chorus::cli::chorus({"crossover", "--max-ranks", "2", "--svg", nowhere}).status == 2);
}

TEST_CASE("crossover prints every point's winner, or draws them") {
  auto const lines = json_lines(chorus::cli::chorus({"crossover", "--max-ranks", "4", "--json"}));
  REQUIRE(lines.size() == 2 * 15);
  CHECK(lines[0].at("ranks") == 2);
  CHECK(lines[0].at("bytes") == 4);
  CHECK(lines[0].at("seconds").as_double() <= lines[0].at("second_seconds").as_double());
  Directory const directory;
  auto const file = (directory.path / "plot.svg").string();
  CHECK(chorus::cli::chorus({"crossover", "--topology", "hosts:2", "--max-ranks", "4", "--svg", file}).status == 0);
  CHECK(content(file).starts_with("<svg "));
  auto const link = directory.path / "stdout";
  std::filesystem::create_symlink("/dev/stdout", link);
  CHECK(chorus::cli::chorus({"crossover", "--max-ranks", "2", "--svg", link}).status == 2);
  CHECK(std::filesystem::is_symlink(link));
  CHECK(chorus::cli::chorus({"crossover", "--topology", "rings"}).err.find("hosts:W") != std::string::npos);
  CHECK(chorus::cli::chorus({"crossover", "--topology", "hosts:64", "--max-ranks", "8"}).status == 2);
}

TEST_CASE(
    "links from a file order the ranks, for plan as for simulate; bad links are refused with the possible values") {
  Directory const directory;
  auto const file = directory.path / "links.json";
  // Two pairs, 0 with 2 and 1 with 3, with slow links between them.
  std::ofstream(file) << R"({"bandwidth_gbyte_per_s":[[null,1,50,1],[1,null,1,50],[50,1,null,1],[1,50,1,null]],)"
                      << R"("latency_us":[[null,9,1,9],[9,null,9,1],[1,9,null,9],[9,1,9,null]]})";
  std::vector<std::string> const links{"--links", file.string(), "--bytes", "1M", "--algorithm", "ring"};
  auto const with = [&](std::vector<std::string> words) {
    words.insert(words.end(), links.begin(), links.end());
    return chorus::cli::chorus(words);
  };
  auto const simulated = json_lines(with({"simulate", "--json"}));
  REQUIRE(simulated.size() == 1);
  CHECK(simulated[0].at("order") == json::parse("[0,2,3,1]"));
  CHECK(simulated[0].at("stretch").at("assigned").to_number<double>() <
        simulated[0].at("stretch").at("arrival_order").to_number<double>());
  auto const planned = with({"plan"});
  CHECK(planned.status == 0);
  CHECK(planned.out.find("order        0 2 3 1, average stretch ") != std::string::npos);
  std::ofstream(file) << R"({"bandwidth_gbyte_per_s":[[null,"NaN"],[1,null]],"latency_us":[[null,1],[1,null]]})";
  auto const text = with({"plan"});
  CHECK(text.status == 2);
  CHECK(text.err.find("/bandwidth_gbyte_per_s/0/1: expected a number, found \"NaN\"") != std::string::npos);
  std::ofstream(file) << R"({"bandwidth_gbyte_per_s":[[null,null],[1,null]],"latency_us":[[null,1],[1,null]]})";
  CHECK(with({"simulate"}).err.find("bandwidth of link (0, 1) is missing; expected") != std::string::npos);
}

TEST_CASE("a group on paper may have a topology") {
  auto const run = chorus::cli::chorus({"plan", "--topology", "hosts:2x4", "--bytes", "1M", "--json"});
  REQUIRE(run.status == 0);
  CHECK(json::parse(run.out).at("considered").as_array().size() > 10);
  CHECK(chorus::cli::chorus({"plan", "--topology", "hosts:2x4", "--ranks", "9", "--bytes", "1M"}).status == 2);
}
