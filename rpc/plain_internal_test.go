package rpc

import (
	"errors"
	"testing"
)

func TestPlainErrors(t *testing.T) {
	for _, c := range []struct{ err, want string }{
		{"it did not start.\nIt ran in a sandbox. Add this to config.toml:\n[mcp.x]\nnetwork = true", "it did not start. It ran in a sandbox. Add this to config.toml: [mcp.x]; network = true"},
		{errors.Join(errors.New("one"), errors.New("two")).Error(), "one; two"},
	} {
		if got := plain(errors.New(c.err)); got != c.want {
			t.Errorf("part13/6 the message is %q, want %q", got, c.want)
		}
	}
}
