#!/bin/sh
# Installs lash and lashd for this user: downloads a release, verifies its checksum, and switches to it. No root, no changes to shell
# files. If anything fails, programs that are installed already stay as they are.
#
#   LASH_BASE_URL  address of the releases, if not that of this script
#   LASH_VERSION   version to install, such as 0.1.0; default the newest
#   PREFIX         where bin, lib/lash and share are; default ~/.local
set -eu

base=${LASH_BASE_URL:-@ADDRESS@}
base=${base%/}
prefix=${PREFIX:-${HOME:?HOME is not set; set PREFIX to the directory for bin, lib and share}/.local}
bin=$prefix/bin lib=$prefix/lib/lash

fail() { printf 'install.sh: %s\n' "$1" >&2; exit 1; }

# system prints the name of this system as in the names of archives.
system() {
  case $(uname -s) in
    Linux) os=linux ;;
    Darwin) os=darwin ;;
    *) fail "there is no release for $(uname -s); build lash from source" ;;
  esac
  case $(uname -m) in
    x86_64 | amd64) arch=amd64 ;;
    aarch64 | arm64) arch=arm64 ;;
    *) fail "there is no release for $(uname -m); build lash from source" ;;
  esac
  echo "${os}_$arch"
}

# fetch URL FILE. A server that answers with an error, and a download that is cut, fail.
fetch() {
  if command -v curl >/dev/null 2>&1; then
    curl -fsSL --proto "$protocols" --proto-redir "$protocols" -o "$2" "$1"
  elif command -v wget >/dev/null 2>&1; then
    wget -q -t 3 -O "$2" "$1"
  else
    fail 'curl or wget is needed; install one of them'
  fi || fail "cannot download $1; nothing was changed"
}

# digest prints the SHA-256 of a file.
digest() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum "$1"
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 "$1"
  else
    fail 'sha256sum or shasum is needed; install one of them'
  fi | cut -d ' ' -f 1
}

# program FILE NAME checks that a new program runs here.
program() {
  [ -f "$1" ] || fail "the archive has no program $2; nothing was changed"
  said=$("$1" version 2>&1) || fail "the new $2 does not run on this machine: $said; nothing was changed"
  [ "$said" = "$2 $version" ] || fail "the new $2 says that it is '$said', not $version; nothing was changed"
}

main() {
  case $prefix in /*) ;; *) fail "PREFIX is $prefix, but must be an absolute path" ;; esac
  case $base in
    https://*) protocols='=https' ;;
    http://127.0.0.1[:/]* | http://localhost[:/]*) protocols='=http,https' ;;
    '' | @*) fail 'this copy of install.sh has no address; set LASH_BASE_URL to that of the releases' ;;
    *) fail "$base is not an https URL; releases are downloaded over https only" ;;
  esac
  system=$(system)
  from=$base/latest/download
  [ -z "${LASH_VERSION:-}" ] || from=$base/download/v$LASH_VERSION

  # The release is unpacked where it stays, so that it need not be copied.
  mkdir -p "$lib" 2>/dev/null && temp=$(mktemp -d "$lib/download-XXXXXX" 2>/dev/null) ||
    fail "cannot write to $lib; set PREFIX to a directory of yours"
  trap 'rm -rf "$temp"' EXIT
  trap 'exit 1' HUP INT TERM

  fetch "$from/checksums.txt" "$temp/checksums.txt"
  line=$(grep "  lash_[^/]*_$system\.tar\.gz\$" "$temp/checksums.txt" | head -n 1) || true
  [ -n "$line" ] || fail "checksums.txt at $from has no archive for $system; build lash from source"
  want=${line%% *} archive=${line##* }
  version=${archive#lash_} version=${version%_"$system".tar.gz}

  echo "Downloading lash $version for $system from $base. To stop: Ctrl-C; nothing is changed until the end." >&2
  fetch "$from/$archive" "$temp/$archive"
  got=$(digest "$temp/$archive")
  [ "$got" = "$want" ] ||
    fail "the checksum of $archive is wrong: it is $got, but checksums.txt has $want; nothing was changed"
  tar -xzf "$temp/$archive" -C "$temp" || fail "cannot unpack $archive; nothing was changed"
  new=$temp/lash_${version}_$system
  program "$new/bin/lash" lash
  program "$new/bin/lashd" lashd
  "$new/bin/lash" install --prefix "$prefix" || fail "could not switch to $version"

  echo "Installed lash and lashd $version in $bin."
  case :$PATH: in
    *:"$bin":*) echo 'To start: lash login, then lash chat.' ;;
    *) echo "$bin is not in your PATH. Add this line to the configuration of your shell, such as ~/.profile:"
       echo "  export PATH=\"$bin:\$PATH\"" ;;
  esac
  found=$(command -v lash 2>/dev/null) || found=
  if [ -n "$found" ] && [ "$found" != "$bin/lash" ]; then
    echo "Note: the command lash runs $found, which comes first in your PATH."
  fi
}

main # all of the script is read before anything runs, so a script that is cut does nothing
