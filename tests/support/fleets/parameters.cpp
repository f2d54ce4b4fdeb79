#include "tests/support/fleets/parameters.hpp"

#include <stdexcept>

namespace chorus::testing {
namespace {

constexpr char const* media_type = "application/octet-stream";

std::string path_of(std::string const& parameter, std::string const& what) {
  return "/v1/parameters/" + parameter + "/" + what;
}

Answer to_json_answer(httplib::Result const& result) {
  if (!result) throw std::runtime_error("no answer: " + httplib::to_string(result.error()));
  return {result->status, result->body, result->headers};
}

}  // namespace

std::unique_ptr<httplib::Client> ParameterClient::client() const {
  auto client = std::make_unique<httplib::Client>(entry_);
  client->set_read_timeout(patience_);
  client->set_tcp_nodelay(true);
  return client;
}

httplib::Headers ParameterClient::identity(std::uint64_t sequence, std::optional<std::uint64_t> clock) const {
  httplib::Headers headers{{"Chorus-Client", name_}, {"Chorus-Sequence", std::to_string(sequence)}};
  if (clock) headers.emplace("Chorus-Clock", std::to_string(*clock));
  return headers;
}

Answer ParameterClient::push(std::string const& parameter, std::string const& bytes, std::optional<std::uint64_t> clock,
                             std::string const& what, httplib::Headers headers) {
  auto& sequence = sequences_[parameter];
  headers.merge(identity(sequence, clock));
  auto answer = to_json_answer(client()->Post(path_of(parameter, what), headers, bytes, media_type));
  if (answer.status == 200) ++sequence;
  return answer;
}

Answer ParameterClient::repeat(std::string const& parameter, std::string const& bytes, std::uint64_t sequence,
                               std::optional<std::uint64_t> clock) const {
  return post(path_of(parameter, "gradient"), bytes, identity(sequence, clock));
}

Answer ParameterClient::put_value(std::string const& parameter, std::string const& bytes) {
  auto& sequence = sequences_[parameter];
  auto answer = to_json_answer(client()->Put(path_of(parameter, "value"), identity(sequence, {}), bytes, media_type));
  if (answer.status == 200) ++sequence;
  return answer;
}

Answer ParameterClient::pull(std::string const& parameter, httplib::Headers const& headers,
                             std::string const& query) const {
  return to_json_answer(client()->Get(path_of(parameter, "value") + query, headers));
}

Answer ParameterClient::post(std::string const& path, std::string const& bytes, httplib::Headers const& headers) const {
  return to_json_answer(client()->Post(path, headers, bytes, media_type));
}

}  // namespace chorus::testing
