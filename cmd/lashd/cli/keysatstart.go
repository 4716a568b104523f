package cli

import (
	"fmt"
	"strings"
	"time"

	"lashd/cmd/internal/providers"
)

// notSetAtStart returns a function that says what to do about a key that the
// daemon lacks; started is the start time of the daemon.
func notSetAtStart(started time.Time) func(name string, variables []string) string {
	return func(name string, variables []string) string {
		if _, ok := providers.PresetOf(name); ok {
			return "run lash login " + name
		}
		return fmt.Sprintf(`%s was not set when the daemon started (%s). Export it and use lash run or lash chat in the same shell; `+
			`both pass the key to the daemon. For another model server, set base_url in config.toml and restart the daemon with lash stop`, strings.Join(variables, " or "), started.Format(time.DateTime))
	}
}
