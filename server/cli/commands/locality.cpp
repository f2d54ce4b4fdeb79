// locality: prints the locality of a Kubernetes node from its labels, as a line for chorus-worker --locality-file.
//
// For an init container: asks the API server with the pod's service account, which needs `get` on nodes.
#include <httplib.h>

#include <algorithm>
#include <boost/json/parse.hpp>
#include <boost/json/value.hpp>
#include <cstdlib>
#include <fstream>
#include <ostream>

#include "collectives/core/locality.hpp"
#include "http/json/problem.hpp"
#include "server/cli/commands/commands.hpp"

namespace chorus::cli {
namespace {

struct LocalityOptions {
  std::string node;
  std::string output;  // "": standard output
  std::string account = "/var/run/secrets/kubernetes.io/serviceaccount";
  std::string rack_label = "topology.kubernetes.io/rack";
};

constexpr std::chrono::seconds patience{10};

http::Problem problem(std::string detail) { return {http::ProblemCode::unavailable, std::move(detail)}; }

std::string variable(char const* name) {
  auto const* const value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

http::Checked<std::string> read_first_line(std::string const& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return problem("cannot read " + path + ": is the service account's token mounted?");
  return line;
}

// Returns the node as JSON from the API server.
http::Checked<std::string> fetch_node(LocalityOptions const& options) {
  auto const host = variable("KUBERNETES_SERVICE_HOST"), port = variable("KUBERNETES_SERVICE_PORT");
  if (host.empty() || port.empty())
    return problem("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: this is no pod of Kubernetes");
  auto const token = read_first_line(options.account + "/token");
  if (token.has_error()) return token.error();
  auto const address = "https://" + (host.find(':') == std::string::npos ? host : "[" + host + "]") + ":" + port;
  httplib::Client connection(address);
  connection.set_ca_cert_path((options.account + "/ca.crt").c_str());
  connection.enable_server_certificate_verification(true);
  connection.set_connection_timeout(patience);
  connection.set_read_timeout(patience);
  auto const answer = connection.Get("/api/v1/nodes/" + options.node,
                                     {{"Authorization", "Bearer " + token.value()}, {"Accept", "application/json"}});
  if (!answer) return problem("cannot reach the API server at " + address + ": " + httplib::to_string(answer.error()));
  if (answer->status == 403)
    return problem("the API server refuses to show node '" + options.node +
                   "': the service account needs a ClusterRole with verb get on nodes");
  if (answer->status != 200)
    return problem("the API server answered " + std::to_string(answer->status) + " for node '" + options.node + "'");
  return answer->body;
}

// A comma would begin another part of the line; values of labels contain none.
std::string label_of(boost::json::object const& labels, std::string_view name) {
  auto const* const value = labels.if_contains(name);
  if (value == nullptr || !value->is_string()) return {};
  std::string text(value->get_string());
  return text.find(',') == std::string::npos ? text : std::string();
}

http::Checked<Locality> locality_of(std::string const& node, LocalityOptions const& options) {
  boost::system::error_code failure;
  auto const parsed = boost::json::parse(node, failure);
  auto const* const labels = failure ? nullptr : parsed.find_pointer("/metadata/labels", failure);
  if (labels == nullptr || !labels->is_object()) return problem("the API server's answer is not a node with labels");
  auto const& all = labels->get_object();
  return Locality{label_of(all, "topology.kubernetes.io/region"), label_of(all, "topology.kubernetes.io/zone"),
                  label_of(all, options.rack_label), options.node};
}

ExitCode locality(LocalityOptions const& options, Session const& session) {
  auto const node = fetch_node(options);
  if (node.has_error()) return report(session, node.error());
  auto const found = locality_of(node.value(), options);
  if (found.has_error()) return report(session, found.error());
  auto const line = to_string(found.value()) + "\n";
  if (options.output.empty()) {
    session.out << line;
    return ExitCode::ok;
  }
  std::ofstream file(options.output, std::ios::trunc);
  file << line;
  file.flush();
  if (!file) return report(session, problem("cannot write " + options.output));
  return ExitCode::ok;
}

std::string check_node(std::string const& name) {
  auto const allowed = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '.'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), allowed) ? "" : "'" + name + "' is not a node's name";
}

}  // namespace

void add_locality(CLI::App& root, Commands& commands) {
  auto& command = *root.add_subcommand("locality", "Write where a Kubernetes node stands, for chorus-worker");
  auto const options = std::make_shared<LocalityOptions>();
  command.add_option("--node", options->node, "its name")->required()->check(CLI::Validator(check_node, ""));
  command.add_option("--rack-label", options->rack_label, "the node's label that names its rack")
      ->capture_default_str();
  command.add_option("--output", options->output, "file to write; standard output without it")->type_name("FILE");
  command.add_option("--service-account", options->account, "where the pod's token and ca.crt are")
      ->type_name("DIRECTORY")
      ->capture_default_str();
  commands.bind(command, [options](Session const& session) { return locality(*options, session); });
}

}  // namespace chorus::cli
