// Who has changed what: one JSON object per line, appended to a file.
//
//   {"at":"2026-11-21T21:30:00Z","token":"ci","from":"10.0.0.7:49152","method":"PUT","path":"/v1/groups/train",
//    "status":200}
//
// Neither tokens nor queries nor bodies are in it.
#pragma once

#include <string>

#include "collectives/core/result.hpp"
#include "http/auth/calendar.hpp"
#include "http/auth/watched_file.hpp"
#include "http/message.hpp"

namespace chorus::http {

// On one thread. A file that is moved away (rotated) is made anew within a second.
class AuditLog {
 public:
  explicit AuditLog(std::string path) : file_(std::move(path)) {}
  ~AuditLog();
  AuditLog(AuditLog const&) = delete;
  AuditLog& operator=(AuditLog const&) = delete;

  // Errors: AuthErrc::unreadable.
  [[nodiscard]] Status open();
  // Each line is one write. What cannot be written is complained about in the log, once until it works again.
  void note(Request const& request, Response const& response, TimePoint now, WallTime today);

 private:
  void reopen();

  WatchedFile file_;
  int descriptor_ = -1;
  bool has_complained_ = false;
};

}  // namespace chorus::http
