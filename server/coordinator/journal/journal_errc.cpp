#include "server/coordinator/journal/journal_errc.hpp"

#include <string>

namespace chorus::coordinator {
namespace {

class Category final : public std::error_category {
 public:
  char const* name() const noexcept override { return "journal"; }
  std::string message(int value) const override {
    switch (static_cast<JournalErrc>(value)) {
      case JournalErrc::not_a_journal:
        return "not a journal";
      case JournalErrc::damaged:
        return "journal damaged";
      case JournalErrc::newer:
        return "journal of a newer release";
      case JournalErrc::in_use:
        return "journal in use";
      case JournalErrc::not_empty:
        return "journal not empty";
      case JournalErrc::not_there:
        return "no journal";
      case JournalErrc::cannot_write:
        return "journal cannot be written";
    }
    return "unknown";
  }
};

}  // namespace

std::error_category const& journal_category() {
  static Category const category;
  return category;
}

}  // namespace chorus::coordinator
