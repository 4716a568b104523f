package plugin_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/engine/turn"
	"lashd/rpc/protocol"
)

type executor struct{}

func (executor) Execute(context.Context, *plugin.CodeCall, plugin.CellHost) (turn.CellReply, error) {
	return turn.CellReply{Printed: "ran"}, nil
}

func query(context.Context, *plugin.OperationCall) (json.RawMessage, error) { return nil, nil }

func command(context.Context, *plugin.OperationCall) (*plugin.OperationResult, error) {
	return &plugin.OperationResult{}, nil
}

func project(_ context.Context, call *plugin.ToolResultContext) (protocol.ToolOutput, error) {
	return call.Output, nil
}

var mail = plugin.TriggerEvent{ResourceType: "mailbox", Alias: "mail", Event: "new"}

// twice lists contributions that a session can have only once, with the error for the second.
var twice = []struct {
	row, want string
	register  func(*plugin.Registrar)
}{
	{"PH-07", "registers a protocol session, but plugin p already registered one", func(r *plugin.Registrar) { r.Protocol().Session(plugin.ProtocolSession{}) }},
	{"PH-07", "registers a result projector, but plugin p already registered one", func(r *plugin.Registrar) { r.ToolResults().Projector(project) }},
	{"PH-07", "registers a code executor, but plugin p already registered one", func(r *plugin.Registrar) { r.Execution().Executor(executor{}) }},
	{"PH-07", "registers a prose projector, but plugin p already registered one", func(r *plugin.Registrar) {
		r.Protocol().Prose(func(context.Context, string) (string, error) { return "", nil })
	}},
	{"PH-08", `registers a tool named "look", but plugin p already registered one`, func(r *plugin.Registrar) { r.Tools().Add(tools{"look"}) }},
	{"PH-09", "registers the trigger event mail.new of mailbox, but plugin p already registered it", func(r *plugin.Registrar) { r.Triggers().Event(mail) }},
	{"OP-01", "registers the query op, but plugin p already registered a query with that name", func(r *plugin.Registrar) { r.Operations().Query(protocol.OperationInfo{Name: "op"}, query) }},
}

func TestUniqueContributions(t *testing.T) {
	t.Run("plugin/PH-09 a plugin cannot register a trigger source type of lashd", func(t *testing.T) {
		tick := func(r *plugin.Registrar) {
			r.Triggers().Event(plugin.TriggerEvent{ResourceType: "clock", Alias: "cron", Event: "tick"})
		}
		if got := refused(t, with("p", tick)); got != "plugin p: registers the trigger source type cron.tick, which is reserved for lashd" {
			t.Error(got)
		}
	})
	for _, c := range twice {
		t.Run("plugin/"+c.row+" "+c.want, func(t *testing.T) {
			if got := refused(t, with("p", c.register), with("q", c.register)); got != "plugin q: "+c.want {
				t.Errorf("two plugins: %s", got)
			}
			if got := refused(t, with("p", c.register), with("x", func(*plugin.Registrar) {}), with("p2", c.register)); !strings.HasPrefix(got, "plugin p2: ") {
				t.Errorf("two plugins and one between: %s", got)
			}
			open(t, with("p", c.register))
		})
	}
	for want, plugins := range map[string][2]func(*plugin.Registrar){
		`PH-08 plugin q: registers a tool with the id "1", but plugin p already registered one`: {
			func(r *plugin.Registrar) { r.Tools().Add(tools{"1=look"}) }, func(r *plugin.Registrar) { r.Tools().Add(tools{"1=see"}) }},
		`PH-08 plugin p: registers a tool with the id "1", but plugin p already registered one`: {
			func(r *plugin.Registrar) { r.Tools().Add(tools{"1=look", "1=see"}) }, func(*plugin.Registrar) {}},
		"PH-09 plugin q: registers the trigger source type mail.new for calendar, but plugin p already registered it for mailbox": {
			func(r *plugin.Registrar) { r.Triggers().Event(mail) },
			func(r *plugin.Registrar) {
				r.Triggers().Event(plugin.TriggerEvent{ResourceType: "calendar", Alias: "mail", Event: "new"})
			}},
		"OP-01 plugin q: registers the task op, but plugin p already registered a query with that name": {
			func(r *plugin.Registrar) { r.Operations().Query(protocol.OperationInfo{Name: "op"}, query) },
			func(r *plugin.Registrar) { r.Operations().Task(protocol.OperationInfo{Name: "op"}, command) }},
		"PH-07 plugin p: registers a protocol driver, but plugin d already registered one": {
			func(r *plugin.Registrar) { r.Protocol().Driver(silent{}) }, func(*plugin.Registrar) {}},
	} {
		t.Run("plugin/"+want, func(t *testing.T) {
			if got := refused(t, with("p", plugins[0]), with("q", plugins[1])); !strings.HasSuffix(want, got) {
				t.Error(got)
			}
		})
	}
}

func TestRegistrar(t *testing.T) {
	t.Run("plugin/PH-07 a session without a driver is rejected", func(t *testing.T) {
		h, err := plugin.NewHost([]plugin.Factory{with("none", func(*plugin.Registrar) {})}, []plugin.Factory{driver("other")})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Open(t.Context(), "none", nil, plugin.BuildContext{}); err == nil || err.Error() != "plugin none: registers no protocol driver" {
			t.Errorf("error %v", err)
		}
	})

	for name, register := range map[string]func(*plugin.Registrar){
		"tools":      func(r *plugin.Registrar) { r.Tools().Add(nil) },
		"prompt":     func(r *plugin.Registrar) { r.Prompt().Hook(nil) },
		"turn":       func(r *plugin.Registrar) { r.Turn().Before(nil) },
		"checkpoint": func(r *plugin.Registrar) { r.Turn().Checkpoint(nil) },
		"projector":  func(r *plugin.Registrar) { r.ToolResults().Projector(nil) },
		"driver":     func(r *plugin.Registrar) { r.Protocol().Driver(nil) },
		"prose":      func(r *plugin.Registrar) { r.Protocol().Prose(nil) },
		"pointer":    func(r *plugin.Registrar) { r.Execution().Executor((*executor)(nil)) },
		"query":      func(r *plugin.Registrar) { r.Operations().Query(protocol.OperationInfo{Name: "op"}, nil) },
		"command":    func(r *plugin.Registrar) { r.Operations().Command(protocol.OperationInfo{Name: "op"}, nil) },
		"transform":  func(r *plugin.Registrar) { r.Context().Transform(1, nil) },
	} {
		t.Run("plugin/PH-06 a nil contribution is rejected: "+name, func(t *testing.T) {
			if got := refused(t, with("p", register)); got != "plugin p: registers a nil contribution" {
				t.Error(got)
			}
		})
	}

	for want, register := range map[string]func(*plugin.Registrar){
		`registers a prompt: unknown prompt slot "cellar"`: func(r *plugin.Registrar) {
			r.Prompt().Add(plugin.Prompt{Slot: "cellar", Content: "x"})
			r.Tools().Add(nil)
		},
		"registers a task without a name": func(r *plugin.Registrar) { r.Operations().Task(protocol.OperationInfo{}, command) },
		`registers the query op with the unknown session rule "sometimes"`: func(r *plugin.Registrar) {
			r.Operations().Query(protocol.OperationInfo{Name: "op", Session: "sometimes"}, query)
		},
	} {
		t.Run("plugin/PH-06 the first mistake fails the build: "+want, func(t *testing.T) {
			if got := refused(t, with("p", register)); got != "plugin p: "+want {
				t.Error(got)
			}
		})
	}

	t.Run("a registrar has no effect after Register", func(t *testing.T) {
		var kept *plugin.Registrar
		s := open(t, with("p", func(r *plugin.Registrar) { kept = r; r.Tools().Add(tools{"a"}) }), with("q", func(*plugin.Registrar) {}))
		kept.Tools().Add(tools{"b"})
		kept.Prompt().Add(plugin.Prompt{Slot: plugin.SlotIntro, Content: "late"})
		_ = append(s.Sources(), tool.Source{ID: "junk"})
		if got := s.Sources(); len(got) != 1 || got[0].ID != "p" {
			t.Errorf("sources %+v", got)
		}
		if got := s.Texts(); len(got) != 0 {
			t.Errorf("prompts %+v", got)
		}
	})

	t.Run("plugin/PH-01 sources keep their plugin's id and the order of registration", func(t *testing.T) {
		s := open(t,
			with("q", func(r *plugin.Registrar) { r.Tools().Add(tools{"b"}); r.Tools().Add(tools{"c"}) }),
			with("p", func(r *plugin.Registrar) { r.Tools().Add(tools{"a"}) }))
		var got []string
		for _, src := range s.Sources() {
			got = append(got, src.ID+" "+src.Provider.Tools()[0].Manifest.Name)
		}
		if !slices.Equal(got, []string{"q b", "q c", "p a"}) {
			t.Errorf("sources %q", got)
		}
	})

	t.Run("plugin/PH-09 trigger events are listed by source type", func(t *testing.T) {
		other := plugin.TriggerEvent{ResourceType: "mailbox", Alias: "mail", Event: "gone"}
		s := open(t, with("p", func(r *plugin.Registrar) { r.Triggers().Event(mail); r.Triggers().Event(other) }))
		if diff := cmp.Diff([]plugin.TriggerEvent{other, mail}, s.Triggers()); diff != "" {
			t.Error(diff)
		}
	})
}
