// Result and Status: errors that can happen are values.
//
// Every module has one enumeration of error conditions, with a make_error_code that makes a std::error_code of each. An
// Error adds a sentence for people: which rank, which field, both values.
#pragma once

#include <boost/system/result.hpp>
#include <stdexcept>
#include <string>
#include <system_error>
#include <type_traits>
#include <utility>

namespace chorus {

struct Error {
  std::error_code code;
  std::string detail;  // one sentence, without a full stop at the end

  Error() = default;
  Error(std::error_code c, std::string d) : code(c), detail(std::move(d)) {}

  template <class Enum>
  requires std::is_error_code_enum_v<Enum> Error(Enum e, std::string d)
      : code(make_error_code(e)), detail(std::move(d)) {}

  friend bool operator==(Error const&, Error const&) = default;
};

// Thrown by Result::value() on an error. A caller that does not check for errors first chooses this exception.
class UnexpectedError : public std::runtime_error {
 public:
  explicit UnexpectedError(Error e) : std::runtime_error(e.code.message() + ": " + e.detail), error(std::move(e)) {}
  Error error;
};

[[noreturn]] inline void throw_exception_from_error(Error const& e, boost::source_location const&) {
  throw UnexpectedError(e);
}

template <class T>
class [[nodiscard]] Result : public boost::system::result<T, Error> {
 public:
  using boost::system::result<T, Error>::result;
};

// Result of functions that return no value. Success is `return ok();`.
using Status = Result<void>;
inline Status ok() { return {}; }

}  // namespace chorus
