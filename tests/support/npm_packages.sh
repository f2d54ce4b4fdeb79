# For tests that need packages of npm: sourced by their `run`.

skip() { echo "skipped: $*" >&2; exit 77; }
# needs PROGRAM PACKAGES: skips where it is not there, or is so in part only and does not even tell its version.
needs() {
  command -v "$1" >/dev/null || skip "no $1; docker/install-deps $2 installs it"
  local said
  said=$("$1" --version 2>&1) || skip "$1 does not run: $(tail -n 1 <<<"$said"); docker/install-deps $2 installs what it needs"
}

# install_npm_packages HERE WORK PACKAGE: what HERE/package.json pins, PACKAGE among it, into WORK/node_modules, unless it is there
# already. WORK is absolute. Skips the test, and says why, where it cannot be had.
install_npm_packages() {
  local here=$1 work=$2 package=$3
  needs npm all
  if cmp -s "$here/package.json" "$work/package.json" && [ -d "$work/node_modules/$package" ]; then return; fi
  rm -rf "$work/package.json" "$work/install" && mkdir "$work/install" && cp "$here/package.json" "$work/install/"
  (cd "$work/install" && npm install --no-audit --no-fund --no-package-lock --ignore-scripts --loglevel error) >"$work/npm.log" 2>&1 ||
    { tail -n 5 "$work/npm.log" >&2; skip "npm could not install what $here/package.json names"; }
  rm -rf "$work/node_modules" && mv "$work/install/node_modules" "$work/node_modules" && mv "$work/install/package.json" "$work/"
}
