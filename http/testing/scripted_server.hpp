// Answers with exactly the bytes that a test names, on its own thread, for behaviour that no real server shows.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace chorus::http::testing {

// The script of one connection: text to send after each request; after the last one the connection is closed. "" sends
// nothing.
using Script = std::vector<std::string>;

inline std::string const keep_silent = "(silence)";  // receives requests until the client closes

class ScriptedServer {
 public:
  // Accepts one connection after the other and plays its script; refuses further ones.
  explicit ScriptedServer(std::vector<Script> connections);
  ~ScriptedServer();
  ScriptedServer(ScriptedServer const&) = delete;
  ScriptedServer& operator=(ScriptedServer const&) = delete;

  [[nodiscard]] std::string url(std::string const& path = "/") const;
  // Call it after the last connection has ended.
  [[nodiscard]] std::vector<std::string> requests();

 private:
  void play();

  std::vector<Script> connections_;
  int listener_ = -1;
  std::uint16_t port_ = 0;
  std::vector<std::string> requests_;
  std::thread thread_;
};

}  // namespace chorus::http::testing
