package acp

import (
	"testing"

	"lashd/rpc/protocol"
)

func TestArgumentsHint(t *testing.T) {
	for want, c := range map[string]protocol.CommandInfo{
		"<file: Path of the file> [focus]": {Hint: "<file> [focus]", Arguments: []protocol.CommandArgument{{Name: "file", Description: "Path of the file", Required: true}, {Name: "focus"}}},
		"[pr-number]":                      {Hint: "[pr-number]"},
		"":                                 {},
	} {
		if got := argumentsHint(c); got != want {
			t.Errorf("part13/8 an editor shows %q for the arguments of %+v, want %q", got, c, want)
		}
	}
}
