// Answers with exactly the bytes that a test names, in its own thread, for what a real server would not do.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace chorus::http::testing {

// One connection: what to send after each request received, the last one followed by closing. "" sends nothing.
using Script = std::vector<std::string>;

inline std::string const keep_silent = "(silence)";  // receives requests, until the client closes

class ScriptedServer {
 public:
  // Accepts one connection after the other and plays its script; further ones are refused.
  explicit ScriptedServer(std::vector<Script> connections);
  ~ScriptedServer();
  ScriptedServer(ScriptedServer const&) = delete;
  ScriptedServer& operator=(ScriptedServer const&) = delete;

  [[nodiscard]] std::string url(std::string const& path = "/") const;
  // After the last connection has ended.
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
