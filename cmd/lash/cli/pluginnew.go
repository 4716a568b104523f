package cli

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/pluginloader/manifest"
	"lashd/plugins"
)

// pluginNewCommand implements lash plugin new. The templates are in package
// plugins.
type pluginNewCommand struct {
	Lang string `enum:"python,ts,go,command" required:"" placeholder:"LANGUAGE" help:"Language: ${enum}."`
	Name string `arg:"" help:"Name of the plugin."`
	Dir  string `arg:"" optional:"" help:"Directory to create (default the name)."`
}

// Help is shown by --help.
func (pluginNewCommand) Help() string {
	return `Creates a working plugin with plugin.json, a hook, a tool, a test and the SDK. It needs no other packages. A TypeScript
plugin (ts) needs Node 22.18 or newer, which runs it without a build step.

Example: lash plugin new --lang python guard`
}

// next are the commands that plugin new suggests, by language.
var next = map[string][2]string{
	"python":  {"python3 -B -m unittest", "lash plugin check --run ."},
	"ts":      {"node --test handlers.test.mts", "lash plugin check --run ."},
	"go":      {"go test ./...", "lash plugin check --run ."},
	"command": {"sh test.sh", "lash plugin check ."},
}

// Run creates the plugin and prints the commands to try next. For TypeScript it
// first checks that Node is new enough, because the plugin could not run
// otherwise.
func (c pluginNewCommand) Run() error {
	if strings.ContainsAny(c.Name, `/\`) {
		return console.Exit(console.ExitUsage, fmt.Errorf("plugin name %q is a path; give the name first, then the directory: lash plugin new --lang LANGUAGE NAME DIR", c.Name))
	}
	if c.Lang == "ts" {
		if err := checkNode(exec.LookPath, nodeVersion); err != nil {
			return console.Exit(console.ExitFailed, fmt.Errorf("plugin new: %w", err))
		}
	}
	dir := cmp.Or(c.Dir, c.Name)
	if err := c.create(dir); err != nil {
		return fmt.Errorf("plugin new: %w", err)
	}
	fmt.Fprintf(console.Stdout, "Created plugin %s. To use it in all your sessions, move or link it to %s.\nNext:\n\n  cd %[1]s\n  %[3]s\n  %[4]s\n",
		console.Printable(dir), console.Printable(strings.Join(daemon.UserPlugins(), " or ")), next[c.Lang][0], next[c.Lang][1])
	return nil
}

// create creates the directory with all files, or nothing: it writes to a
// temporary directory next to it and renames that. An existing file or directory
// is an error.
func (c pluginNewCommand) create(dir string) error {
	if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, fmt.Errorf("%s already exists", dir))
	}
	files, err := plugins.New(c.Lang, c.Name)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		return err
	}
	made, err := os.MkdirTemp(filepath.Dir(dir), ".new-plugin-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(made) // after the rename there is nothing to remove
	if err := c.write(made, files); err != nil {
		return err
	}
	return os.Rename(made, dir)
}

// write writes the files to dir and checks the manifest, which rejects invalid
// plugin names. It makes dir readable for others, unlike a temporary directory.
func (c pluginNewCommand) write(dir string, files []plugins.File) error {
	for _, f := range files {
		path := filepath.Join(dir, filepath.FromSlash(f.Path))
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, f.Data, 0o644)); err != nil {
			return err
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if _, err := manifest.Load(root); err != nil {
		return err // the name is invalid
	}
	return os.Chmod(dir, 0o755)
}
