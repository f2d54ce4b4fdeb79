// Certificates for tests, made while they run: no key lies in the repository.
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

// Signs for names and addresses; its files are gone with it.
class Authority {
 public:
  explicit Authority(std::string const& name = "test authority");

  [[nodiscard]] std::string path() const { return directory_ / "ca.pem"; }

  // In files called NAME.pem and NAME.key, written anew if they exist. `lifetime` is counted from now, and the
  // certificate begins a day before.
  Identity issue(std::string const& name, std::vector<std::string> const& names,
                 std::chrono::seconds lifetime = std::chrono::hours(1));

 private:
  ScratchDirectory directory_;
  std::shared_ptr<evp_pkey_st> key_;
  std::shared_ptr<x509_st> certificate_;
  long serial_ = 1;
};

}  // namespace chorus::testing
