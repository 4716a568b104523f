#!/bin/sh
# Formats the file that a tool call has written. The call is JSON on stdin. Quotes in file contents are escaped, so contents cannot
# be mistaken for fields of the call.
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

# try runs a formatter if it is installed.
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
