#include "http/openapi/document.hpp"

#include <algorithm>
#include <array>
#include <boost/json/array.hpp>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "collectives/core/assert.hpp"
#include "http/json/problem_text.hpp"
#include "http/openapi/json_layout.hpp"
#include "http/openapi/operation.hpp"
#include "http/openapi/schema.hpp"

namespace chorus::http::openapi {
namespace {

namespace json = boost::json;
using Use = Schemas::Use;

constexpr char const* reading =
    "Both services, the coordinator and the workers: tags say which has an operation. x-role is what its token needs, "
    "per "
    "service: a role includes those before it (read, submit, join, admin), and open needs none. x-services says whose "
    "body or status it is, where the two differ. Where GET stands, HEAD does. GET /v1 lists the routes of a running "
    "service.";
constexpr char const* token =
    "A token made with `chorus token create`. A service that was started without tokens asks for none.";

// Problems that every operation can answer with.
constexpr std::array anywhere{ProblemCode::bad_request,      ProblemCode::unauthorized, ProblemCode::forbidden,
                              ProblemCode::request_timeout,  ProblemCode::unknown_host, ProblemCode::rate_limited,
                              ProblemCode::header_too_large, ProblemCode::internal,     ProblemCode::digest_mismatch};

// Returns the header field that all problems of a code have.
std::optional<Field> field_of(ProblemCode code) {
  if (code == ProblemCode::unauthorized) return Field{"WWW-Authenticate", Type::text, "Bearer, and why not", true};
  if (code == ProblemCode::rate_limited || code == ProblemCode::unavailable)
    return Field{"Retry-After", Type::integer, "seconds", true};
  return std::nullopt;
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// A router's pattern such as "/v1/tensors/{name...}" in the form of OpenAPI, and its names in braces.
struct Path {
  std::string text;
  std::vector<std::pair<std::string, bool>> parameters;  // true: one or more segments
};
Path path_of(std::string_view pattern) {
  Path path;
  while (!pattern.empty()) {
    auto const open = std::min(pattern.find('{'), pattern.size());
    path.text += pattern.substr(0, open);
    pattern.remove_prefix(open);
    if (pattern.empty()) break;
    auto name = pattern.substr(1, pattern.find('}') - 1);
    pattern.remove_prefix(name.size() + 2);
    bool const takes_slashes = name.ends_with("...");
    if (takes_slashes) name.remove_suffix(3);
    path.parameters.emplace_back(name, takes_slashes);
    path.text += "{" + std::string(name) + "}";
  }
  return path;
}

json::object type_schema(Type type) {
  return {{"type", type == Type::integer ? "integer" : type == Type::boolean ? "boolean" : "string"}};
}

json::object parameter(Field const& field, char const* in) {
  json::object object{{"name", field.name}, {"in", in}};
  if (field.required) object["required"] = true;
  object["description"] = field.meaning;
  object["schema"] = type_schema(field.type);
  return object;
}

// The alternative bodies of a request or an answer, with the services that have them.
class Content {
 public:
  void add(Payload const& payload, Service service, Use use, Schemas& schemas) {
    auto schema = payload.message ? schemas.refer(*payload.message, use) : json::object();
    if (!payload.message && payload.media == json_media) schema["type"] = "object";
    auto& alternatives = by_media_[payload.media];
    for (auto& [known, services] : alternatives)
      if (known == schema) {
        services.push_back(json::string(name(service)));
        return;
      }
    alternatives.emplace_back(std::move(schema), json::array{json::string(name(service))});
  }
  [[nodiscard]] bool empty() const { return by_media_.empty(); }
  [[nodiscard]] json::object to_json() const {
    json::object content;
    for (auto const& [media, alternatives] : by_media_) {
      json::array any;
      for (auto const& [schema, services] : alternatives) {
        auto one = schema;
        one["x-services"] = services;
        any.push_back(std::move(one));
      }
      auto schema = alternatives.front().first;
      if (any.size() > 1) schema = {{"anyOf", std::move(any)}};
      content[media] = json::object{{"schema", std::move(schema)}};
    }
    return content;
  }

 private:
  std::map<std::string_view, std::vector<std::pair<json::object, json::array>>> by_media_;
};

struct Reply {
  std::set<Service> services;
  std::vector<std::string_view> meanings;
  std::map<std::string_view, Field> headers;
  Content content;
  std::vector<ProblemCode> problems;
};

// One operation of the document: one path and method, of one service or of both.
class Merged {
 public:
  void add(Operation const& operation, Schemas& schemas) {
    services_.push_back(operation);
    for (auto const& payload : operation.requests) request_.add(payload, operation.service, Use::request, schemas);
    for (auto const& answer : operation.answers) {
      auto& reply = replies_[answer.status];
      reply.services.insert(operation.service);
      if (std::ranges::find(reply.meanings, answer.meaning) == reply.meanings.end())
        reply.meanings.push_back(answer.meaning);
      for (auto const& header : answer.headers) {
        auto& known = reply.headers.emplace(header.name, header).first->second;
        known.required = known.required && header.required;
      }
      for (auto const& payload : answer.payloads) reply.content.add(payload, operation.service, Use::answer, schemas);
    }
    for (auto const code : operation.problems) add_problem(code, operation.service);
    for (auto const code : anywhere)
      if (code != ProblemCode::unknown_host || !is_health(operation.path)) add_problem(code, operation.service);
    // Open operations, such as health, are answered above the limit of connections, too.
    if (operation.access != Access::open) add_problem(ProblemCode::unavailable, operation.service);
    // Only messages are parsed, so only they can be too large, malformed or wrong. Bodies of bytes are checked by their
    // Content-Length.
    if (std::ranges::none_of(operation.requests, [](Payload const& payload) { return payload.message != nullptr; }))
      return;
    add_problem(ProblemCode::payload_too_large, operation.service);
    add_problem(ProblemCode::malformed_json, operation.service);
    add_problem(ProblemCode::invalid_field, operation.service);
  }

  [[nodiscard]] json::object to_json() const {
    auto const& first = services_.front();
    json::object object;
    json::array tags;
    for (auto const& one : services_) tags.push_back(json::string(name(one.service)));
    object["tags"] = tags;
    object["summary"] = first.summary;
    if (services_.size() > 1 && services_.back().summary != first.summary)
      object["description"] = std::string("At the ") + std::string(name(services_.back().service)) + ": " +
                              std::string(services_.back().summary) + ".";
    object["operationId"] = operation_id();
    object["parameters"] = parameters();
    if (!request_.empty())
      object["requestBody"] = json::object{{"required", first.body_required}, {"content", request_.to_json()}};
    json::object responses;
    for (auto const& [status, reply] : replies_) {
      auto answer = response(reply);
      if (reply.services.size() < services_.size()) {
        json::array whose;
        for (auto const service : reply.services) whose.push_back(json::string(name(service)));
        answer["x-services"] = std::move(whose);
      }
      responses[std::to_string(status)] = std::move(answer);
    }
    object["responses"] = std::move(responses);
    auto const is_open =
        std::ranges::all_of(services_, [](Operation const& one) { return one.access == Access::open; });
    object["security"] = is_open ? json::array() : json::array{json::object{{"bearer", json::array()}}};
    json::object roles;
    for (auto const& one : services_) roles[name(one.service)] = name(one.access);
    object["x-role"] = std::move(roles);
    return object;
  }

 private:
  void add_problem(ProblemCode code, Service service) {
    auto& reply = replies_[kind(code).status];
    reply.services.insert(service);
    auto& problems = reply.problems;
    if (std::ranges::find(problems, code) == problems.end()) problems.push_back(code);
  }

  [[nodiscard]] std::string operation_id() const {
    std::string id = lower(name(services_.front().method));
    auto const path = path_of(services_.front().path).text;
    for (auto const c : path) {
      if (std::isalnum(static_cast<unsigned char>(c)) != 0)
        id += c;
      else if (id.back() != '_')
        id += '_';
    }
    while (id.back() == '_') id.pop_back();
    return id;
  }

  [[nodiscard]] json::array parameters() const {
    json::array list;
    for (auto const& [name, takes_slashes] : path_of(services_.front().path).parameters) {
      auto object = parameter(
          {name, Type::text, takes_slashes ? "may have slashes, as they are" : "a slash in it is written %2F", true},
          "path");
      if (takes_slashes) object["x-takes-slashes"] = true;
      list.push_back(std::move(object));
    }
    std::map<std::string_view, Field> query, headers;
    for (auto const& one : services_) {
      for (auto const& field : one.query) query.emplace(field.name, field);
      for (auto const& field : one.headers) headers.emplace(field.name, field);
    }
    for (auto const& [name, field] : query) list.push_back(parameter(field, "query"));
    // OpenAPI leaves Accept to the media types of the answers.
    for (auto const& [name, field] : headers)
      if (name != "Accept") list.push_back(parameter(field, "header"));
    return list;
  }

  static json::object response(Reply const& reply) {
    std::string description;
    for (auto const meaning : reply.meanings) description += (description.empty() ? "" : " ") + std::string(meaning);
    auto content = reply.content.to_json();
    if (!reply.problems.empty()) {
      json::array codes;
      for (auto const code : reply.problems) {
        codes.push_back(json::string(kind(code).name));
        description += (description.empty() ? "" : ", ") + std::string(kind(code).title);
      }
      json::object const problem{{"$ref", "#/components/schemas/Problem"}};
      json::object const code{{"enum", std::move(codes)}};
      json::object const one_of_these{{"properties", json::object{{"code", code}}}};
      content["application/problem+json"] =
          json::object{{"schema", json::object{{"allOf", json::array{problem, one_of_these}}}}};
    }
    json::object object{{"description", description}};
    auto fields = reply.headers;
    for (auto const code : reply.problems)
      if (auto field = field_of(code)) {
        field->required = reply.problems.size() == 1;
        fields.emplace(field->name, *field);
      }
    json::object headers;
    for (auto const& [name, field] : fields) {
      json::object header{{"description", field.meaning}};
      if (field.required) header["required"] = true;
      header["schema"] = type_schema(field.type);
      headers[name] = std::move(header);
    }
    if (!headers.empty()) object["headers"] = std::move(headers);
    if (!content.empty()) object["content"] = std::move(content);
    return object;
  }

  std::vector<Operation> services_;
  Content request_;
  std::map<unsigned, Reply> replies_;
};

}  // namespace

std::string document() {
  Schemas schemas;
  schemas.refer(problem_text_codec(), Use::answer);
  std::map<std::pair<std::string, Method>, Merged> merged;
  for (auto const& table : {coordinator_operations(), worker_operations()})
    for (auto const& operation : table)
      merged[{path_of(operation.path).text, operation.method}].add(operation, schemas);
  json::object paths;
  for (auto const& [where, operation] : merged) {
    auto& path = paths[where.first];
    if (!path.is_object()) path = json::object();
    path.as_object()[lower(name(where.second))] = operation.to_json();
  }
  json::object document{{"openapi", "3.1.0"}};
  document["info"] = json::object{{"title", "Chorus"},
                                  {"version", "1"},
                                  {"summary", "Collective communication and parameters over HTTP"},
                                  {"description", reading},
                                  {"license", json::object{{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}};
  document["tags"] = json::array{
      json::object{{"name", "coordinator"},
                   {"description", "Workers, groups, collectives, parameters: no tensor passes through it"}},
      json::object{{"name", "worker"}, {"description", "Tensors, calls between members, values of parameters"}}};
  document["paths"] = std::move(paths);
  json::object const bearer{{"type", "http"}, {"scheme", "bearer"}, {"description", token}};
  document["components"] =
      json::object{{"schemas", schemas.all()}, {"securitySchemes", json::object{{"bearer", bearer}}}};
  return laid_out(document);
}

}  // namespace chorus::http::openapi
