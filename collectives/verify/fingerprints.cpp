#include "collectives/verify/fingerprints.hpp"

#include <array>
#include <cstdio>

namespace chorus::verify {
namespace {

// splitmix64 (Steele, Lea, Flood, OOPSLA 2014) of rank and chunk.
std::uint64_t random_number(plan::Rank rank, std::uint32_t chunk) {
  auto x = (std::uint64_t{rank} << 32 | chunk) + 0x9e3779b97f4a7c15;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}

}  // namespace

Fingerprints::Id Fingerprints::input(plan::Rank rank, std::uint32_t chunk, bool finished) {
  return keep({random_number(rank, chunk), chunk, finished, true});
}

Fingerprints::Id Fingerprints::sum(Id a, Id b) {
  auto const &first = values_[a], &second = values_[b];
  return keep({first.hash + second.hash, first.chunk == second.chunk ? first.chunk : mixed, false});
}

Fingerprints::Id Fingerprints::finish(Id value) {
  auto copy = values_[value];
  copy.finished = true;
  return keep(copy);
}

bool Fingerprints::complete(Id value, std::uint32_t ranks) {
  return values_[value].chunk != mixed && complete(value, ranks, values_[value].chunk);
}

bool Fingerprints::complete(Id value, std::uint32_t ranks, std::uint32_t chunk) {
  if (values_[value].chunk != chunk) return false;
  if (complete_.size() <= chunk) complete_.resize(chunk + std::size_t{1});
  auto& whole = complete_[chunk];
  if (whole == 0)
    for (plan::Rank rank = 0; rank < ranks; ++rank) whole += random_number(rank, chunk);
  return values_[value].hash == whole;
}

bool Fingerprints::is_input(Id value, plan::Rank rank, std::uint32_t chunk) const {
  return values_[value].chunk == chunk && values_[value].hash == random_number(rank, chunk);
}

std::string Fingerprints::describe(Id value) const {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(values_[value].hash));
  return "chunk " + (values_[value].chunk == mixed ? "several" : std::to_string(values_[value].chunk)) +
         ", fingerprint " + text.data();
}

Fingerprints::Id Fingerprints::keep(Value value) {
  values_.push_back(value);
  return static_cast<Id>(values_.size() - 1);
}

}  // namespace chorus::verify
