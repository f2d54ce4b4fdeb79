// Shared memory for the ranks of a test.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "worker/engine/testing/cases/case.hpp"
#include "worker/memory/arena.hpp"

namespace chorus::engine::testing {

using Arenas = std::vector<std::shared_ptr<memory::Arena>>;  // by rank; empty: the ranks have no arenas

enum class Tensors : bool { in_arenas, elsewhere };

[[nodiscard]] Arenas make_arenas(std::uint32_t ranks, std::uint64_t capacity_bytes = std::uint64_t{1} << 30);
// The buffer keeps the arena alive.
[[nodiscard]] Buffer allocate_in(std::shared_ptr<memory::Arena> const& arena, std::size_t bytes);

}  // namespace chorus::engine::testing
