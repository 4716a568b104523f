#!/bin/sh
# Denies commands with the word forbidden.
if grep -q forbidden; then
  echo "the guard of the project denies this" >&2
  exit 2
fi
