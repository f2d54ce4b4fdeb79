// A request that comes again byte for byte, such as the pulls of a training loop.
//
// It is not parsed again, and the head of its answer is not written again.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "http/message/message.hpp"
#include "http/routing/router.hpp"

namespace chorus::http {

// The last GET of one connection. Runs on the server's thread.
class RepeatedRequest {
 public:
  // The connection has received these bytes, the first of a request.
  void arrives(std::string_view received);
  // That request has been answered with this head, and with a payload that `again` renews. From its second time on it
  // is known.
  void answered(Request request, Router const& router, unsigned status, std::string const& head, Again again);

  [[nodiscard]] bool is_known() const { return known_ != nullptr; }
  void forget() { known_.reset(); }

  // Of a known request.
  [[nodiscard]] bool comes_again(std::string_view received) const { return received.starts_with(known_->asked); }
  [[nodiscard]] std::size_t bytes() const { return known_->asked.size(); }
  [[nodiscard]] Request& request() { return known_->request; }  // authorization notes the caller there
  [[nodiscard]] Router::Match const& match() const { return known_->match; }
  [[nodiscard]] unsigned status() const { return known_->status; }
  // Empty if it must be handled again.
  [[nodiscard]] std::optional<SharedBytes> payload() const { return known_->again(); }
  // Head of the answer with this date; valid until the next call.
  [[nodiscard]] std::string_view head(std::string_view date);

 private:
  struct Known {
    std::string asked;  // bytes of the request
    Request request;
    Router::Match match;
    unsigned status = 200;
    std::string head;         // of the answer
    std::size_t date_at = 0;  // position of the date in `head`
    Again again;
  };
  std::string asked_;         // header bytes of the current request, if it may come again
  std::string asked_before_;  // header bytes of an earlier request
  std::unique_ptr<Known> known_;
};

}  // namespace chorus::http
