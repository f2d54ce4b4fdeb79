#include "tests/simulation/model_etcd.hpp"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/json/array.hpp>
#include <boost/json/parse.hpp>
#include <boost/json/serialize.hpp>

#include "server/coordinator/high_availability/etcd_client.hpp"

namespace chorus::simulation {
namespace {

namespace asio = boost::asio;
namespace json = boost::json;
using coordinator::from_base64;
using coordinator::number_at;
using coordinator::to_base64;
using std::chrono::steady_clock;

// Defaults of etcd.
constexpr std::size_t operations_max = 128;
// etcd limits the request itself; the model limits its text in base64, which is longer.
constexpr std::size_t request_bytes_max = 3 << 19;
constexpr std::size_t body_bytes_max = 4 << 20;
constexpr auto between_looks_at_leases = std::chrono::milliseconds(500);
// gRPC codes.
constexpr int invalid_argument = 3, not_found = 5, out_of_range = 11;

std::string bytes_at(json::object const& object, std::string_view name) {
  auto const* const found = object.if_contains(name);
  return found != nullptr && found->is_string() ? from_base64(found->as_string()) : "";
}

json::array const& array_at(json::object const& object, std::string_view name) {
  static json::array const none;
  auto const* const found = object.if_contains(name);
  return found != nullptr && found->is_array() ? found->as_array() : none;
}

std::optional<EtcdKeys::Compare> to_compare(json::value const& value) {
  auto const& object = value.as_object();
  auto const target = object.at("target").as_string();
  if (object.at("result").as_string() != "EQUAL" || object.size() != 4) return std::nullopt;
  EtcdKeys::Compare compare{bytes_at(object, "key"), std::nullopt, std::nullopt};
  if (target == "CREATE") compare.create_revision = number_at(object, "create_revision");
  if (target == "MOD") compare.mod_revision = number_at(object, "mod_revision");
  if (!compare.create_revision && !compare.mod_revision) return std::nullopt;
  return compare;
}

std::optional<EtcdKeys::Operation> to_operation(json::value const& value) {
  auto const& object = value.as_object();
  if (object.size() != 1) return std::nullopt;
  auto const& request = object.begin()->value().as_object();
  if (object.contains("request_put"))
    return EtcdKeys::Put{bytes_at(request, "key"), bytes_at(request, "value"), number_at(request, "lease")};
  if (object.contains("request_delete_range"))
    return EtcdKeys::Erase{bytes_at(request, "key"), bytes_at(request, "range_end")};
  return std::nullopt;
}

std::string const& key_of(EtcdKeys::Operation const& operation) {
  if (auto const* const put = std::get_if<EtcdKeys::Put>(&operation)) return put->key;
  return std::get<EtcdKeys::Erase>(operation).first;
}

// True if a transaction changes a key twice, which etcd refuses.
bool has_key_twice(std::vector<EtcdKeys::Operation> const& operations) {
  std::vector<std::string> keys;
  for (auto const& operation : operations)
    if (std::holds_alternative<EtcdKeys::Put>(operation)) keys.push_back(key_of(operation));
  std::ranges::sort(keys);
  if (std::ranges::adjacent_find(keys) != keys.end()) return true;
  return std::ranges::any_of(operations, [&keys](EtcdKeys::Operation const& operation) {
    auto const* const erase = std::get_if<EtcdKeys::Erase>(&operation);
    return erase != nullptr && std::ranges::any_of(keys, [erase](std::string const& key) {
             return key >= erase->first && key < erase->end;
           });
  });
}

json::object to_json(EtcdKeys::Pair const& pair) {
  json::object object{{"key", to_base64(pair.key)},
                      {"create_revision", std::to_string(pair.create_revision)},
                      {"mod_revision", std::to_string(pair.mod_revision)},
                      {"version", std::to_string(pair.version)},
                      {"value", to_base64(pair.value)}};
  if (pair.lease != 0) object["lease"] = std::to_string(pair.lease);
  return object;
}

}  // namespace

std::string EtcdCluster::leader() const {
  auto const found = keys.get(prefix + "leader");
  return found ? found->value : "";
}

ModelEtcd::ModelEtcd(asio::any_io_executor executor, EtcdCluster& cluster)
    : executor_(executor),
      cluster_(cluster),
      server_(executor, router_, {}, [](http::Exchange const&) {}),
      tasks_(executor) {
  add("/v3/kv/range", &ModelEtcd::range);
  add("/v3/kv/txn", &ModelEtcd::transact);
  add("/v3/kv/compaction", &ModelEtcd::compact);
  add("/v3/lease/grant", &ModelEtcd::grant);
  add("/v3/lease/keepalive", &ModelEtcd::keep_alive);
  add("/v3/lease/revoke", &ModelEtcd::revoke);
  add("/v3/maintenance/status", &ModelEtcd::status);
}

void ModelEtcd::add(char const* path, Method method) {
  router_.add(http::Method::post, path, http::Access::open,
              [this, method](http::Request const&, http::Body& body) { return answer(method, &body); });
}

Result<std::uint16_t> ModelEtcd::start(std::uint16_t port) {
  tasks_.spawn("leases", expire_leases());
  return server_.listen("127.0.0.1", port);
}

asio::awaitable<void> ModelEtcd::stop() {
  tasks_.cancel();
  co_await tasks_.join();
  co_await server_.stop();
}

asio::awaitable<void> ModelEtcd::expire_leases() {
  asio::steady_timer timer(executor_);
  for (;;) {
    timer.expires_after(between_looks_at_leases);
    co_await timer.async_wait(asio::use_awaitable);
    cluster_.keys.expire(steady_clock::now());
  }
}

asio::awaitable<http::Response> ModelEtcd::answer(Method method, http::Body* body) {
  auto const text = co_await body->read_all(body_bytes_max);
  if (!text) co_return text.error();
  boost::system::error_code error;
  auto const request = json::parse(*text, error);
  Reply reply;
  if (error || !request.is_object())
    reply.refusal = Refusal{invalid_argument, "not an object of JSON"};
  else
    reply = (this->*method)(request.as_object());
  if (!reply.refusal) co_return http::Response::json(200, json::serialize(reply.body));
  json::object const refusal{
      {"error", reply.refusal->text}, {"message", reply.refusal->text}, {"code", reply.refusal->code}};
  co_return http::Response::json(reply.refusal->code == not_found ? 404 : 400, json::serialize(refusal));
}

ModelEtcd::Object ModelEtcd::header() const { return {{"revision", std::to_string(cluster_.keys.revision())}}; }

ModelEtcd::Reply ModelEtcd::range(Object const& request) {
  auto const revision = number_at(request, "revision");
  if (revision != 0 && revision < cluster_.keys.compacted())
    return {{}, Refusal{out_of_range, "etcdserver: mvcc: required revision has been compacted"}};
  auto const pairs = cluster_.keys.range(bytes_at(request, "key"), bytes_at(request, "range_end"), revision);
  auto const limit = static_cast<std::size_t>(number_at(request, "limit"));
  auto const count = limit == 0 ? pairs.size() : std::min(limit, pairs.size());
  json::array items;
  for (std::size_t i = 0; i < count; ++i) items.push_back(to_json(pairs[i]));
  Object body{{"header", header()}, {"count", std::to_string(pairs.size())}};
  if (count > 0) body["kvs"] = std::move(items);
  if (count < pairs.size()) body["more"] = true;
  return {std::move(body), std::nullopt};
}

ModelEtcd::Reply ModelEtcd::transact(Object const& request) {
  std::vector<EtcdKeys::Compare> compares;
  std::vector<EtcdKeys::Operation> operations;
  for (auto const& value : array_at(request, "compare")) {
    auto compare = to_compare(value);
    if (!compare) return {{}, Refusal{invalid_argument, "the model knows no other comparison than of CREATE and MOD"}};
    compares.push_back(std::move(*compare));
  }
  for (auto const& value : array_at(request, "success")) {
    auto operation = to_operation(value);
    if (!operation) return {{}, Refusal{invalid_argument, "the model knows no other operation than put and delete"}};
    operations.push_back(std::move(*operation));
  }
  if (operations.size() > operations_max)
    return {{}, Refusal{invalid_argument, "etcdserver: too many operations in txn request"}};
  if (json::serialize(request).size() > 2 * request_bytes_max)
    return {{}, Refusal{invalid_argument, "etcdserver: request is too large"}};
  if (has_key_twice(operations))
    return {{}, Refusal{invalid_argument, "etcdserver: duplicate key given in txn request"}};
  for (auto const& operation : operations)
    if (auto const* const put = std::get_if<EtcdKeys::Put>(&operation);
        put != nullptr && put->lease != 0 && !cluster_.keys.has_lease(put->lease))
      return {{}, Refusal{not_found, "etcdserver: requested lease not found"}};
  bool const succeeded = cluster_.keys.commit(compares, operations);
  check_promises(compares, operations, succeeded);
  Object body{{"header", header()}};
  if (succeeded) {
    body["succeeded"] = true;
    return {std::move(body), std::nullopt};
  }
  json::array responses;
  for (auto const& value : array_at(request, "failure")) {
    auto const* const wanted = value.as_object().if_contains("request_range");
    if (wanted == nullptr) return {{}, Refusal{invalid_argument, "the model knows nothing but ranges after a failure"}};
    Object response;
    response["response_range"] = range(wanted->as_object()).body;
    responses.push_back(std::move(response));
  }
  body["responses"] = std::move(responses);
  return {std::move(body), std::nullopt};
}

void ModelEtcd::check_promises(std::vector<EtcdKeys::Compare> const& compares,
                               std::vector<EtcdKeys::Operation> const& operations, bool succeeded) {
  bool const writes_rows = std::ranges::any_of(operations, [this](EtcdKeys::Operation const& operation) {
    return key_of(operation).starts_with(cluster_.prefix + "rows/") ||
           key_of(operation).starts_with(cluster_.prefix + "redo");
  });
  if (!writes_rows) return;
  auto const term = std::ranges::find(compares, cluster_.prefix + "leader", &EtcdKeys::Compare::key);
  if (term == compares.end() || term->create_revision.value_or(0) == 0) {
    cluster_.broken = "a write of rows does not compare the term of its writer";
    return;
  }
  if (!succeeded) {
    ++cluster_.fenced;
    return;
  }
  auto const revision = *term->create_revision;
  if (revision < cluster_.term)
    cluster_.broken =
        "a write of term " + std::to_string(revision) + " was done after one of term " + std::to_string(cluster_.term);
  if (revision != cluster_.term) ++cluster_.terms;
  cluster_.term = revision;
  if (auto const written = std::exchange(cluster_.next_write, nullptr)) written();
}

ModelEtcd::Reply ModelEtcd::compact(Object const& request) {
  auto const revision = number_at(request, "revision");
  if (revision <= cluster_.keys.compacted() || revision > cluster_.keys.revision())
    return {{}, Refusal{out_of_range, "etcdserver: mvcc: required revision has been compacted"}};
  cluster_.keys.compact(revision);
  return {{{"header", header()}}, std::nullopt};
}

ModelEtcd::Reply ModelEtcd::grant(Object const& request) {
  std::chrono::seconds const ttl(number_at(request, "TTL"));
  auto const lease = cluster_.keys.grant(ttl, steady_clock::now());
  return {{{"header", header()}, {"ID", std::to_string(lease)}, {"TTL", std::to_string(ttl.count())}}, std::nullopt};
}

ModelEtcd::Reply ModelEtcd::keep_alive(Object const& request) {
  auto const lease = number_at(request, "ID");
  Object result{{"header", header()}, {"ID", std::to_string(lease)}};
  if (auto const ttl = cluster_.keys.keep_alive(lease, steady_clock::now()))
    result["TTL"] = std::to_string(ttl->count());
  return {{{"result", std::move(result)}}, std::nullopt};
}

ModelEtcd::Reply ModelEtcd::revoke(Object const& request) {
  if (!cluster_.keys.revoke(number_at(request, "ID")))
    return {{}, Refusal{not_found, "etcdserver: requested lease not found"}};
  return {{{"header", header()}}, std::nullopt};
}

ModelEtcd::Reply ModelEtcd::status(Object const& /*request*/) {
  return {{{"header", header()}, {"version", "3.4.0"}, {"dbSize", std::to_string(cluster_.keys.bytes())}},
          std::nullopt};
}

}  // namespace chorus::simulation
