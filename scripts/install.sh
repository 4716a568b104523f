#!/bin/sh
# Installs lash and lashd for this user: downloads the newest release, verifies its checksum, and copies both programs into
# $PREFIX/bin. No root, no changes to shell files. If anything fails, programs that are installed already stay as they are.
#
#   LASH_BASE_URL  directory with checksums.txt and the archives
#                  default https://github.com/lash/lashd/releases/latest/download
#                  for version 0.1.0: https://github.com/lash/lashd/releases/download/v0.1.0
#   PREFIX         where bin and share are; default ~/.local
set -eu

base=${LASH_BASE_URL:-https://github.com/lash/lashd/releases/latest/download}
base=${base%/}
prefix=${PREFIX:-${HOME:?HOME is not set; set PREFIX to the directory for bin and share}/.local}
bin=$prefix/bin

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
  case $base in
    https://*) protocols='=https' ;;
    http://127.0.0.1[:/]* | http://localhost[:/]*) protocols='=http,https' ;;
    *) fail "$base is not an https URL; releases are downloaded over https only" ;;
  esac
  system=$(system)

  # The new programs are checked beside the old ones: renames within a file system happen wholly or not at all.
  mkdir -p "$bin" 2>/dev/null && temp=$(mktemp -d "$bin/.lash-install-XXXXXX" 2>/dev/null) ||
    fail "cannot write to $bin; set PREFIX to a directory of yours"
  find "$bin" -maxdepth 1 -name '.lash-install-*' -mmin +60 -exec rm -rf {} + 2>/dev/null || true # of an installation that was killed
  for name in lash lashd; do
    [ ! -d "$bin/$name" ] || fail "$bin/$name is a directory; move it away"
  done
  trap 'rm -rf "$temp"' EXIT
  trap 'exit 1' HUP INT TERM

  fetch "$base/checksums.txt" "$temp/checksums.txt"
  line=$(grep "  lash_[^/]*_$system\.tar\.gz\$" "$temp/checksums.txt" | head -n 1) || true
  [ -n "$line" ] || fail "checksums.txt at $base has no archive for $system; build lash from source"
  want=${line%% *} archive=${line##* }
  version=${archive#lash_} version=${version%_"$system".tar.gz}

  fetch "$base/$archive" "$temp/$archive"
  got=$(digest "$temp/$archive")
  [ "$got" = "$want" ] ||
    fail "the checksum of $archive is wrong: it is $got, but checksums.txt has $want; nothing was changed"
  mkdir "$temp/new"
  tar -xzf "$temp/$archive" -C "$temp/new" || fail "cannot unpack $archive; nothing was changed"
  new=$temp/new/lash_${version}_$system
  program "$new/lash" lash
  program "$new/lashd" lashd

  # An old lash works with a new lashd, so a kill between the two leaves programs that work.
  mv -f "$new/lashd" "$bin/lashd" || fail "cannot replace $bin/lashd; nothing was changed"
  mv -f "$new/lash" "$bin/lash" || fail "lashd is now $version, but $bin/lash cannot be replaced; they work together"
  if [ -d "$new/share" ]; then
    cp -R "$new/share" "$prefix/" || echo "install.sh: man pages and completions could not be copied to $prefix/share" >&2
  fi

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
