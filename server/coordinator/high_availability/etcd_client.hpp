// Client of etcd's v3 API, as JSON over HTTP.
//
// https://etcd.io/docs/v3.4/dev-guide/api_grpc_gateway/. That API encodes keys and values in base64, and 64-bit numbers
// as strings.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/json/object.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "http/auth/credentials.hpp"
#include "http/client/client.hpp"
#include "server/coordinator/high_availability/etcd_errc.hpp"
#include "server/coordinator/high_availability/etcd_traffic.hpp"

namespace chorus::coordinator {

struct EtcdOptions {
  std::vector<std::string> endpoints;  // "http://etcd-0:2379"
  std::string cluster = "default";     // Chorus clusters of different names share an etcd
  std::string user;                    // "": without a password
  std::string password_file;
  std::string tls_authorities, tls_certificate, tls_key;

  // Prefix of all keys of the cluster: "/chorus/NAME/".
  [[nodiscard]] std::string prefix() const { return "/chorus/" + cluster + "/"; }
};

[[nodiscard]] std::string to_base64(std::string_view bytes);
[[nodiscard]] std::string from_base64(std::string_view text);  // "" if the text is not base64

// End of the range of keys that begin with `prefix`.
[[nodiscard]] std::string end_of_prefix(std::string prefix);

// A 64-bit number in an answer; 0 if it is missing, as etcd omits zeros.
[[nodiscard]] std::int64_t number_at(boost::json::object const& object, std::string_view name);

// Owned by Election's owner or by an EtcdStore; called on the executor's one thread.
class EtcdClient {
 public:
  // `traffic` counts the requests; null: they are not counted.
  EtcdClient(boost::asio::any_io_executor executor, EtcdOptions options,
             std::shared_ptr<EtcdTraffic> traffic = nullptr);
  EtcdClient(EtcdClient const&) = delete;
  EtcdClient& operator=(EtcdClient const&) = delete;

  // POSTs `body` to `path`, e.g. "/v3/kv/txn", at one endpoint after the other until one answers. Each endpoint gets a
  // share of the time, since a stopped etcd keeps its connections open. etcd may execute the request more than once.
  // Errors: EtcdErrc unreachable, refused, malformed.
  boost::asio::awaitable<Result<boost::json::object>> call(std::string path, boost::json::object body,
                                                           http::TimePoint deadline);

  struct Pair {
    std::string key;
    std::string value;
    std::int64_t create_revision = 0;
    std::int64_t lease = 0;
  };
  // All keys that begin with `prefix`, in their order, as of one revision. Errors: as call().
  boost::asio::awaitable<Result<std::vector<Pair>>> list(std::string prefix, http::TimePoint deadline);
  // Returns the pair of this key; empty if the key does not exist. Errors: as call().
  boost::asio::awaitable<Result<std::optional<Pair>>> get(std::string key, http::TimePoint deadline);

  [[nodiscard]] std::string const& endpoint() const { return options_.endpoints[present_]; }
  [[nodiscard]] EtcdOptions const& options() const { return options_; }

 private:
  // Sends one request to the endpoint at this position in the list.
  boost::asio::awaitable<Result<boost::json::object>> ask(std::size_t endpoint, std::string path,
                                                          boost::json::object body, http::TimePoint deadline);
  boost::asio::awaitable<Status> log_in(std::size_t endpoint, http::TimePoint deadline);
  boost::asio::awaitable<Result<boost::json::object>> exchange(std::string url, boost::json::object body,
                                                               http::TimePoint deadline);

  EtcdOptions const options_;
  std::shared_ptr<EtcdTraffic> const traffic_;
  http::Credentials credentials_;
  http::Client client_;
  std::size_t present_ = 0;  // endpoint that answered last
  std::string token_;        // of the logged-in user
};

}  // namespace chorus::coordinator
