// Settings of optimizers and initializers: refusals, their texts, and the page that is printed from the table.
#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "http/api/parameters/optimizers.hpp"
#include "http/json/json.hpp"

using namespace chorus;
using namespace chorus::http;

namespace {

FieldError only_error(Checked<api::OptimizerSettings> const& checked) {
  REQUIRE(checked.has_error());
  CHECK(checked.error().code == ProblemCode::invalid_field);
  REQUIRE(checked.error().errors.size() == 1);
  return checked.error().errors[0];
}

// Place of the text between two marks in docs/reference/optimizers.md.
struct Part {
  std::size_t begin, size;
};
Part find_part(std::string const& page, std::string const& mark) {
  auto const opening = "<!-- " + mark + " -->\n";
  auto const begin = page.find(opening), end = page.find("<!-- end -->", begin);
  REQUIRE(begin != std::string::npos);
  REQUIRE(end != std::string::npos);
  return {begin + opening.size(), end - begin - opening.size()};
}

void replace(std::string& page, std::string const& mark, std::string const& by) {
  auto const part = find_part(page, mark);
  page.replace(part.begin, part.size, by);
}

std::string between(std::string const& page, std::string const& mark) {
  auto const part = find_part(page, mark);
  return page.substr(part.begin, part.size);
}

}  // namespace

TEST_CASE("an absent setting gets the default of its optimizer") {
  auto const adam = api::parse_optimizer(R"({"name":"adam","beta1":0.8})").value();
  CHECK(encode(adam) ==
        R"({"name":"adam","learning_rate":0.001,"beta1":0.8,"beta2":0.999,"epsilon":1e-08,"weight_decay":0})");
  CHECK(api::parse_optimizer(encode(adam)).value() == adam);
  CHECK(encode(api::parse_optimizer(R"({"name":"none"})").value()) == R"({"name":"none"})");
  CHECK(*api::parse_optimizer(R"({"name":"adamw"})").value().weight_decay == 0.01);
  for (auto const& method : api::optimizers()) {
    auto const settings = api::parse_optimizer(R"({"name":")" + std::string(method.name) + "\"}").value();
    for (auto const& rule : method.settings) CHECK(settings.*rule.member == rule.fallback);
  }
}

TEST_CASE("the refusal of an unknown optimizer lists the known ones") {
  auto const error = only_error(api::parse_optimizer(R"({"name":"adan"})"));
  CHECK(error.pointer == "/name");
  CHECK(error.detail == "unknown optimizer 'adan'; did you mean 'adam'?");
  CHECK(only_error(api::parse_optimizer(R"({"name":"import os"})")).pointer == "/name");
  CHECK(only_error(api::parse_optimizer("{}")).pointer == "/name");
}

TEST_CASE("a setting that no optimizer has, or that this one does not have, is refused") {
  CHECK(only_error(api::parse_optimizer(R"({"name":"sgd","learning_rat":1})")) ==
        FieldError{"/learning_rat", R"(unknown field; did you mean "learning_rate"?)"});
  CHECK(only_error(api::parse_optimizer(R"({"name":"sgd","beta1":0.5})")) ==
        FieldError{"/beta1", "sgd does not have this; it has learning_rate, weight_decay, clip_norm, clip_value"});
  CHECK(only_error(api::parse_optimizer(R"({"name":"none","learning_rate":1})")) ==
        FieldError{"/learning_rate", "none does not have this; it has no settings"});
  CHECK(only_error(api::parse_optimizer(R"({"name":"sgd","learning_rate":"1"})")).pointer == "/learning_rate");
}

TEST_CASE("a value out of range is refused, and so is an excluded end of the range") {
  CHECK(only_error(api::parse_optimizer(R"({"name":"momentum","momentum":1})")) ==
        FieldError{"/momentum", "expected a number from 0 to 1 (excluded), found 1"});
  CHECK(api::parse_optimizer(R"({"name":"momentum","momentum":0})").has_value());
  for (auto const* wrong : {R"("learning_rate":-0.1)", R"("beta2":1)", R"("epsilon":0)", R"("weight_decay":2)",
                            R"("clip_norm":0)", R"("clip_value":-1)", R"("clip_value":1e39)"})
    CHECK(only_error(api::parse_optimizer(R"({"name":"adam",)" + std::string(wrong) + "}"))
              .detail.starts_with("expected a number from "));
}

TEST_CASE("the problem lists every mistake with its place in the request") {
  api::OptimizerSettings settings;
  settings.name = "sgd";
  settings.learning_rate = -1;
  settings.momentum = 0.9;
  auto const problem = complete(settings, "/optimizer");
  REQUIRE(problem.has_error());
  REQUIRE(problem.error().errors.size() == 2);
  CHECK(problem.error().errors[0].pointer == "/optimizer/learning_rate");
  CHECK(problem.error().errors[1].pointer == "/optimizer/momentum");
}

TEST_CASE("settings of initializers are checked as those of optimizers") {
  CHECK(encode(api::parse_initializer(R"({"name":"uniform","low":0})").value()) ==
        R"({"name":"uniform","low":0,"high":0.05,"seed":0})");
  CHECK(encode(api::parse_initializer(R"({"name":"zeros"})").value()) == R"({"name":"zeros"})");
  for (auto const* wrong : {R"({"name":"random"})", R"({"name":"zeros","value":1})", R"({"name":"constant","seed":1})",
                            R"({"name":"uniform","low":1,"high":0})", R"({"name":"normal","deviation":-1})",
                            R"({"name":"normal","seed":-1})"})
    CHECK(api::parse_initializer(wrong).has_error());
}

TEST_CASE("docs/reference/optimizers.md has the tables; CHORUS_WRITE_DOCS=1 writes them anew") {
  std::string const path = CHORUS_SOURCE_DIR "/docs/reference/optimizers.md";
  std::ostringstream stream;
  stream << std::ifstream(path).rdbuf();
  auto page = stream.str();
  if (std::getenv("CHORUS_WRITE_DOCS") != nullptr) {
    replace(page, "optimizers", api::optimizers_table());
    replace(page, "initializers", api::initializers_table());
    std::ofstream(path) << page;
  }
  CHECK(between(page, "optimizers") == api::optimizers_table());
  CHECK(between(page, "initializers") == api::initializers_table());
}
