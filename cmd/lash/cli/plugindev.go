package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/pluginloader"
	"lashd/pluginloader/content"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

// pluginDevCommand implements lash plugin dev. It runs a plugin loader of its own
// on a directory that links to the plugin, so the daemon and the user's sessions
// are not involved.
type pluginDevCommand struct {
	Dir string `arg:"" help:"Directory of the plugin."`
}

// Help is shown by --help.
func (pluginDevCommand) Help() string {
	return `Loads the plugin in this command and reloads it when you save a file. Your daemon and sessions do not use it. Prints what the plugin adds (+) and no longer
adds (-), its errors with file, line and column, and its stderr. Press Ctrl-C to stop.

To use the plugin in your sessions, link its directory: ln -s DIR ~/.agents/plugins/

Example: lash plugin dev ~/src/reviewer`
}

// noMemory is the store of a loader that keeps nothing between runs: no approvals,
// no switches.
type noMemory struct{}

// PluginFacts implements pluginloader.Memory. There are no stored facts.
func (noMemory) PluginFacts(context.Context) ([]persistence.PluginFact, error) { return nil, nil }

// Commit implements pluginloader.Memory. It drops the commit and reports success.
func (noMemory) Commit(context.Context, *persistence.Commit) (persistence.Result, error) {
	return persistence.Result{}, nil
}

// developer prints the changes of a plugin during plugin dev. news and logged may
// run on different goroutines; mu keeps their lines whole.
type developer struct {
	mu      sync.Mutex // serializes output
	loader  *pluginloader.Loader
	printed []string // contributions of the last printed version
}

// Run prepares the temporary directory and runs until Ctrl-C.
func (c pluginDevCommand) Run(ctx context.Context, e *daemon.Environment) error {
	dir, err := filepath.Abs(c.Dir)
	if err == nil {
		_, err = os.ReadDir(dir)
	}
	if err != nil {
		return fmt.Errorf("plugin dev: %w", err)
	}
	home, err := os.MkdirTemp("", "lashd-plugin-dev-")
	if err != nil {
		return err
	}
	defer content.Remove(home)
	root := filepath.Join(home, "user")
	if err := errors.Join(os.Mkdir(root, 0o700), os.Symlink(dir, filepath.Join(root, filepath.Base(dir)))); err != nil {
		return err
	}
	return c.run(ctx, home, root)
}

// run loads the plugin from the plugin directory root until ctx is done. home is
// the temporary directory of the loader, whose name also marks the plugin's
// processes.
func (c pluginDevCommand) run(ctx context.Context, home, root string) error {
	base, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, nil)
	if err != nil {
		return err
	}
	d := &developer{}
	d.loader = pluginloader.New(pluginloader.Config{
		Base: base, Driver: standard.ID, User: []string{root}, Home: home, Environ: os.Environ(), Nonce: filepath.Base(home), Version: daemon.Version, Memory: noMemory{},
		Log: slog.New(attrLog(d.logged)), News: d.news,
		ToolsChanged: func(context.Context, string, protocol.SessionID) {},
		Running:      func() (protocol.TurnID, bool) { return "", false },
	})
	return d.loader.Run(ctx)
}

// news prints a change of the plugin: its status, its problems, and the
// contributions that were added or removed since the last loaded version.
func (d *developer) news(event protocol.ServerEvent) {
	p := event.Plugin
	now := d.printed
	if p.Status == protocol.PluginLoaded {
		now = contributed(p.Dir, d.printed)
	}
	d.print("%s: %s", p.Name, strings.TrimSpace(string(p.Status)+" "+p.Version))
	for _, problem := range p.Problems {
		d.print("  %s", problem)
	}
	d.differ("-", d.printed, now)
	d.differ("+", now, d.printed)
	d.printed = now
}

// contributed returns the contributions of a plugin as lines of kind and name. If
// the files cannot be read, they have changed again and another event follows; it
// then returns was.
func contributed(dir string, was []string) (all []string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return was
	}
	defer root.Close()
	m, err := manifest.Load(root)
	if err != nil {
		return was
	}
	for _, c := range pluginloader.Contributions(m) {
		all = append(all, c.Kind+" "+c.Name)
	}
	return all
}

// differ prints the contributions in some that are not in others.
func (d *developer) differ(sign string, some, others []string) {
	for _, c := range some {
		if !slices.Contains(others, c) {
			d.print("  %s %s", sign, c)
		}
	}
}

// print prints a line.
func (d *developer) print(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintln(console.Stdout, console.Printable(fmt.Sprintf(format, args...)))
}

// logged prints the log lines of the plugin and skips those of the loader. It
// receives one attribute of a log record at a time.
func (d *developer) logged(a slog.Attr) {
	if a.Key == "text" {
		d.print("  | %s", a.Value.String())
	}
}
