//go:build unix

package pluginloader_test

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"lashd/engine"
	"lashd/engine/clientserver"
	"lashd/engine/driver/standard"
	"lashd/engine/models"
	"lashd/engine/plugin"
	"lashd/engine/proc"

	"lashd/engine/provider"
	"lashd/engine/provider/scripted"
	"lashd/persistence"
	"lashd/pluginloader"
	"lashd/pluginloader/content"
	"lashd/rpc/protocol"
)

func TestMain(m *testing.M) {
	switch os.Getenv(guestVariable) {
	case "1":
		guest()
		return
	case "mcp":
		serveMCP()
		return
	case "say":
		return
	}
	goleak.VerifyTestMain(m)
}

// world is a daemon without a wire, whose plugins are directories.
type world struct {
	*engine.Engine
	*pluginloader.Loader
	t       testing.TB
	home    string // of the daemon
	user    string // where the user's plugins are
	model   provider.Provider
	builtin []plugin.Factory
	replace []string
	options map[string]json.RawMessage
	news    func(protocol.ServerEvent) // nil: dropped
	stop    func()

	sandbox pluginloader.SandboxMode
	limits  proc.Limits
	scan    time.Duration // limit of a scan; 0: none that a slow machine reaches
}

func newWorld(t testing.TB) *world {
	dir := t.TempDir()
	w := &world{t: t, home: filepath.Join(dir, "home"), user: filepath.Join(dir, "plugins"), model: scripted.New(&scripted.Script{
		Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "ok"}}},
	})}
	if err := os.MkdirAll(w.home, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := content.Remove(w.home); err != nil {
			t.Error(err)
		}
	})
	return w
}

// start runs the daemon until stop, or the end of the test.
func (w *world) start() *world {
	w.t.Helper()
	log := slog.New(slog.DiscardHandler)
	if os.Getenv("LASHD_TEST_LOG") != "" {
		log = slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	store, err := persistence.Open(context.Background(), persistence.Config{Dir: w.home, Log: log})
	if err != nil {
		w.t.Fatal(err)
	}
	base, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, w.builtin)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Loader = pluginloader.New(pluginloader.Config{
		Base: base, Driver: standard.ID, User: []string{w.user}, Home: w.home, Environ: os.Environ(), Nonce: store.Facts().StoreID,
		Sandbox: w.sandbox, Limits: w.limits, Scan: cmp.Or(w.scan, time.Hour), Options: w.options, Replace: w.replace, Memory: store, Log: log, Running: func() (protocol.TurnID, bool) { return w.Running() },
		ToolsChanged: func(ctx context.Context, _ string, id protocol.SessionID) { w.ToolsChanged(ctx, id) },
		Revoked:      func(ctx context.Context) { w.PluginsRevoked(ctx) },
		News: func(e protocol.ServerEvent) {
			if w.news != nil {
				w.news(e)
			}
		},
	})
	w.Engine = engine.New(engine.Config{
		Store: store, Plugins: w.Loader, Servers: brought{w.Loader}, Log: log, StateDir: w.home,
		Models:   models.Fixed{{Name: "test", Spec: protocol.ModelSpec{Provider: "test", ID: "m"}, Provider: w.model}},
		Defaults: protocol.Config{Driver: standard.ID, Budget: protocol.Budget{Iterations: 20}, Approval: protocol.ApprovalConfig{Mode: protocol.ApproveAllow}},
	})
	w.run(store)
	return w
}

// brought connects what clients bring.
type brought struct{ *pluginloader.Loader }

func (b brought) Connect(ctx context.Context, name string, s protocol.MCPServer, tell func(context.Context, error)) (clientserver.Server, error) {
	return b.Loader.Connect(ctx, name, s, tell)
}

func (w *world) run(store *persistence.Store) {
	var stops []func()
	for _, f := range []func(context.Context) error{store.Run, w.Loader.Run, w.Engine.Run} {
		ctx, cancel := context.WithCancel(context.Background())
		var running sync.WaitGroup
		running.Go(func() {
			if err := f(ctx); err != nil {
				w.t.Error(err)
			}
		})
		stops = append(stops, func() { cancel(); running.Wait() })
	}
	w.stop = sync.OnceFunc(func() {
		for i := range stops {
			stops[len(stops)-1-i]()
		}
		if err := store.Close(); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(w.stop)
}

// restart stops the daemon and starts it again.
func (w *world) restart() {
	w.t.Helper()
	w.stop()
	w.start()
}

// write puts a file of a plugin of the user's in its place at once.
func (w *world) write(name, content string) { save(w.t, filepath.Join(w.user, name), content) }

func save(t testing.TB, path, content string) {
	t.Helper()
	next := filepath.Join(filepath.Dir(filepath.Dir(path)), ".next")
	for _, err := range []error{os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(next, []byte(content), 0o644), os.Rename(next, path)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// manifest is a plugin.json whose process is the guest.
func manifest(name, more string) string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	program, _ := json.Marshal(self)
	return `{"name":"` + name + `","lashd":{"process":{"command":[` + string(program) + `],"env":{"` + guestVariable + `":"1","GORACE":"atexit_sleep_ms=0"}}` + more + `}}`
}

// info is a plugin as it is listed; the zero value if it is not.
func (w *world) info(cwd, name string) (found protocol.PluginInfo) {
	w.t.Helper()
	all, err := w.List(w.t.Context(), &protocol.PluginListParams{Cwd: cwd})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, p := range all.Data {
		if p.Name == name {
			found = p
		}
	}
	return found
}

// patience is how long anything may take before a test gives up on it.
const patience = 2 * time.Minute

// until waits until something is so.
func (w *world) until(what string, is func() bool) {
	w.t.Helper()
	for limit := time.Now().Add(patience); !is(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(limit) {
			w.t.Fatalf("%s: it never is: %+v", what, must(w.List(w.t.Context(), &protocol.PluginListParams{})).of(w.t).Data)
		}
	}
}

// status waits until a plugin has a status.
func (w *world) status(cwd, name string, want protocol.PluginStatus) protocol.PluginInfo {
	w.t.Helper()
	w.until(name+" is "+string(want), func() bool { return w.info(cwd, name).Status == want })
	return w.info(cwd, name)
}

func (w *world) session(cwd string) protocol.SessionID {
	w.t.Helper()
	if cwd == "" {
		cwd = w.t.TempDir()
	}
	return must(w.Sessions.New(w.t.Context(), &protocol.SessionNewParams{Cwd: cwd})).of(w.t).SessionID
}

// call calls a tool, and gives what it said, or the code of its failure.
func (w *world) call(id protocol.SessionID, name, args string) string {
	w.t.Helper()
	r, err := w.Tools.Call(w.t.Context(), &protocol.ToolCallParams{SessionID: id, Name: name, Args: json.RawMessage(args)})
	switch {
	case err != nil:
		return err.Error()
	case r.Output.Failure != nil:
		return r.Output.Failure.Code
	}
	return r.Output.Text
}

type result[T any] struct {
	v   T
	err error
}

func must[T any](v T, err error) result[T] { return result[T]{v, err} }

func (r result[T]) of(t testing.TB) T {
	t.Helper()
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r.v
}

func check(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}
