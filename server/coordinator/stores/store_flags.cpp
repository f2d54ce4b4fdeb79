#include "server/coordinator/stores/store_flags.hpp"

#include "http/client/client.hpp"
#include "server/coordinator/text/identifier.hpp"

namespace chorus::coordinator {
namespace {

std::string check_urls(std::string const& text) {
  auto const urls = http::parse_services(text);
  return urls ? "" : urls.error().detail;
}

std::string check_cluster(std::string const& text) {
  return is_identifier(text) ? "" : "'" + text + "' is not 1 to 64 letters, digits and ._-";
}

}  // namespace

void add_store_flags(CLI::App& app, StoreOptions& options, std::string const& journal_help,
                     std::string const& etcd_help) {
  app.add_option("--journal", options.journal, journal_help)->envname("CHORUS_JOURNAL")->type_name("FILE");
  auto const flag = [&app](char const* name, std::string& value, char const* help, char const* variable) {
    return app.add_option(name, value, help)->envname(variable);
  };
  auto& etcd = options.etcd;
  auto const take_urls = [&etcd](std::string const& urls) { etcd.endpoints = http::parse_services(urls).value(); };
  auto* const urls = app.add_option_function<std::string>("--etcd", take_urls, etcd_help)
                         ->envname("CHORUS_ETCD")
                         ->check(check_urls)
                         ->excludes("--journal");
  flag("--cluster", etcd.cluster, "name of this cluster in etcd; others may share it", "CHORUS_CLUSTER")
      ->check(check_cluster)
      ->needs(urls)
      ->capture_default_str();
  auto* const user = flag("--etcd-user", etcd.user, "user of etcd", "CHORUS_ETCD_USER")->needs(urls);
  auto* const password =
      flag("--etcd-password-file", etcd.password_file, "file with its password", "CHORUS_ETCD_PASSWORD_FILE")
          ->check(CLI::ExistingFile)
          ->needs(user);
  user->needs(password);
  flag("--etcd-ca", etcd.tls_authorities, "PEM file of whom to believe that it is etcd", "CHORUS_ETCD_CA")
      ->check(CLI::ExistingFile)
      ->needs(urls);
  auto* const certificate =
      flag("--etcd-cert", etcd.tls_certificate, "PEM file of the certificate to show to etcd", "CHORUS_ETCD_CERT")
          ->check(CLI::ExistingFile)
          ->needs(urls);
  auto* const key = flag("--etcd-key", etcd.tls_key, "PEM file of its key", "CHORUS_ETCD_KEY")
                        ->check(CLI::ExistingFile)
                        ->needs(certificate);
  certificate->needs(key);
}

}  // namespace chorus::coordinator
