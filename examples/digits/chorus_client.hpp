// What a training program needs of Chorus, in plain HTTP to its own worker: put a tensor, all_reduce it with the other
// members of the group, get it back. Any language with an HTTP client can do the same.
#pragma once

#include <httplib.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace digits {

struct Membership {
  std::uint32_t rank = 0;
  std::uint32_t ranks = 1;
  std::uint32_t epoch = 0;
  std::uint64_t next_sequence = 0;  // of this member's next call
};

struct AllReduceReport {
  std::string algorithm;
  double seconds = 0;
};

// Not thread-safe: one connection, kept alive. Every method throws std::runtime_error with the service's problem.
class ChorusClient {
 public:
  // worker_url: "http://127.0.0.1:7071". CHORUS_TOKEN_FILE, if set, is a file with the token that the worker asks for,
  // CHORUS_TLS_CA one with the authorities of an https URL.
  explicit ChorusClient(std::string const& worker_url);

  Membership membership(std::string const& group);
  void put(std::string const& tensor, std::span<float const> values);
  void get(std::string const& tensor, std::span<float> values);  // values.size() elements, or it throws
  // The sum. The call says which one of the group's it is, so it can be repeated where no answer came: the worker knows
  // it again. Moves on to the next sequence.
  AllReduceReport all_reduce(std::string const& group, Membership& member, std::string const& tensor);

 private:
  std::string post(std::string const& path, std::string const& body, httplib::Headers const& headers);

  httplib::Client http_;
  std::string url_;
  std::string name_;  // drawn; begins the keys of this client's requests
};

}  // namespace digits
