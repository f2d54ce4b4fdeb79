// Certificates for tests, made at run time, so that the repository has no key.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/scratch_directory.hpp"

struct evp_pkey_st;
struct x509_st;

namespace chorus::testing {

// Paths of PEM files.
struct Identity {
  std::string certificate;
  std::string key;
};

// A certificate authority; its files are deleted with it.
class Authority {
 public:
  explicit Authority(std::string const& name = "test authority");

  [[nodiscard]] std::string path() const { return directory_ / "ca.pem"; }

  // Makes NAME.pem and NAME.key, and overwrites existing ones. `lifetime` counts from now; the certificate is valid
  // from a day before.
  Identity issue(std::string const& name, std::vector<std::string> const& names,
                 std::chrono::seconds lifetime = std::chrono::hours(1));

 private:
  ScratchDirectory directory_;
  std::shared_ptr<evp_pkey_st> key_;
  std::shared_ptr<x509_st> certificate_;
  long serial_ = 1;
};

}  // namespace chorus::testing
