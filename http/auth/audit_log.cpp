#include "http/auth/audit_log.hpp"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/stat.h>
#include <unistd.h>

#include <boost/json/object.hpp>
#include <boost/json/serialize.hpp>
#include <cerrno>
#include <cstring>

#include "http/tls/errc.hpp"

namespace chorus::http {

AuditLog::~AuditLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void AuditLog::reopen() {
  if (descriptor_ >= 0) ::close(descriptor_);
  descriptor_ = ::open(file_.path().c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
}

Status AuditLog::open() {
  reopen();
  if (descriptor_ >= 0) return ok();
  return Error(AuthErrc::unreadable, "the audit log " + file_.path() + ": " + std::strerror(errno));
}

void AuditLog::note(Request const& request, Response const& response, TimePoint now, WallTime today) {
  if (file_.has_changed(now)) {
    struct stat named {
    }, held{};
    bool const same = ::stat(file_.path().c_str(), &named) == 0 && ::fstat(descriptor_, &held) == 0 &&
                      named.st_ino == held.st_ino && named.st_dev == held.st_dev;
    if (!same) reopen();
  }
  boost::json::object line;
  line["at"] = to_text(today);
  line["token"] = request.caller.token;
  line["from"] = request.remote;
  line["method"] = name(request.method);
  line["path"] = request.path;
  line["status"] = response.status;
  if (response.problem) line["code"] = kind(response.problem->code).name;
  auto const text = boost::json::serialize(line) + '\n';
  auto const written = ::write(descriptor_, text.data(), text.size());
  bool const good = written == static_cast<ssize_t>(text.size());
  if (!good && !has_complained_)
    spdlog::error("the audit log {} cannot be written: {}", file_.path(), std::strerror(errno));
  has_complained_ = !good;
}

}  // namespace chorus::http
