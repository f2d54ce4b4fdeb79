#include "examples/digits/chorus_client.hpp"

#include <boost/json.hpp>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <random>
#include <stdexcept>

namespace digits {
namespace {

// The body of a 2xx answer; anything else becomes an exception with the problem's own words.
std::string require_ok(httplib::Result const& result, std::string const& what) {
  if (!result) throw std::runtime_error(what + ": " + httplib::to_string(result.error()));
  if (result->status / 100 != 2)
    throw std::runtime_error(what + ": " + std::to_string(result->status) + " " + result->body);
  return result->body;
}

// Whether nobody can tell what became of the request: no answer, or one by a proxy.
bool is_unknown(httplib::Result const& result) {
  return !result || result->status == 502 || result->status == 503 || result->status == 504;
}

std::string drawn_name() {
  std::random_device random;
  return "digits-" + std::to_string(random()) + "-" + std::to_string(random());
}

}  // namespace

ChorusClient::ChorusClient(std::string const& worker_url) : http_(worker_url), url_(worker_url), name_(drawn_name()) {
  http_.set_keep_alive(true);
  http_.set_tcp_nodelay(true);
  http_.set_read_timeout(60);
  if (auto const* const authorities = std::getenv("CHORUS_TLS_CA")) http_.set_ca_cert_path(authorities);
  if (auto const* const path = std::getenv("CHORUS_TOKEN_FILE")) {
    std::ifstream file(path);
    std::string token;
    if (!std::getline(file, token)) throw std::runtime_error(std::string("no token in ") + path);
    http_.set_bearer_token_auth(token.c_str());
  }
}

Membership ChorusClient::membership(std::string const& group) {
  auto const own = boost::json::parse(require_ok(http_.Get("/v1"), "GET " + url_ + "/v1"));
  auto const id = boost::json::value_to<std::string>(own.at("worker"));
  auto const path = "/v1/groups/" + group;
  auto const view = boost::json::parse(require_ok(http_.Get(path), "GET " + url_ + path));
  auto const& members = view.at("members").as_array();
  for (auto const& member : members)
    if (member.at("worker").as_string() == id)
      return {boost::json::value_to<std::uint32_t>(member.at("rank")), static_cast<std::uint32_t>(members.size()),
              boost::json::value_to<std::uint32_t>(view.at("epoch")),
              boost::json::value_to<std::uint64_t>(view.at("next_sequence"))};
  throw std::runtime_error("worker " + id + " is not a member of group " + group);
}

void ChorusClient::put(std::string const& tensor, std::span<float const> values) {
  auto const path = "/v1/tensors/" + tensor;
  httplib::Headers const headers{{"Tensor-Dtype", "f32"}, {"Tensor-Shape", std::to_string(values.size())}};
  auto const bytes = std::as_bytes(values);
  require_ok(
      http_.Put(path, headers, reinterpret_cast<char const*>(bytes.data()), bytes.size(), "application/octet-stream"),
      "PUT " + url_ + path);
}

void ChorusClient::get(std::string const& tensor, std::span<float> values) {
  auto const path = "/v1/tensors/" + tensor;
  auto const body = require_ok(http_.Get(path), "GET " + url_ + path);
  if (body.size() != values.size_bytes())
    throw std::runtime_error(tensor + " has " + std::to_string(body.size()) + " bytes, expected " +
                             std::to_string(values.size_bytes()));
  std::memcpy(values.data(), body.data(), body.size());
}

std::string ChorusClient::post(std::string const& path, std::string const& body, httplib::Headers const& headers) {
  constexpr int attempts = 5;
  auto result = http_.Post(path, headers, body, "application/json");
  for (int attempt = 1; is_unknown(result) && attempt < attempts; ++attempt)
    result = http_.Post(path, headers, body, "application/json");
  return require_ok(result, "POST " + url_ + path);
}

AllReduceReport ChorusClient::all_reduce(std::string const& group, Membership& member, std::string const& tensor) {
  auto const request = boost::json::serialize(boost::json::object{
      {"epoch", member.epoch}, {"sequence", member.next_sequence}, {"tensor", tensor}, {"reduce", "sum"}});
  httplib::Headers const headers{{"Idempotency-Key", name_ + "-" + std::to_string(member.next_sequence)}};
  auto const answer = boost::json::parse(post("/v1/groups/" + group + "/all_reduce", request, headers));
  member.next_sequence = boost::json::value_to<std::uint64_t>(answer.at("next_sequence"));
  return {boost::json::value_to<std::string>(answer.at("algorithm")),
          boost::json::value_to<double>(answer.at("seconds"))};
}

}  // namespace digits
