// The log of changes and their callers: one JSON object per line, appended to a file.
//
//   {"at":"2026-11-21T21:30:00Z","token":"ci","from":"10.0.0.7:49152","method":"PUT","path":"/v1/groups/train",
//    "status":200}
//
// The log contains no tokens, queries or bodies.
#pragma once

#include <string>

#include "base/calendar.hpp"
#include "base/runtime/watched_file.hpp"
#include "collectives/core/result.hpp"
#include "http/message/message.hpp"

namespace chorus::http {

// Used on one thread. If the file is moved away (rotated), a new one is made within a second; if that fails, the log
// tries again each second.
class AuditLog {
 public:
  explicit AuditLog(std::string path) : file_(std::move(path)) {}
  ~AuditLog();
  AuditLog(AuditLog const&) = delete;
  AuditLog& operator=(AuditLog const&) = delete;

  // Errors: AuthErrc::unreadable.
  [[nodiscard]] Status open();
  // Each line is one write, and is in the file whole or not at all. Failed writes are reported in the service's log,
  // once until writing works again.
  void note(Request const& request, Response const& response, TimePoint now, WallTime today);

 private:
  void reopen();
  [[nodiscard]] int append(std::string line);  // 0, or the error of the system

  WatchedFile file_;
  int descriptor_ = -1;
  int why_closed_ = 0;  // error of the system, if there is no descriptor
  bool has_complained_ = false;
  bool is_torn_ = false;  // the file ends with a part of a line
};

}  // namespace chorus::http
