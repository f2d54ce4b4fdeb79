#include "worker/bench/ranks/buffer.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace chorus::bench {
namespace {

// memcmp, because the check runs between timed iterations: ranges::equal compares std::byte one by one, and makes other
// ranks wait for longer than what is measured takes.
bool is_same(std::span<std::byte const> some, std::span<std::byte const> others) {
  return some.size() == others.size() && (some.empty() || std::memcmp(some.data(), others.data(), some.size()) == 0);
}

}  // namespace

Buffer::Buffer(std::span<std::byte const> contents, Place place) : place_(place) {
  if (place.gpu != nullptr) {
    on_gpu_ = place.gpu->acquire(contents.size()).value();
    place.gpu->upload(on_gpu_->bytes().data(), contents).value();
    return;
  }
  if (place.arena != nullptr && !contents.empty())
    if (auto block = place.arena->allocate(contents.size()); block.has_value()) {
      shared_ = *block;
      std::copy(contents.begin(), contents.end(), shared_.begin());
      return;
    }
  own_.assign(contents.begin(), contents.end());
}

Buffer::~Buffer() {
  if (!shared_.empty()) place_.arena->free(shared_.data());
}

Buffer::Buffer(Buffer&& other) noexcept
    : place_(other.place_),
      shared_(std::exchange(other.shared_, {})),
      on_gpu_(std::move(other.on_gpu_)),
      own_(std::move(other.own_)) {}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(place_, other.place_);
  std::swap(shared_, other.shared_);
  std::swap(on_gpu_, other.on_gpu_);
  std::swap(own_, other.own_);
  return *this;
}

std::span<std::byte> Buffer::bytes() {
  if (on_gpu_ != nullptr) return on_gpu_->bytes();
  return shared_.empty() ? std::span(own_) : shared_;
}

bool Buffer::holds(std::span<std::byte const> expected) const {
  if (on_gpu_ == nullptr) return is_same(bytes().first(expected.size()), expected);
  bool holds = true;
  auto const look = [&](std::span<std::byte const> piece) {
    holds = holds && is_same(piece, expected.first(piece.size()));
    expected = expected.subspan(piece.size());
  };
  place_.gpu->read(on_gpu_->bytes().first(expected.size()), look).value();
  return holds;
}

}  // namespace chorus::bench
