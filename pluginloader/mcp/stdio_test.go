//go:build unix

package mcp_test

import (
	"slices"
	"testing"

	"lashd/rpc/protocol"
)

var goodNames = []string{"mcp__x__again", "mcp__x__asks", "mcp__x__dies", "mcp__x__echo", "mcp__x__env", "mcp__x__fails", "mcp__x__grows", "mcp__x__pid", "mcp__x__shows", "mcp__x__slow", "mcp__x__steps"}

func TestStdio(t *testing.T) {
	t.Run("runtime/K05 issue/4-2 tools of a server are tools of the plugin, and can be called", func(t *testing.T) {
		p := one(t, guest("good"))
		if got := names(p); !slices.Equal(got, goodNames) {
			t.Fatalf("tools %q", got)
		}
		out, err := call(t.Context(), p, "mcp__x__echo", `{"text":"hello"}`, nil)
		if err != nil || out.Status != protocol.OutputSuccess || out.Text != "you said hello" {
			t.Errorf("%+v %v", out, err)
		}
	})
}
