#include "server/coordinator/high_availability/etcd_client.hpp"

#include <openssl/evp.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>
#include <charconv>

#include "http/auth/token_file.hpp"
#include "http/wire/errc.hpp"

namespace chorus::coordinator {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using http::TimePoint;
using std::chrono::steady_clock;

constexpr std::size_t page_keys = 500;
constexpr std::size_t answer_bytes_max = 256 << 20;  // limit of a page, in base64
constexpr int not_found = 5, unauthenticated = 16, unavailable = 14, deadline_exceeded = 4;  // gRPC codes

class EtcdCategory final : public std::error_category {
 public:
  [[nodiscard]] char const* name() const noexcept override { return "etcd"; }
  [[nodiscard]] std::string message(int code) const override {
    switch (static_cast<EtcdErrc>(code)) {
      case EtcdErrc::unreachable:
        return "unreachable";
      case EtcdErrc::refused:
        return "refused";
      case EtcdErrc::no_lease:
        return "no lease";
      case EtcdErrc::not_leader:
        return "not the leader";
      case EtcdErrc::emptied:
        return "emptied";
      case EtcdErrc::made_anew:
        return "made anew";
      case EtcdErrc::newer:
        return "newer format";
      case EtcdErrc::unknown_cluster:
        return "unknown cluster";
      case EtcdErrc::wrong_cluster:
        return "wrong cluster";
      case EtcdErrc::malformed:
        return "not etcd";
    }
    return "unknown";
  }
};

// Converts an error answer by its code.
Error to_error(std::string const& url, json::object const& answer) {
  auto const* const text = answer.if_contains("error");
  auto const said = text != nullptr && text->is_string() ? std::string(text->as_string()) : json::serialize(answer);
  auto const code = number_at(answer, "code");
  auto const detail = url + ": " + said.substr(0, 200);
  if (code == unavailable || code == deadline_exceeded || said.find("no leader") != std::string::npos ||
      said.find("timed out") != std::string::npos)
    return {EtcdErrc::unreachable, detail};
  if (code == not_found) return {EtcdErrc::no_lease, detail};
  return {EtcdErrc::refused, detail};
}

// no_lease counts as answered, because etcd has replied.
EtcdTraffic::Outcome outcome_of(Result<json::object> const& answer) {
  if (answer || answer.error().code == EtcdErrc::no_lease) return EtcdTraffic::Outcome::answered;
  if (answer.error().code == EtcdErrc::unreachable) return EtcdTraffic::Outcome::unreachable;
  if (answer.error().code == EtcdErrc::malformed) return EtcdTraffic::Outcome::malformed;
  return EtcdTraffic::Outcome::refused;
}

EtcdClient::Pair to_pair(json::object const& answer) {
  EtcdClient::Pair pair;
  if (auto const* key = answer.if_contains("key"); key != nullptr && key->is_string())
    pair.key = from_base64(key->as_string());
  if (auto const* value = answer.if_contains("value"); value != nullptr && value->is_string())
    pair.value = from_base64(value->as_string());
  pair.create_revision = number_at(answer, "create_revision");
  pair.lease = number_at(answer, "lease");
  return pair;
}

std::vector<EtcdClient::Pair> to_pairs(json::object const& answer) {
  std::vector<EtcdClient::Pair> pairs;
  auto const* const kvs = answer.if_contains("kvs");
  if (kvs == nullptr || !kvs->is_array()) return pairs;
  for (auto const& one : kvs->as_array())
    if (one.is_object()) pairs.push_back(to_pair(one.as_object()));
  return pairs;
}

}  // namespace

std::error_category const& etcd_category() {
  static EtcdCategory const category;
  return category;
}

std::string to_base64(std::string_view bytes) {
  std::string text(4 * ((bytes.size() + 2) / 3) + 1, '\0');
  auto const size =
      EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                      reinterpret_cast<unsigned char const*>(bytes.data()), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  return text;
}

std::string from_base64(std::string_view text) {
  std::string bytes(3 * (text.size() / 4), '\0');
  auto const size = EVP_DecodeBlock(reinterpret_cast<unsigned char*>(bytes.data()),
                                    reinterpret_cast<unsigned char const*>(text.data()), static_cast<int>(text.size()));
  if (size < 0) return "";
  auto const padding = static_cast<std::size_t>(text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0);
  bytes.resize(static_cast<std::size_t>(size) - padding);
  return bytes;
}

std::string end_of_prefix(std::string prefix) {
  prefix.back() = static_cast<char>(prefix.back() + 1);
  return prefix;
}

std::int64_t number_at(json::object const& object, std::string_view name) {
  auto const* const found = object.if_contains(name);
  if (found == nullptr) return 0;
  if (found->is_int64()) return found->as_int64();
  if (!found->is_string()) return 0;
  std::int64_t value = 0;
  auto const& text = found->as_string();
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : 0;
}

EtcdClient::EtcdClient(asio::any_io_executor executor, EtcdOptions options, std::shared_ptr<EtcdTraffic> traffic)
    : options_(std::move(options)),
      traffic_(std::move(traffic)),
      credentials_("", {options_.tls_certificate, options_.tls_key, options_.tls_authorities}),
      client_(std::move(executor), &credentials_) {}

asio::awaitable<Result<json::object>> EtcdClient::ask(std::size_t endpoint, std::string path, json::object body,
                                                      TimePoint deadline) {
  auto const url = options_.endpoints[endpoint] + path;
  auto answer = co_await exchange(url, std::move(body), deadline);
  if (traffic_) traffic_->count(endpoint, outcome_of(answer));
  co_return answer;
}

asio::awaitable<Result<json::object>> EtcdClient::exchange(std::string url, json::object body, TimePoint deadline) {
  http::Call call;
  call.method = http::Method::post;
  call.url = url;
  call.body = json::serialize(body);
  call.answer_limit_bytes = answer_bytes_max;
  call.repeatable = true;
  if (!token_.empty()) call.fields.set("Authorization", token_);
  auto const answer = co_await client_.send(std::move(call), deadline);
  if (!answer) co_return Error(EtcdErrc::unreachable, answer.error().detail);
  boost::system::error_code error;
  auto const value = json::parse(answer->body, error);
  if (error || !value.is_object()) co_return Error(EtcdErrc::malformed, url + ": no etcd answers there");
  auto const& object = value.as_object();
  if (answer->ok() && !object.contains("error")) co_return object;
  auto failure = to_error(url, object);
  if (number_at(object, "code") == unauthenticated) token_.clear();
  co_return failure;
}

asio::awaitable<Status> EtcdClient::log_in(std::size_t endpoint, TimePoint deadline) {
  auto const password = http::read_secret(options_.password_file);
  if (!password) co_return password.error();
  json::object const body{{"name", options_.user}, {"password", *password}};
  auto const answer = co_await ask(endpoint, "/v3/auth/authenticate", body, deadline);
  if (!answer) co_return answer.error();
  auto const* const token = answer->if_contains("token");
  if (token == nullptr || !token->is_string())
    co_return Error(EtcdErrc::malformed, options_.endpoints[endpoint] + " gives no token");
  token_ = token->as_string();
  co_return ok();
}

asio::awaitable<Result<json::object>> EtcdClient::call(std::string path, json::object body, TimePoint deadline) {
  auto failure = Error(EtcdErrc::unreachable, "no endpoint of etcd was asked");
  auto const count = options_.endpoints.size();
  for (std::size_t attempt = 0; attempt < count; ++attempt) {
    auto const now = steady_clock::now();
    if (now >= deadline) break;
    auto const until = now + (deadline - now) / static_cast<int>(count - attempt);
    auto const endpoint = present_;
    if (!options_.user.empty() && token_.empty()) {
      if (auto const logged_in = co_await log_in(endpoint, until); !logged_in) {
        failure = logged_in.error();
        if (failure.code == EtcdErrc::refused) co_return failure;
        present_ = (endpoint + 1) % count;
        continue;
      }
    }
    bool const had_token = !token_.empty();
    auto answer = co_await ask(endpoint, path, body, until);
    if (answer) co_return answer;
    failure = answer.error();
    if (had_token && token_.empty()) {  // the token has expired
      if (auto const logged_in = co_await log_in(endpoint, until); !logged_in) co_return logged_in.error();
      co_return co_await ask(endpoint, path, body, until);
    }
    if (failure.code != EtcdErrc::unreachable && failure.code != EtcdErrc::malformed) co_return failure;
    present_ = (endpoint + 1) % count;
  }
  co_return failure;
}

asio::awaitable<Result<std::vector<EtcdClient::Pair>>> EtcdClient::list(std::string prefix, TimePoint deadline) {
  std::vector<Pair> pairs;
  auto key = prefix;
  auto const end = end_of_prefix(prefix);
  std::int64_t revision = 0;
  for (;;) {
    json::object body{{"key", to_base64(key)}, {"range_end", to_base64(end)}, {"limit", std::to_string(page_keys)}};
    if (revision != 0) body["revision"] = std::to_string(revision);
    auto const answer = co_await call("/v3/kv/range", body, deadline);
    if (!answer) co_return answer.error();
    if (revision == 0)
      if (auto const* header = answer->if_contains("header"); header != nullptr && header->is_object())
        revision = number_at(header->as_object(), "revision");
    auto page = to_pairs(*answer);
    pairs.insert(pairs.end(), std::make_move_iterator(page.begin()), std::make_move_iterator(page.end()));
    auto const* const more = answer->if_contains("more");
    if (more == nullptr || !more->is_bool() || !more->as_bool() || page.empty()) co_return pairs;
    key = pairs.back().key + '\0';
  }
}

asio::awaitable<Result<std::optional<EtcdClient::Pair>>> EtcdClient::get(std::string key, TimePoint deadline) {
  json::object const body{{"key", to_base64(key)}};
  auto const answer = co_await call("/v3/kv/range", body, deadline);
  if (!answer) co_return answer.error();
  auto pairs = to_pairs(*answer);
  if (pairs.empty()) co_return std::optional<Pair>();
  co_return std::optional<Pair>(std::move(pairs.front()));
}

}  // namespace chorus::coordinator
