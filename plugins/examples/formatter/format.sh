#!/bin/sh
# Formats the file that a call has written. The call is JSON on stdin, as other agents have it; in what was written, quotes
# are escaped, so it cannot be taken for the call.
event=$(tr '\n' ' ')
for field in file_path path; do
  file=$(printf '%s' "$event" | sed -n 's/.*[{,] *"'$field'" *: *"\([^"\\]*\)".*/\1/p')
  [ -z "$file" ] || break
done
cwd=$(printf '%s' "$event" | sed -n 's/.*[{,] *"cwd" *: *"\([^"\\]*\)".*/\1/p')
case $file in
  '') exit 0 ;;
  /*) ;;
  *) file=${cwd:-.}/$file ;;
esac
[ -f "$file" ] && [ ! -L "$file" ] || exit 0

# try runs a formatter, if there is one.
try() {
  command -v "$1" >/dev/null 2>&1 || return 1
  "$@" "$file" >/dev/null 2>&1 </dev/null
}

case $file in
  *.go) try gofmt -w ;;
  *.rs) try rustfmt ;;
  *.sh) try shfmt -w ;;
  *.c | *.h | *.cc | *.cpp | *.hpp) try clang-format -i ;;
  *.py) try ruff format || try black -q ;;
  *.js | *.ts | *.mts | *.jsx | *.tsx | *.json | *.css | *.html | *.md | *.yaml | *.yml) try prettier --write --log-level silent ;;
esac
exit 0
