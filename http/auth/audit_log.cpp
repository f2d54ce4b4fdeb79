#include "http/auth/audit_log.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "http/json/json_text.hpp"
#include "http/tls/errc.hpp"

namespace chorus::http {
namespace {

// Removes the last bytes that were written. False if that fails, or if another process has appended since.
bool take_back(int descriptor, off_t bytes) {
  struct stat held {};
  auto const end = ::lseek(descriptor, 0, SEEK_CUR);
  return ::fstat(descriptor, &held) == 0 && held.st_size == end && ::ftruncate(descriptor, end - bytes) == 0;
}

}  // namespace

AuditLog::~AuditLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void AuditLog::reopen() {
  if (descriptor_ >= 0) ::close(descriptor_);
  is_torn_ = false;
  descriptor_ = ::open(file_.path().c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor_ >= 0) return;
  why_closed_ = errno;
  file_.forget();
}

Status AuditLog::open() {
  reopen();
  if (descriptor_ >= 0) return ok();
  return Error(AuthErrc::unreadable, "the audit log " + file_.path() + ": " + std::strerror(why_closed_));
}

void AuditLog::note(Request const& request, Response const& response, TimePoint now, WallTime today) {
  if (file_.has_changed(now)) {
    struct stat named {
    }, held{};
    bool const same = ::stat(file_.path().c_str(), &named) == 0 && ::fstat(descriptor_, &held) == 0 &&
                      named.st_ino == held.st_ino && named.st_dev == held.st_dev;
    if (!same) reopen();
  }
  std::string line;
  auto const put = [&line](std::string_view member, std::string_view text) {
    line += line.empty() ? "{\"" : ",\"";
    (line += member) += "\":";
    append_quoted(line, text);  // a path may have bytes that are not UTF-8, and the line must stay JSON
  };
  put("at", to_text(today));
  put("token", request.caller.token);
  put("from", request.remote);
  put("method", name(request.method));
  put("path", request.path);
  line += ",\"status\":" + std::to_string(response.status);
  if (response.problem) put("code", kind(response.problem->code).name);
  auto const error = append(line + "}\n");
  if (error != 0 && !has_complained_)
    spdlog::error("the audit log {} cannot be written: {}", file_.path(), std::strerror(error));
  has_complained_ = error != 0;
}

int AuditLog::append(std::string line) {
  if (descriptor_ < 0) return why_closed_;
  if (is_torn_) line.insert(line.begin(), '\n');
  std::size_t done = 0;
  while (done < line.size()) {
    auto const written = ::write(descriptor_, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      auto const error = written < 0 ? errno : ENOSPC;
      if (done > 0) is_torn_ = !take_back(descriptor_, static_cast<off_t>(done));
      return error;
    }
    done += static_cast<std::size_t>(written);  // less than all of it on a full disk; the next write says why
  }
  is_torn_ = false;
  return 0;
}

}  // namespace chorus::http
