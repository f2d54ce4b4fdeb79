// The value of a result in programs for which every failure is the end.
#pragma once

#include <type_traits>
#include <utility>

#include "collectives/core/result.hpp"

// Throws UnexpectedError if there is no value.
template <class Value>
auto must(chorus::Result<Value> result) {
  if (result.has_error()) throw chorus::UnexpectedError(result.error());
  if constexpr (!std::is_void_v<Value>) return std::move(*result);
}
