#include "http/tls/certificate.hpp"

#include <openssl/x509v3.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <ctime>

#include "base/ascii.hpp"

namespace chorus::http {
namespace {

WallTime time_of(ASN1_TIME const* time) {
  std::tm parts{};
  if (time == nullptr || ::ASN1_TIME_to_tm(time, &parts) != 1) return WallTime{};
  return WallTime(std::chrono::seconds(::timegm(&parts)));
}

std::string text_of(ASN1_STRING const* string) {
  return {reinterpret_cast<char const*>(::ASN1_STRING_get0_data(string)),
          static_cast<std::size_t>(::ASN1_STRING_length(string))};
}

std::string address_of(ASN1_OCTET_STRING const* octets) {
  auto const bytes = text_of(octets);
  if (bytes.size() == 4) {
    boost::asio::ip::address_v4::bytes_type v4{};
    std::copy(bytes.begin(), bytes.end(), v4.begin());
    return boost::asio::ip::address_v4(v4).to_string();
  }
  if (bytes.size() != 16) return {};
  boost::asio::ip::address_v6::bytes_type v6{};
  std::copy(bytes.begin(), bytes.end(), v6.begin());
  return boost::asio::ip::address_v6(v6).to_string();
}

std::string subject_of(x509_st const& x509) {
  auto* const memory = ::BIO_new(::BIO_s_mem());
  ::X509_NAME_print_ex(memory, ::X509_get_subject_name(&x509), 0, XN_FLAG_ONELINE & ~ASN1_STRFLGS_ESC_MSB);
  char* data = nullptr;
  auto const bytes = ::BIO_get_mem_data(memory, &data);
  std::string subject(data, static_cast<std::size_t>(std::max<long>(bytes, 0)));
  ::BIO_free(memory);
  return subject;
}

}  // namespace

Certificate certificate_of(x509_st const& x509) {
  Certificate certificate;
  certificate.subject = subject_of(x509);
  certificate.begins = time_of(::X509_get0_notBefore(&x509));
  certificate.ends = time_of(::X509_get0_notAfter(&x509));
  auto* const names = static_cast<GENERAL_NAMES*>(::X509_get_ext_d2i(&x509, NID_subject_alt_name, nullptr, nullptr));
  for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i) {
    auto const* const name = sk_GENERAL_NAME_value(names, i);
    if (name->type == GEN_DNS) certificate.names.push_back(text_of(name->d.dNSName));
    if (name->type == GEN_IPADD) certificate.names.push_back(address_of(name->d.iPAddress));
  }
  ::GENERAL_NAMES_free(names);
  return certificate;
}

bool covers(std::vector<std::string> const& names, std::string_view host) {
  boost::system::error_code not_an_address;
  auto const address = boost::asio::ip::make_address(std::string(host), not_an_address);
  return std::any_of(names.begin(), names.end(), [&](std::string const& name) {
    if (!not_an_address) {
      boost::system::error_code error;
      return boost::asio::ip::make_address(name, error) == address && !error;
    }
    if (equals_ignoring_case(name, host)) return true;
    auto const dot = host.find('.');
    return name.starts_with("*.") && dot != std::string_view::npos && dot > 0 &&
           equals_ignoring_case(std::string_view(name).substr(1), host.substr(dot));
  });
}

std::string joined(std::vector<std::string> const& names) {
  std::string text;
  for (auto const& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "no name" : text;
}

}  // namespace chorus::http
