#include "server/cli/connection/connection.hpp"

#include <netdb.h>

#include <algorithm>

#include "http/auth/token_file.hpp"
#include "http/tls/context.hpp"
#include "server/cli/text/units.hpp"

namespace chorus::cli {
namespace {

// No connection takes longer than an answer may.
std::chrono::milliseconds connect_patience(std::chrono::milliseconds patience) {
  return std::min<std::chrono::milliseconds>(patience, std::chrono::seconds(5));
}

std::string format(std::chrono::milliseconds time) {
  return format_seconds(std::chrono::duration<double>(time).count());
}

std::string why_not_verified(httplib::Client const& connection) {
  auto const verdict = connection.get_openssl_verify_result();
  return verdict == X509_V_OK ? "it is for another name" : ::X509_verify_cert_error_string(verdict);
}

// The HTTP client does not say which of the files cannot be used, or why.
Status check_tls_files(Credentials const& credentials) {
  if (credentials.tls_certificate.empty() && credentials.tls_authorities.empty()) return ok();
  http::TlsFiles const files{credentials.tls_certificate, credentials.tls_key, credentials.tls_authorities, false};
  return http::TlsContext(http::TlsContext::Side::client, files).open();
}

// The HTTP client only reports that there was no connection, so the reason is found here.
std::string why_not_connected(std::string const& host) {
  addrinfo* found = nullptr;
  auto const error = ::getaddrinfo(host.c_str(), nullptr, nullptr, &found);
  if (error == 0) ::freeaddrinfo(found);
  return error == 0 ? "nobody listens there" : "the name " + host + " does not resolve: " + ::gai_strerror(error);
}

// A service refuses a client without a certificate only after the handshake.
std::string why_it_ended(Unanswered const& request) {
  std::string const ended = "the connection ended without an answer";
  if (request.url.scheme != "https" || request.shows_certificate) return ended;
  return ended + ": is a client's certificate (--tls-cert, --tls-key) asked for?";
}

}  // namespace

std::string origin_of(http::Url const& url) {
  auto const ipv6 = url.host.find(':') != std::string::npos && !url.host.starts_with('[');
  return url.scheme + "://" + (ipv6 ? "[" + url.host + "]" : url.host) + ":" + std::to_string(url.port);
}

Result<std::unique_ptr<httplib::Client>> connect(std::string const& origin, Credentials const& credentials,
                                                 std::chrono::milliseconds patience) {
  if (origin.starts_with("https:"))
    if (auto const usable = check_tls_files(credentials); !usable) return usable.error();
  auto connection = std::make_unique<httplib::Client>(origin, credentials.tls_certificate, credentials.tls_key);
  connection->set_url_encode(false);
  connection->set_connection_timeout(connect_patience(patience));
  connection->set_read_timeout(patience);
  connection->set_write_timeout(patience);
  if (!credentials.tls_authorities.empty()) connection->set_ca_cert_path(credentials.tls_authorities.c_str());
  if (credentials.token_file.empty()) return connection;
  auto const token = http::read_secret(credentials.token_file);
  if (!token) return token.error();
  connection->set_bearer_token_auth(token->c_str());
  return connection;
}

std::string reason_of(Unanswered const& request, httplib::Client const& connection) {
  switch (request.error) {
    case httplib::Error::Connection:
      return why_not_connected(request.url.host);
    case httplib::Error::ConnectionTimeout:
      return "no connection within " + format(connect_patience(request.patience));
    case httplib::Error::Read:
    case httplib::Error::Write:
      return request.was_silent ? "it was silent for " + format(request.patience) : why_it_ended(request);
    case httplib::Error::SSLLoadingCerts:
      return "the files of --tls-ca, --tls-cert or --tls-key cannot be used";
    case httplib::Error::SSLConnection:
      return "no TLS: is the URL to begin with http://, or is a certificate (--tls-cert, --tls-key) asked for?";
    case httplib::Error::SSLServerVerification:
      return "its certificate is not accepted (" + why_not_verified(connection) +
             "): --tls-ca has to have the authority "
             "that signed it, and the URL a name that it is for";
    default:
      return httplib::to_string(request.error);
  }
}

bool is_without_connection(httplib::Error error) {
  return error == httplib::Error::Connection || error == httplib::Error::ConnectionTimeout;
}

Delivery delivery_of(Unanswered const& request) {
  if (is_without_connection(request.error)) return Delivery::none;
  if (request.error != httplib::Error::Read && request.error != httplib::Error::Write) return Delivery::answered;
  return request.was_silent ? Delivery::silent : Delivery::lost;
}

}  // namespace chorus::cli
