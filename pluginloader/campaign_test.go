//go:build unix

package pluginloader_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"lashd/engine/provider"
	"lashd/rpc/protocol"
)

// edition is what all files of a plugin say in one version of it. A guest whose files are of two editions does not start.
func edition(n int) map[string]string {
	return map[string]string{
		"version": strconv.Itoa(n),
		"plugin.json": strings.Replace(manifest("guest", fmt.Sprintf(`,"hooks":["beforeToolCall"],"state":"1","prompt":[{"slot":"guidance","content":"edition %d."}],`+
			`"tools":[{"name":"version","description":"edition %d"}]`, n, n)), `"env":{`, fmt.Sprintf(`"env":{"EDITION":"%d",`, n), 1),
	}
}

// styles are ways in which editors and other tools save.
var styles = map[string]func(dir, name, content string) error{
	"in place": func(dir, name, content string) error {
		return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644)
	},
	"in pieces": func(dir, name, content string) error {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o644)
		if err != nil {
			return err
		}
		defer f.Close()
		for i := range content {
			if _, err := f.WriteString(content[i : i+1]); err != nil {
				return err
			}
		}
		return nil
	},
	"half, and the rest later": func(dir, name, content string) error {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content[:len(content)/2]), 0o644); err != nil {
			return err
		}
		time.Sleep(30 * time.Millisecond)
		return os.WriteFile(path, []byte(content), 0o644)
	},
	"by rename": func(dir, name, content string) error {
		next := filepath.Join(dir, name+"~new")
		if err := os.WriteFile(next, []byte(content), 0o644); err != nil {
			return err
		}
		return os.Rename(next, filepath.Join(dir, name))
	},
	"with a backup": func(dir, name, content string) error {
		path := filepath.Join(dir, name)
		if err := os.Rename(path, path+"~"); err != nil {
			return err
		}
		if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
			return err
		}
		return os.Remove(path + "~")
	},
	"deleted and created again": func(dir, name, content string) error {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644)
	},
	"with a probe": func(dir, name, content string) error {
		probe := filepath.Join(dir, "4913")
		if err := os.WriteFile(probe, nil, 0o644); err != nil {
			return err
		}
		if err := os.Remove(probe); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644)
	},
	"synced": func(dir, name, content string) error {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		defer f.Close()
		if _, err := f.WriteString(content); err != nil {
			return err
		}
		return f.Sync()
	},
}

// wholes are ways to replace a directory at once.
var wholes = map[string]func(dir string, files map[string]string) error{
	"another directory": func(dir string, files map[string]string) error {
		next, old := dir+".next", dir+".old"
		if err := fill(next, files); err != nil {
			return err
		}
		if err := os.Rename(dir, old); err != nil {
			return err
		}
		if err := os.Rename(next, dir); err != nil {
			return err
		}
		return os.RemoveAll(old)
	},
	"a link elsewhere": func(dir string, files map[string]string) error {
		real, err := os.MkdirTemp(filepath.Dir(filepath.Dir(dir)), "real")
		if err != nil {
			return err
		}
		if err := fill(real, files); err != nil {
			return err
		}
		next := filepath.Join(filepath.Dir(filepath.Dir(dir)), "link")
		if err := os.Symlink(real, next); err != nil {
			return err
		}
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			if err := os.RemoveAll(dir); err != nil {
				return err
			}
		}
		return os.Rename(next, dir)
	},
}

func fill(dir string, files map[string]string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// auditor is a model that asks the plugin for its version twice and tries forbidden calls. All answers of
// the plugin must come from one version of it.
type auditor struct {
	t     testing.TB
	turns atomic.Int64
	seen  sync.Map // editions
}

var editions = regexp.MustCompile(`edition (\d+)\.`)

func (a *auditor) Stream(_ context.Context, req *provider.Request) iter.Seq2[provider.Chunk, error] {
	return func(yield func(provider.Chunk, error) bool) {
		var said []string
		for _, m := range req.Messages[lastInput(req.Messages):] {
			for _, p := range m.Parts {
				if p.Kind == protocol.PartToolResult {
					said = append(said, what(p.Result.Output))
				}
			}
		}
		edition := editions.FindStringSubmatch(req.System)
		if edition == nil {
			a.t.Errorf("the plugin is not in the prompt")
			edition = []string{"", ""}
		}
		if i := slices.IndexFunc(req.Tools, func(m protocol.ToolManifest) bool { return m.Name == "version" }); i < 0 || req.Tools[i].Description != "edition "+edition[1] {
			a.t.Errorf("the prompt is of edition %s, the tools are %+v", edition[1], req.Tools)
		}
		if len(said) < 3 {
			args := []string{`{}`, `{}`, `{"x":"forbidden"}`}[len(said)]
			id := protocol.CallID(fmt.Sprint("c", len(said)))
			_ = yield(provider.Chunk{Part: &protocol.Part{Kind: protocol.PartToolCall, Call: &protocol.ToolCall{CallID: id, Name: "version", Args: []byte(args)}}}, nil) &&
				yield(provider.Chunk{Stop: protocol.StopToolUse}, nil)
			return
		}
		if said[0] != edition[1] || said[1] != edition[1] || said[2] != "forbidden" {
			a.t.Errorf("the prompt is of edition %s, and its calls say %q", edition[1], said)
		}
		a.turns.Add(1)
		a.seen.Store(edition[1], true)
		_ = yield(provider.Chunk{Text: "ok"}, nil) && yield(provider.Chunk{Stop: protocol.StopEnd}, nil)
	}
}

// what is what an output says, or the code of the failure.
func what(o protocol.ToolOutput) string {
	if o.Failure != nil {
		return o.Failure.Code
	}
	return o.Text
}

// lastInput is where the newest turn begins.
func lastInput(all []*protocol.Message) int {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].Role == protocol.RoleUser && all[i].Parts[0].Kind == protocol.PartText {
			return i
		}
	}
	return 0
}

func TestChangesWhileTurnsRun(t *testing.T) {
	changes := 40
	if os.Getenv("LASHD_LONG") != "" {
		changes = 2000
	}
	w := newWorld(t)
	audit := &auditor{t: t}
	w.model = audit
	dir := filepath.Join(w.user, "g")
	if err := fill(dir, edition(0)); err != nil {
		t.Fatal(err)
	}
	w.start()
	w.status("", "guest", protocol.PluginLoaded)
	ctx, cancel := context.WithCancel(t.Context())
	var turns sync.WaitGroup
	for range 3 {
		turns.Go(func() { w.keepTurning(ctx) })
	}
	for n := range changes {
		w.edit(dir, n+1)
		if n%10 == 9 { // what is written by now has to be what runs
			w.until(fmt.Sprintf("edition %d runs", n+1), func() bool { _, ok := audit.seen.Load(strconv.Itoa(n + 1)); return ok })
		}
	}
	cancel()
	turns.Wait()
	var different int
	audit.seen.Range(func(any, any) bool { different++; return true })
	t.Logf("issue/4-5 %d changes, %d turns, %d editions were seen", changes, audit.turns.Load(), different)
	if audit.turns.Load() < int64(changes)/4 {
		t.Errorf("only %d turns ran", audit.turns.Load())
	}
}

// keepTurning runs one turn after the other in a session.
func (w *world) keepTurning(ctx context.Context) {
	id := w.session("")
	for ctx.Err() == nil {
		started, err := w.Turns.Start(w.t.Context(), &protocol.TurnStartParams{SessionID: id, Input: []protocol.InputPart{{Type: protocol.InputText, Text: "go"}}})
		if err != nil {
			w.t.Error(err)
			return
		}
		report, err := w.Turns.Wait(w.t.Context(), &protocol.TurnWaitParams{TurnID: started.TurnID})
		if err != nil || report.State != protocol.TurnCompleted {
			w.t.Errorf("a turn was disturbed: %+v, %v", report, err)
			return
		}
	}
}

// edit makes a directory the next edition, in a style of its own.
func (w *world) edit(dir string, n int) {
	w.t.Helper()
	files := edition(n)
	var err error
	all := append(sorted(styles), sorted(wholes)...)
	switch style := all[n%len(all)]; {
	case wholes[style] != nil:
		err = wholes[style](dir, files)
	default:
		for _, name := range []string{"version", "plugin.json"} {
			if err == nil {
				err = styles[style](dir, name, files[name])
			}
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(time.Duration(n%7) * 20 * time.Millisecond) // some are settled by the next one, some are not
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
