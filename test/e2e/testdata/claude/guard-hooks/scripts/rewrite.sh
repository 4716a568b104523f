#!/bin/sh
# Allows every command, and replaces "slow" by "quick" in it.
input=$(cat)
case $input in
*slow*) echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow", "permissionDecisionReason": "quicker", "updatedInput": {"command": "echo quick"}}}' ;;
esac
