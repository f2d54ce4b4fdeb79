// The flags that name a coordinator's store, declared once for the coordinator and for `chorus journal`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "server/coordinator/high_availability/etcd_client.hpp"

namespace chorus::coordinator {

// At most one of the two is named.
struct StoreOptions {
  std::string journal;  // path of the file; "": none
  EtcdOptions etcd;     // without endpoints: none
};

// `options` outlives the parsing. Every flag may come from the environment.
void add_store_flags(CLI::App& app, StoreOptions& options, std::string const& journal_help,
                     std::string const& etcd_help);

}  // namespace chorus::coordinator
