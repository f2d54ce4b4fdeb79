#include "http/server/repeated_request.hpp"

#include <utility>

namespace chorus::http {
namespace {

constexpr std::size_t bytes_max = 4096;  // largest request that is recognised when it comes again

}  // namespace

void RepeatedRequest::arrives(std::string_view received) {
  auto const end_of_header = received.substr(0, bytes_max).find("\r\n\r\n");
  auto const may_repeat = received.starts_with("GET ") && end_of_header != std::string_view::npos;
  asked_ = may_repeat ? received.substr(0, end_of_header + 4) : std::string_view();
}

void RepeatedRequest::answered(Request request, Router const& router, unsigned status, std::string const& head,
                               Again again) {
  known_.reset();
  if (asked_.empty()) return;
  if (asked_ != asked_before_) {
    asked_before_ = asked_;
    return;
  }
  constexpr std::string_view before_date = "\r\nDate: ";
  known_ = std::make_unique<Known>();
  known_->match = router.match(request);
  known_->asked = asked_;
  known_->request = std::move(request);
  known_->status = status;
  known_->head = head;
  known_->date_at = head.rfind(before_date) + before_date.size();
  known_->again = std::move(again);
}

std::string_view RepeatedRequest::head(std::string_view date) {
  known_->head.replace(known_->date_at, date.size(), date);
  return known_->head;
}

}  // namespace chorus::http
