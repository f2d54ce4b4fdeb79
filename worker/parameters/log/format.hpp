// The file format of push logs: docs/reference/push_log.md. Private to this directory.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace chorus::parameters::log_format {

static_assert(std::endian::native == std::endian::little,
              "the numbers of the format lie in memory as they are written");

constexpr std::array<char, 4> push_magic{'C', 'P', 'S', '1'}, commit_magic{'C', 'C', 'M', '1'},
    base_magic{'C', 'B', 'S', '1'};

// The head of every push, and, alone, a commit, which means that everything below its position has been synced.
struct EntryHead {
  std::array<char, 4> magic{};
  std::uint32_t text_bytes = 0;  // of the push as JSON, which follows the head
  std::uint64_t data_bytes = 0;  // of its data, which follows the text
  std::uint64_t position = 0;    // of the shard, before the push
  std::uint64_t content = 0;     // XXH3 of text and data
  std::uint64_t head = 0;        // XXH3 of the bytes before this one
};
static_assert(sizeof(EntryHead) == 40 && std::has_unique_object_representations_v<EntryHead>);

// The head of a base. The text follows, then the arrays one after the other.
struct BaseHead {
  std::array<char, 4> magic{};
  std::uint32_t text_bytes = 0;
  std::uint64_t data_bytes = 0;
  std::uint64_t content = 0;
  std::uint64_t head = 0;
};
static_assert(sizeof(BaseHead) == 32 && std::has_unique_object_representations_v<BaseHead>);

[[nodiscard]] std::uint64_t digest_of(std::span<std::byte const> bytes);

template <class Head>
[[nodiscard]] std::uint64_t digest_of_head(Head const& head) {
  return digest_of(std::as_bytes(std::span(&head, 1)).first(sizeof(Head) - sizeof head.head));
}

// The digest of bytes that arrive in parts.
class Digest {
 public:
  Digest();
  ~Digest();
  Digest(Digest const&) = delete;
  Digest& operator=(Digest const&) = delete;
  void add(std::span<std::byte const> bytes);
  [[nodiscard]] std::uint64_t value() const;

 private:
  void* state_;
};

// The parts of a file name, "base-7" or "log-7". parse_file_name() returns nothing for any other name.
struct FileName {
  bool is_base = false;
  std::uint64_t generation = 0;
};
[[nodiscard]] std::optional<FileName> parse_file_name(std::string_view name);
[[nodiscard]] std::string file_name(bool is_base, std::uint64_t generation);

// Names of directories, such as "epoch-3".
[[nodiscard]] std::optional<std::uint32_t> parse_epoch_name(std::string_view name);
[[nodiscard]] std::string epoch_name(std::uint32_t epoch);

}  // namespace chorus::parameters::log_format
