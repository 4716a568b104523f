package history_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/history"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
)

func TestPreview(t *testing.T) {
	long := strings.Repeat("word", 300) // 300 tokens; 500 are kept
	for name, c := range map[string]struct {
		inputs           []string
		compacts         bool
		summarized, kept []string
	}{
		"old inputs become a summary, new ones stay": {[]string{"1\n" + long, "2\n" + long, "3\n" + long}, true, []string{"1", "2"}, []string{"3"}},
		"a short history stays":                      {[]string{"1", "2"}, false, []string{}, []string{"1", "2"}},
		"one turn stays at any length":               {[]string{"1\n" + long + long}, false, []string{}, []string{"1"}},
	} {
		t.Run("part13/7 preview of a compaction: "+name, func(t *testing.T) {
			m := model(scripted.Reply{Text: "the sum"})
			d := builtintest.Start(t, t.TempDir(), 2000, m, history.Factory{})
			id := d.Session(t, manual)
			for _, text := range c.inputs {
				d.Turn(t, id, text)
			}
			asked := len(m.Asked)
			out := builtintest.Must(d.Operations.Query(t.Context(), &protocol.OperationQueryParams{SessionID: id, Name: protocol.CompactionQuery}))(t)
			var r protocol.CompactionPreviewResult
			if err := json.Unmarshal(out.Output, &r); err != nil {
				t.Fatal(err)
			}
			if r.Compacts != c.compacts || !slices.Equal(r.Summarized.Inputs, c.summarized) || !slices.Equal(r.Kept.Inputs, c.kept) || r.Tokens != r.Summarized.Tokens+r.Kept.Tokens || len(m.Asked) != asked {
				t.Errorf("preview %+v after %d model calls", r, len(m.Asked)-asked)
			}
			if r.Keeps != 500 {
				t.Errorf("45 it says that %d tokens stay, want 500", r.Keeps)
			}
			done, err := compact(t, d, id)
			if err != nil || done != r.Compacts {
				t.Fatalf("compacted: %t, %v", done, err)
			}
			after := seen(t, d, m, id) // the last two messages are the new turn's
			for _, first := range c.kept {
				if !strings.Contains(after, "|"+first) && !strings.HasPrefix(after, first) {
					t.Errorf("the model does not see %q any more: %.100q", first, after)
				}
			}
			for _, first := range c.summarized {
				if strings.Contains(after, "|"+first+"\n") || strings.HasPrefix(after, first+"\n") {
					t.Errorf("the model still sees %q", first)
				}
			}
		})
	}
}
