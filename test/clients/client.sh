#!/usr/bin/env bash
# Plays the script with nothing but a shell and jq, a JSON value a line: client.sh SCRIPT WORKSPACE LASHD ARGS...
# What it was told goes to stdout.
set -euo pipefail
script=$1 kept=$(jq -nc --arg cwd "$2" '{"$cwd": $cwd}') id=0 at=0 events=()
shift 2
coproc lashd { exec "$@"; }
exec {out}<&"${lashd[0]}" {in}>&"${lashd[1]}" # bash closes its own when lashd ends

say() { printf '%s\n' "$1" >&"$in"; }

# hear reads a message. Events are put aside; the rest is left in $message.
hear() {
  IFS= read -r message <&"$out" || return
  if [ "$(jq -r .method <<<"$message")" = session/event ]; then
    events+=("$(jq -c .params <<<"$message")")
  fi
}

# keep remembers what a step wants of the value $2, under the names that it gives it.
keep() {
  kept=$(jq -c --argjson step "$1" --argjson kept "$kept" \
    '. as $value | $kept + (($step.keep // {}) | map_values(. as $path | $value | getpath($path)))' <<<"$2")
}

call() {
  id=$((id + 1))
  say "$(jq -c --argjson id $id '{jsonrpc: "2.0", $id, method: .call, params}' <<<"$1")"
  until [ "${message:+$(jq .id <<<"$message")}" = $id ]; do hear; done
  jq -c --argjson step "$1" '{call: $step.call, result, error} | del(.[] | nulls)' <<<"$message"
  keep "$1" "$(jq -c .result <<<"$message")"
}

await() {
  for (( ; ; at++)); do
    while ((at == ${#events[@]})); do hear; done
    [ "$(jq -r .type <<<"${events[at]}")" != "$(jq -r .await <<<"$1")" ] || break
  done
  keep "$1" "${events[at]}"
  at=$((at + 1))
}

while IFS= read -r line <&3; do
  step=$(jq -c --argjson kept "$kept" 'walk(if type == "string" and $kept[.] then $kept[.] else . end)' <<<"$line")
  case $(jq -r 'keys | map(select(. == ("call", "await", "notify")))[0]' <<<"$step") in
    call) call "$step" ;;
    await) await "$step" ;;
    notify) say "$(jq -c '{jsonrpc: "2.0", method: .notify}' <<<"$step")" ;;
  esac
done 3<"$script"
while hear; do :; done
for event in "${events[@]}"; do jq -c '{event: .}' <<<"$event"; done
