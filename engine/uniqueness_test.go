package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"lashd/engine/plugin"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

func nothingAsked(context.Context, *plugin.OperationCall) (json.RawMessage, error) { return nil, nil }

func nothingDone(context.Context, *plugin.OperationCall) (*plugin.OperationResult, error) {
	return &plugin.OperationResult{}, nil
}

// numbered is a tool with an explicit id.
type numbered struct {
	toolFunc
	id string
}

func (n numbered) Tools() []tool.Tool {
	all := n.toolFunc.Tools()
	all[0].Manifest.ID = n.id
	return all
}

func TestUniqueAmongPlugins(t *testing.T) {
	refused := func(t *testing.T, first, second func(*plugin.Registrar), what string) {
		t.Helper()
		d := start(t, setup{model: replies(), plugins: plugins(hooked{"one", first}, hooked{"two", second})})
		p := &protocol.SessionNewParams{SessionID: "ses_a", Cwd: t.TempDir()}
		_, err := d.Sessions.New(t.Context(), p)
		if e, ok := errors.AsType[*plugin.BuildError](err); !ok || e.Plugin != "two" || !strings.Contains(e.Error(), "plugin one already") || !strings.Contains(e.Error(), what) {
			t.Errorf("error %v", err)
		}
		if d.exists(t, p.SessionID) {
			t.Error("there is a session")
		}
	}
	t.Run("plugin/PH-08 two plugins with a tool of the same name: no session is created, and the error names both", func(t *testing.T) {
		add := func(r *plugin.Registrar) { r.Tools().Add(says("look", "x")) }
		refused(t, add, add, `a tool named "look"`)
	})
	t.Run("plugin/PH-08 two tools with the same id and different names are rejected too", func(t *testing.T) {
		add := func(name string) func(*plugin.Registrar) {
			return func(r *plugin.Registrar) { r.Tools().Add(numbered{says(name, "x"), "t1"}) }
		}
		refused(t, add("look"), add("see"), `a tool with the id "t1"`)
	})
	t.Run("plugin/OP-01 the name of an operation belongs to one plugin and one kind", func(t *testing.T) {
		info := protocol.OperationInfo{Name: "op"}
		kinds := map[string]func(*plugin.Registrar){
			"query":   func(r *plugin.Registrar) { r.Operations().Query(info, nothingAsked) },
			"command": func(r *plugin.Registrar) { r.Operations().Command(info, nothingDone) },
			"task":    func(r *plugin.Registrar) { r.Operations().Task(info, nothingDone) },
		}
		for first, one := range kinds {
			for second, two := range kinds {
				refused(t, one, two, "the "+second+" op, but plugin one already registered a "+first)
			}
		}
	})
}
