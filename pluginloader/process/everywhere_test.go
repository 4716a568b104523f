//go:build unix

package process_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/pluginloader/process"
)

// places are where a plugin misbehaves in the tables that go through all of them, and what has it do so.
var places = []struct {
	name, method string
	use          func(*testing.T, *process.Factory, *plugin.Session) error
}{
	{"start-up", "initialize", func(t *testing.T, f *process.Factory, _ *plugin.Session) error { return f.Start(t.Context()) }},
	{"hook", "hook/beforeTurn", func(t *testing.T, _ *process.Factory, s *plugin.Session) error { return turnHook(t.Context(), s) }},
	{"catalog", "hook/catalog", func(t *testing.T, _ *process.Factory, s *plugin.Session) error { return catalogHook(t.Context(), s) }},
	{"prose", "hook/projectProse", func(t *testing.T, _ *process.Factory, s *plugin.Session) error { return proseHook(t.Context(), s) }},
	{"tool", "tool/execute", func(t *testing.T, _ *process.Factory, s *plugin.Session) error { return toolCall(t.Context(), s) }},
	{"shutdown", "shutdown", func(t *testing.T, f *process.Factory, s *plugin.Session) error {
		return errors.Join(turnHook(t.Context(), s), f.Shutdown(t.Context()))
	}},
}

// everywhere lists misbehaviours that can occur at each place, with the results of a start, a hook and a call. A shutdown always
// ends. Kinds 4, 5 and 6 are of the handshake, and 27 is many starts: see TestMisbehaviour and TestSupervisor. 9
// is of another framing: "hugeID" and "endless" are what there is of it here. 26 is in TestGreed.
var everywhere = []struct {
	row, what string
	want      process.Code
}{
	{"1 exits", "exit0", process.Crashed},
	{"2 exits with an error", "exit", process.Crashed},
	{"3 is killed", "kill", process.Crashed},
	{"7 writes what is no message, and goes on", "chatter", ""},
	{"8 stops in the middle of a message", "partial", process.TimedOut},
	{"9 a huge id", "hugeID", process.TimedOut},
	{"10 a line without an end", "endless", process.Protocol},
	{"10 an answer without an end", "endlessJSON", process.Protocol},
	{"11 no UTF-8", "utf8", process.Protocol},
	{"11 a byte of zero", "zero", process.Protocol},
	{"11 begins with a mark", "bom", process.TimedOut},
	{"12 deep JSON", "deep", process.Protocol},
	{"13 answers an unknown request", "foreign", process.Protocol},
	{"14 answers many times", "twice", ""},
	{"15 answers late", "late", process.TimedOut},
	{"16 never answers", "hang", process.TimedOut},
	{"17 answers a byte at a time", "slowly", process.TimedOut},
	{"18 stops reading", "stopsReading", process.TimedOut},
	{"19 closes its stdout", "closeStdout", process.Protocol},
	{"20 notifies without end", "notices", process.Protocol},
	{"21 floods stderr", "stderr", ""},
	{"22 leaves children that hold its pipes", "fork", process.Crashed},
	{"23 leaves children in a session of their own", "setsid", process.Crashed},
	{"24 ignores SIGTERM and the end of its stdin", "deafToTerm", process.TimedOut},
	{"25 stops itself", "stop", process.TimedOut},
	{"28 calls back without a grant, and goes on", "callsBack", ""},
	{"28 calls back without end, and reads no answer", "asksOn", process.TimedOut},
}

func TestMisbehaviourEverywhere(t *testing.T) {
	for _, c := range everywhere {
		for _, place := range places {
			t.Run("reliability/P14 3.4-"+c.row+": "+place.name, func(t *testing.T) {
				t.Parallel()
				cfg := config(t, place.method+":"+c.what, only(process.Hook{Name: process.BeforeTurn}, process.Hook{Name: process.Catalog}, process.Hook{Name: process.ProjectProse}))
				cfg.ID = "p" + strings.ToLower(strings.ReplaceAll(place.name, "-", "")) + strings.ToLower(c.what)
				limit := patience
				if c.want == process.TimedOut {
					limit = time.Second
				}
				cfg.Deadlines.Hook, cfg.Deadlines.Tool, cfg.Deadlines.State = limit, limit, limit
				if place.name == "start-up" {
					cfg.Deadlines.Start = limit
				}
				cfg.Limits.Notices = 1000
				bad := begin(t, cfg)
				good := config(t, "good", process.Contributions{Hooks: []process.Hook{{Name: process.Checkpoint}}})
				good.ID = "by" + cfg.ID
				s := session(t, "ses_1", bad, begin(t, good))
				bystands(t, s)
				want := c.want
				if place.name == "shutdown" {
					want = ""
				}
				check(t, s, func(context.Context, *plugin.Session) error { return place.use(t, bad, s) }, want)
				bystands(t, s)
			})
		}
	}
}
