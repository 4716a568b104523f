package cli

import (
	"cmp"
	"strings"

	"lashd/cmd/internal/console"
)

// who names the originator of an answer or a request in words. Clients without a name of their own, such as lash, are those of the user.
func who(by string) string {
	switch {
	case strings.HasPrefix(by, "cli_"), by == "internal:client":
		return "you"
	case by == "internal:tool":
		return "the agent"
	case by == "internal:plugin":
		return "a plugin"
	case strings.HasPrefix(by, "internal:"):
		return "lashd"
	}
	return cmp.Or(console.OneLine(by, 60), "-")
}
