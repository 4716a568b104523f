//go:build unix

package plugins_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/pluginloader/process"
	"lashd/rpc/protocol"
)

// cellHost answers a cell with values that do not change. A call returns the name of the tool and its arguments.
type cellHost struct{}

// noteTools is one list, so that lashd sends it with the first cell only.
var noteTools = []protocol.ToolManifest{{Name: "note"}}

func (cellHost) Tools() []protocol.ToolManifest { return noteTools }

func (cellHost) Call(_ context.Context, calls []tool.Request) ([]protocol.ToolOutput, error) {
	var out []protocol.ToolOutput
	for _, c := range calls {
		out = append(out, protocol.Succeed(c.Name+string(c.Args)))
	}
	return out, nil
}

func (cellHost) Now(context.Context) (time.Time, error) { return time.Unix(1_700_000_000, 0), nil }
func (cellHost) Random(context.Context) ([]byte, error) { return make([]byte, 32), nil }
func (cellHost) History() []*protocol.Message           { return []*protocol.Message{{Role: protocol.RoleUser}} }

// runCell runs a cell and returns what it printed.
func runCell(t *testing.T, s *plugin.Session, source string) string {
	t.Helper()
	reply, err := s.Execute(t.Context(), &plugin.CodeCall{TurnID: "trn_1", CellID: "c1", Language: "words", Source: source}, cellHost{})
	if err != nil || reply.Error != "" {
		t.Errorf("%s: %v, %s", source, err, reply.Error)
	}
	return reply.Printed
}

func TestSDKCells(t *testing.T) {
	each(t, "plugin/PR-07 a cell calls tools and gets the time, random bytes and the conversation", func(t *testing.T, c process.Config) {
		c.Uses = []process.Capability{process.UsesTools}
		s := open(t, begin(t, c))
		for range 2 { // lashd does not send the tools again
			if got, want := runCell(t, s, "ask"), `note{"text":"a"} note{"text":"b"} 1700000000 32 1 1`; got != want {
				t.Errorf("it printed %q, want %q", got, want)
			}
		}
	})
	each(t, "plugin/PR-07 values move to another process by name, in several messages if they are large", func(t *testing.T, c process.Config) {
		s := open(t, begin(t, c))
		runCell(t, s, "one")
		long := strings.Repeat("long", 1<<20)
		runCell(t, s, long[:255])
		large := map[string][]byte{"one": []byte("1"), "a": []byte(long), "b": []byte(long)}
		if err := s.RestoreExecution(t.Context(), large); err != nil {
			t.Fatal(err)
		}
		if got := runCell(t, s, "one"); got != "1one;" {
			t.Errorf("after a restore it printed %q", got)
		}
		x, err := s.CaptureExecution(t.Context())
		if err != nil || len(x.Changed) != 3 || string(x.Changed["one"]) != "1one;" || string(x.Changed["b"]) != long {
			t.Fatalf("captured %d values, %v", len(x.Changed), err)
		}
		globals, err := s.Globals(t.Context())
		if err != nil || len(globals) != 3 {
			t.Errorf("globals %v, %v", globals, err)
		}
		again := open(t, begin(t, c))
		if err := again.RestoreExecution(t.Context(), x.Changed); err != nil {
			t.Fatal(err)
		}
		if got := runCell(t, again, "one"); got != "1one;one;" {
			t.Errorf("in another process it printed %q", got)
		}
	})
}
