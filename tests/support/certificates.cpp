#include "tests/support/certificates.hpp"

#include <openssl/ec.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdio>
#include <stdexcept>

namespace chorus::testing {
namespace {

constexpr long day_s = 86400;

std::shared_ptr<EVP_PKEY> make_key() { return {EVP_EC_gen("P-256"), EVP_PKEY_free}; }

void name_it(X509& certificate, std::string const& name) {
  X509_NAME_add_entry_by_txt(X509_get_subject_name(&certificate), "CN", MBSTRING_UTF8,
                             reinterpret_cast<unsigned char const*>(name.c_str()), -1, -1, 0);
}

void extend(X509& certificate, X509& issuer, int what, std::string const& value) {
  X509V3_CTX context{};
  X509V3_set_ctx(&context, &issuer, &certificate, nullptr, nullptr, 0);
  auto* const extension = X509V3_EXT_conf_nid(nullptr, &context, what, value.c_str());
  if (extension == nullptr) throw std::runtime_error("no extension " + value);
  X509_add_ext(&certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

std::shared_ptr<X509> make_certificate(EVP_PKEY& key, std::string const& name, long serial, long lifetime_s) {
  std::shared_ptr<X509> certificate(X509_new(), X509_free);
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -day_s);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), lifetime_s);
  X509_set_pubkey(certificate.get(), &key);
  name_it(*certificate, name);
  return certificate;
}

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
File open(std::string const& path) { return {std::fopen(path.c_str(), "we"), std::fclose}; }

}  // namespace

Authority::Authority(std::string const& name) : key_(make_key()) {
  certificate_ = make_certificate(*key_, name, serial_++, day_s);
  X509_set_issuer_name(certificate_.get(), X509_get_subject_name(certificate_.get()));
  extend(*certificate_, *certificate_, NID_basic_constraints, "critical,CA:TRUE");
  extend(*certificate_, *certificate_, NID_subject_key_identifier, "hash");
  X509_sign(certificate_.get(), key_.get(), EVP_sha256());
  PEM_write_X509(open(path()).get(), certificate_.get());
}

Identity Authority::issue(std::string const& name, std::vector<std::string> const& names,
                          std::chrono::seconds lifetime) {
  auto const key = make_key();
  auto const certificate = make_certificate(*key, name, serial_++, static_cast<long>(lifetime.count()));
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate_.get()));
  std::string list;
  for (auto const& one : names) {
    bool const is_address =
        one.find_first_not_of("0123456789.") == std::string::npos || one.find(':') != std::string::npos;
    list += (list.empty() ? "" : ",") + std::string(is_address ? "IP:" : "DNS:") + one;
  }
  if (!list.empty()) extend(*certificate, *certificate_, NID_subject_alt_name, list);
  X509_sign(certificate.get(), key_.get(), EVP_sha256());
  Identity const identity{directory_ / (name + ".pem"), directory_ / (name + ".key")};
  PEM_write_X509(open(identity.certificate).get(), certificate.get());
  PEM_write_PrivateKey(open(identity.key).get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
  return identity;
}

}  // namespace chorus::testing
