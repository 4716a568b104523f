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

	"lashd/engine/driver/standard"
	"lashd/engine/plugin"
	"lashd/persistence"
	"lashd/pluginloader"
	"lashd/pluginloader/content"
	"lashd/pluginloader/manifest"
	"lashd/rpc/protocol"
)

type pluginDevCommand struct {
	Dir string `arg:"" help:"Directory of the plugin."`
}

// Help is shown by --help.
func (pluginDevCommand) Help() string {
	return `Loads the plugin outside your daemon and reloads it when you save a file. Prints what the plugin adds (+) and no longer
adds (-), its errors with file, line and column, and its stderr. Press Ctrl-C to stop.

To use the plugin in your sessions, link its directory: ln -s DIR ~/.agents/plugins/

Example: lashd plugin dev ~/src/reviewer`
}

// noMemory remembers nothing.
type noMemory struct{}

func (noMemory) PluginFacts(context.Context) ([]persistence.PluginFact, error) { return nil, nil }

func (noMemory) Commit(context.Context, *persistence.Commit) (persistence.Result, error) {
	return persistence.Result{}, nil
}

// developer shows what becomes of a plugin that is being written.
type developer struct {
	mu     sync.Mutex // held while something is printed
	loader *pluginloader.Loader
	told   []string // what it contributes
}

func (c pluginDevCommand) Run(ctx context.Context, e *environment) error {
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

func (c pluginDevCommand) run(ctx context.Context, home, root string) error {
	base, err := plugin.NewHost([]plugin.Factory{standard.Factory{}}, nil)
	if err != nil {
		return err
	}
	d := &developer{}
	d.loader = pluginloader.New(pluginloader.Config{
		Base: base, Driver: standard.ID, User: []string{root}, Home: home, Environ: os.Environ(), Nonce: filepath.Base(home), Version: Version, Memory: noMemory{},
		Log: slog.New(attrLog(d.logged)), News: d.news,
		ToolsChanged: func(context.Context, string, protocol.SessionID) {},
		Running:      func() (protocol.TurnID, bool) { return "", false },
	})
	return d.loader.Run(ctx)
}

// news prints what has become of the plugin.
func (d *developer) news(event protocol.ServerEvent) {
	p := event.Plugin
	now := d.told
	if p.Status == protocol.PluginLoaded {
		now = contributed(p.Dir, d.told)
	}
	d.print("%s: %s", p.Name, strings.TrimSpace(string(p.Status)+" "+p.Version))
	for _, problem := range p.Problems {
		d.print("  %s", problem)
	}
	d.differ("-", d.told, now)
	d.differ("+", now, d.told)
	d.told = now
}

// contributed is what a plugin adds. One that cannot be read has been changed again, which is told next: it is as it was.
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

// differ prints what some contributions have that others have not.
func (d *developer) differ(sign string, some, others []string) {
	for _, c := range some {
		if !slices.Contains(others, c) {
			d.print("  %s %s", sign, c)
		}
	}
}

func (d *developer) print(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fmt.Fprintln(stdout, printable(fmt.Sprintf(format, args...)))
}

// logged prints what the plugin says, and nothing else of the loader's log.
func (d *developer) logged(a slog.Attr) {
	if a.Key == "text" {
		d.print("  | %s", a.Value.String())
	}
}
