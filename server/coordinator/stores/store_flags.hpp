// The flags that name a coordinator's store, declared once for the coordinator and for `chorus journal`.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "server/coordinator/high_availability/etcd_client.hpp"

namespace chorus::coordinator {

// The named store; at most one of both.
struct StoreOptions {
  std::string journal;  // path of the file; "": no journal
  EtcdOptions etcd;     // without endpoints: no etcd
};

// `options` outlives the parsing. Each flag can also be set by an environment variable.
void add_store_flags(CLI::App& app, StoreOptions& options, std::string const& journal_help,
                     std::string const& etcd_help);

}  // namespace chorus::coordinator
