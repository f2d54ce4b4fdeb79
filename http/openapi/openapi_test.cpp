#include <doctest/doctest.h>

#include <boost/json.hpp>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "http/openapi/document.hpp"
#include "http/openapi/operation.hpp"

using namespace chorus::http;
using namespace chorus::http::openapi;
namespace json = boost::json;

namespace {

json::value parsed() { return json::parse(document()); }

// Adds every "$ref" in `value` to `found`.
void collect_references(json::value const& value, std::set<std::string>& found) {
  if (auto const* object = value.if_object())
    for (auto const& member : *object) {
      if (member.key() == "$ref") found.insert(member.value().as_string().c_str());
      collect_references(member.value(), found);
    }
  if (auto const* array = value.if_array())
    for (auto const& element : *array) collect_references(element, found);
}

}  // namespace

TEST_CASE("docs/openapi.json is the document; CHORUS_WRITE_DOCS=1 writes it anew") {
  std::string const path = CHORUS_SOURCE_DIR "/docs/openapi.json";
  if (std::getenv("CHORUS_WRITE_DOCS") != nullptr) std::ofstream(path) << document();
  std::ostringstream file;
  file << std::ifstream(path).rdbuf();
  CHECK(file.str() == document());
}

TEST_CASE("every schema that the document refers to exists, and every existing schema is referred to") {
  auto const all = parsed();
  std::set<std::string> named, there;
  collect_references(all, named);
  for (auto const& schema : all.at("components").at("schemas").as_object())
    there.insert("#/components/schemas/" + std::string(schema.key()));
  CHECK(named == there);
}

TEST_CASE("the ids of operations are unique") {
  std::set<std::string> ids;
  auto const all = parsed();
  for (auto const& path : all.at("paths").as_object())
    for (auto const& operation : path.value().as_object()) {
      std::string const id = operation.value().at("operationId").as_string().c_str();
      INFO(id);
      CHECK(ids.insert(id).second);
    }
}

TEST_CASE("a field with a default is required in answers, but not in requests") {
  auto const schemas = parsed().at("components").at("schemas");
  auto const requires_field = [&](char const* message, std::string_view field) {
    auto const& fields = schemas.at(message).as_object();
    if (!fields.contains("required")) return false;
    for (auto const& name : fields.at("required").as_array())
      if (name.as_string() == field) return true;
    return false;
  };
  CHECK(requires_field("CollectiveRequest", "group"));
  CHECK_FALSE(requires_field("CollectiveRequest", "reduce"));
  CHECK(requires_field("Collective", "reason"));
  CHECK_FALSE(requires_field("Collective", "error"));
}

TEST_CASE("if the services differ, the document names the service of each body, and the roles of both") {
  auto const put = parsed().at("paths").at("/v1/groups/{name}").at("put");
  auto const any = put.at("requestBody").at("content").at("application/json").at("schema").at("anyOf").as_array();
  REQUIRE(any.size() == 2);
  CHECK(any[0].at("x-services").at(0) == "coordinator");
  CHECK(any[1].at("$ref") == "#/components/schemas/GroupAssignment");
  CHECK(put.at("x-role").at("coordinator") == "submit");
  CHECK(put.at("x-role").at("worker") == "join");
}
