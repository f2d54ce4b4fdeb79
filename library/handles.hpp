// What the opaque types of the C interface are.
#pragma once

#include <chorus/chorus.h>

#include <cstddef>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "worker/api/joined_group.hpp"
#include "worker/api/local_coordinator.hpp"
#include "worker/api/worker.hpp"

struct chorus_error {
  chorus_status_t status = CHORUS_OK;
  std::string text;
  std::vector<std::uint32_t> ranks;
};

struct chorus_worker {
  // Held shared by calls on the worker, and alone by its stop.
  std::shared_mutex stopping;
  std::optional<chorus::Worker> worker;  // empty once it was stopped
  std::string const id, url;

  explicit chorus_worker(chorus::Worker started) : worker(std::move(started)), id(worker->id()), url(worker->url()) {}
};

struct chorus_group {
  chorus::JoinedGroup group;
};

struct chorus_request {
  chorus::JoinedGroup group;  // this and `got` outlive the handle, whose destructor waits
  std::unique_ptr<chorus::Received> got;
  chorus_received_t* received = nullptr;  // takes what was got; null: nobody asks
  chorus::Handle handle;
};

struct chorus_coordinator {
  chorus::LocalCoordinator coordinator;
};

struct chorus_memory {
  std::span<std::byte> bytes;
  std::variant<std::shared_ptr<void>, chorus::Worker::Registration> owner;
};
