package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"sync/atomic"
	"time"

	"lashd/cmd/internal/console"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/pluginloader"
	"lashd/pluginloader/manifest"
	"lashd/pluginloader/process"
)

// tried is the result of one check of plugin check --run. Names of checks are
// stable, as scripts read the JSON.
type tried struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail,omitempty"`
	TookMs int64  `json:"tookMs"`
}

// trial runs the checks of one plugin. It uses the same process and session code
// as the daemon, but no sandbox. logged runs on other goroutines, so left is
// atomic.
type trial struct {
	plugin  *manifest.Plugin
	factory *process.Factory
	left    atomic.Bool // lashd had to kill leftover processes
	session *plugin.Session
	checks  []tried
}

// try starts the process of a plugin, calls every hook that the plugin declares,
// and stops the process. data of the plugin goes to a temporary directory. Failed
// checks are in the result; err means that they could not run.
func try(ctx context.Context, p *manifest.Plugin, dir string) ([]tried, error) {
	if p.Process == nil {
		return []tried{{Name: "start", OK: true, Detail: untried(p)}}, nil
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	data, err := os.MkdirTemp("", "lashd-plugin-check-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(data)
	t := &trial{plugin: p}
	c := pluginloader.Process(p, dir, data)
	c.Environ, c.Nonce, c.Log = os.Environ(), fmt.Sprintf("check-%d-%d", os.Getpid(), time.Now().UnixNano()), slog.New(attrLog(t.logged))
	for i := range c.Contributes.Hooks {
		c.Contributes.Hooks[i].OnError = process.Fail // a failure must be visible as an error
	}
	if t.factory, err = process.New(c); err != nil {
		return nil, err
	}
	t.run(ctx, data)
	return t.checks, nil
}

// untried says why there is no process to start.
func untried(p *manifest.Plugin) string {
	if len(p.MCPServers) > 0 {
		return "nothing to start: the plugin has no process; lash plugin dev starts its MCP servers"
	}
	return "nothing to start: the plugin has no process"
}

// run runs the checks in order. Each check depends on the previous ones, so a
// failed start ends the run. The process is stopped in any case, which is a check
// as well.
func (t *trial) run(ctx context.Context, data string) {
	defer t.stop(context.WithoutCancel(ctx))
	if !t.check("handshake", func() (string, error) { return "adds what it declares", t.factory.Start(ctx) }) {
		return
	}
	host, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, []plugin.Factory{unstopped{t.factory}})
	if err == nil {
		t.session, err = host.Open(ctx, standard.ID, nil, plugin.BuildContext{SessionID: "ses_check", Cwd: data, StateDir: data})
	}
	if err != nil {
		t.checks = append(t.checks, tried{Name: "session", Detail: err.Error()})
		return
	}
	for _, h := range t.plugin.Hooks {
		if ask := asks[h.On]; ask != nil {
			t.check("hook "+string(h.On), func() (string, error) { return "", ask(ctx, t.session) })
		}
	}
	if t.plugin.State != "" {
		t.check("state", func() (string, error) { return t.state(ctx) })
	}
	t.check("session closes", func() (string, error) { return "", t.session.Close() })
}

// check runs do, records its result with the time it took, and reports whether it
// succeeded. The string that do returns is the detail of a passed check.
func (t *trial) check(name string, do func() (string, error)) bool {
	began := time.Now()
	detail, err := do()
	if err != nil {
		detail = err.Error()
	}
	t.checks = append(t.checks, tried{name, err == nil, detail, time.Since(began).Milliseconds()})
	return err == nil
}

// Failures of the checks.
var (
	errKilled   = errors.New("the process did not exit when its stdin closed; lashd killed it")
	errLeft     = errors.New("the process left other processes behind; lashd killed them")
	errOther    = errors.New("the state after a restore differs from the restored state")
	errNoChange = errors.New("the plugin wrote no state")
)

// exitLimit is the time that a process has to exit by itself. The shutdown sends
// it a signal after that.
const exitLimit = 1900 * time.Millisecond

// stop shuts the process down and checks that it exits by itself and leaves no
// processes. ctx must not be cancelled, so that an interrupted check still cleans
// up.
func (t *trial) stop(ctx context.Context) {
	t.check("stop", func() (string, error) {
		began := time.Now()
		err := t.factory.Shutdown(ctx)
		switch {
		case err != nil:
			return "", err
		case t.left.Load():
			return "", errLeft
		case time.Since(began) > max(exitLimit, t.limit()):
			return "", errKilled
		}
		return "exits by itself and leaves no processes", nil
	})
}

// limit returns the time to stop that plugin.json declares, or 0.
func (t *trial) limit() time.Duration {
	if d := t.plugin.Process.Deadlines; d != nil {
		return time.Duration(d.StopMs) * time.Millisecond
	}
	return 0
}

// state captures the state of the plugin, restores it and captures it again. Both
// captures must be equal and not empty.
func (t *trial) state(ctx context.Context) (string, error) {
	if len(t.plugin.Hooks) == 0 {
		return "not checked: the plugin has no hooks", nil
	}
	wrote, err := t.session.Capture(ctx)
	if err != nil {
		return "", err
	}
	if _, err := t.session.Restore(ctx, wrote); err != nil {
		return "", err
	}
	again, err := t.session.Capture(ctx)
	if err != nil {
		return "", err
	}
	before, after := wrote.Entries[t.plugin.Name], again.Entries[t.plugin.Name]
	if !slices.Equal(before.Meta.State, after.Meta.State) || !reflect.DeepEqual(before.Artifacts, after.Artifacts) {
		return "", errOther
	}
	if len(before.Meta.State) == 0 && len(before.Artifacts) == 0 {
		return "", errNoChange
	}
	return fmt.Sprintf("saved and restored %d bytes", len(before.Meta.State)), nil
}

// unstopped hides the Shutdown method of a factory, so that the host does not call
// it: the trial calls and measures it itself.
type unstopped struct{ plugin.Factory }

// logged prints the log lines of the plugin and records whether processes had to
// be killed, which the loader logs as a list of pids.
func (t *trial) logged(a slog.Attr) {
	if pids, ok := a.Value.Any().([]int); ok && len(pids) > 0 {
		t.left.Store(true)
	}
	if a.Key == "text" {
		fmt.Fprintf(os.Stderr, "  | %s\n", console.Printable(a.Value.String()))
	}
}

// attrLog is a slog.Handler that passes each attribute of a record to a function
// and drops the rest. It may be called by several goroutines at once.
type attrLog func(slog.Attr)

// Enabled implements slog.Handler.
func (attrLog) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (l attrLog) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		l(a)
		return true
	})
	return nil
}

// WithAttrs implements slog.Handler.
func (l attrLog) WithAttrs([]slog.Attr) slog.Handler { return l }

// WithGroup implements slog.Handler.
func (l attrLog) WithGroup(string) slog.Handler { return l }
