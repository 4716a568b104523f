package engine_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"lashd/engine/provider/scripted"
	"lashd/engine/tool"
	"lashd/rpc/protocol"
)

// lead makes link in dir a link to another directory.
func lead(t testing.TB, dir, link, to string) {
	t.Helper()
	if err := os.RemoveAll(filepath.Join(dir, link)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
		t.Fatal(err)
	}
}

func TestPathsOfRepeatedCalls(t *testing.T) {
	for _, replay := range []protocol.Replay{protocol.ReplaySafe, protocol.ReplayNever} {
		t.Run("outside/7 a call repeated after a crash is limited to the path that was approved: "+string(replay), func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			lead(t, dir, "link", "a")
			began, places := make(chan []string, 1), make(chan []string, 1)
			opens := toolFunc{name: "opens", contract: protocol.ToolContract{Replay: replay}, run: func(ctx context.Context, call tool.Invocation) (tool.Result, error) {
				if call.Attempt == 1 {
					began <- call.Places
					<-ctx.Done()
					return tool.Result{}, ctx.Err()
				}
				places <- call.Places
				return tool.Result{Output: protocol.Succeed("opened")}, nil
			}}
			model := scripted.New(&scripted.Script{Turns: []scripted.Turn{{Replies: []scripted.Reply{
				{ToolCalls: []scripted.Call{{Name: "opens", Args: json.RawMessage(`{"path":"link/x"}`)}}}, {Text: "done"},
			}}}})
			d := start(t, setup{model: model, tools: []tool.Provider{opens}})
			id := must[*protocol.SessionNewResult](t)(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: dir})).SessionID
			turn := d.begin(t, id, "go").TurnID
			want := []string{filepath.Join(dir, "a/x")}
			if got := <-began; !slices.Equal(got, want) {
				t.Errorf("the first attempt is allowed for %q, want %q", got, want)
			}
			lead(t, dir, "link", "b")
			d = d.restart(t, nil)
			if replay == protocol.ReplayNever {
				must[*protocol.SessionReadResult](t)(d.Sessions.Read(t.Context(), &protocol.SessionReadParams{SessionID: id}))
				eventually(t, func() bool { return len(d.asking(t)) == 1 })
				if err := d.replies(t, d.asking(t)[0].ID, protocol.ChooseRunAgain, ""); err != nil {
					t.Fatal(err)
				}
			}
			d.wait(t, turn)
			if got := <-places; !slices.Equal(got, want) {
				t.Errorf("the next attempt is allowed for %q, want %q", got, want)
			}
		})
	}
}
