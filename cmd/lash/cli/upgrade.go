package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"lashd/cmd/internal/console"
	"lashd/cmd/internal/daemon"
	"lashd/cmd/internal/installation"
	"lashd/cmd/lash/service"
	"lashd/cmd/lash/upgrade"
	"lashd/internal/pathresolve"
)

// upgradeCommand implements lash upgrade.
type upgradeCommand struct {
	Check   bool   `help:"Only show the installed and the newest version."`
	Version string `help:"Version to install, also an older one; default the newest." placeholder:"VERSION"`
	From    string `help:"Address of the releases; default the one of this build." env:"LASH_BASE_URL" placeholder:"URL"`
}

// Help is shown by --help.
func (upgradeCommand) Help() string {
	return `Replaces lash and lashd by those of the newest release. If anything fails, both stay as they are. A running daemon keeps its
version until you stop it.

lash compares the SHA-256 of the archive with checksums.txt from the same address. This finds damaged downloads. It does not
protect you if the server itself is taken over: you trust the server, and HTTPS, which proves that it is the server.

An older lashd may refuse data of a newer one. Make a backup before you install an older version.

Examples:
  lash upgrade --check
  lash upgrade --version 0.2.0`
}

// Run finds the release and switches to it, unless it is already installed.
func (c upgradeCommand) Run(ctx context.Context, e *daemon.Environment) error {
	var to installation.Installation
	if !c.Check {
		self, err := os.Executable()
		if err == nil {
			to, err = upgrade.Installed(self)
		}
		if err != nil {
			return err
		}
	}
	s := upgrade.Source{Address: cmp.Or(c.From, upgrade.Address), Report: func(step string) { e.Note("%s", step) }}
	r, err := s.Find(ctx, c.Version)
	if err != nil {
		return fmt.Errorf("the release was not found: %w", err)
	}
	if n := r.Compare(daemon.Version); c.Check || n == 0 || n < 0 && c.Version == "" {
		fmt.Fprintln(console.Stdout, c.verdict(r))
		return nil
	}
	progress := console.Begin("installing lash and lashd "+r.Version, "Ctrl-C cancels it; nothing changes")
	defer progress.End()
	s.Progress = func(bytes int64) { progress.Far("%s downloaded", mebibytes(bytes)) }
	if console.Terminal(os.Stderr) {
		s.Report = func(step string) { progress.Far("%s", step) }
	}
	if err := s.Install(ctx, r, to); err != nil {
		return err
	}
	progress.End()
	fmt.Fprintf(console.Stdout, "Installed lash and lashd %s (before: %s). The archive has the checksum that %s publishes; nothing else proves its origin.\n",
		r.Version, daemon.Version, s.Address)
	adviseRestart(ctx, e, r.Version)
	return nil
}

// verdict compares the release with this version.
func (c upgradeCommand) verdict(r upgrade.Release) string {
	what := cmp.Or(c.Version, "the newest release")
	switch n := r.Compare(daemon.Version); {
	case n == 0:
		return fmt.Sprintf("lash %s is installed. It is %s.", daemon.Version, what)
	case n < 0 && c.Version == "":
		return fmt.Sprintf("lash %s is installed. It is newer than the newest release, %s.", daemon.Version, r.Version)
	case c.Version != "":
		return fmt.Sprintf("lash %s is installed. To install %s: lash upgrade --version %s", daemon.Version, r.Version, r.Version)
	}
	return fmt.Sprintf("lash %s is installed. The newest release is %s. To install it: lash upgrade", daemon.Version, r.Version)
}

// adviseRestart says how to restart a daemon that still runs another version.
func adviseRestart(ctx context.Context, e *daemon.Environment, version string) {
	e.Warned = true // this process is of the old version, too
	l, err := e.Dial(ctx, false, nil)
	if err != nil {
		return // no daemon that could be old
	}
	defer l.Close()
	if theirs := l.Daemon.ServerInfo.Version; theirs != version {
		fmt.Fprintf(console.Stdout, "The daemon still runs lashd %s. Turns that run would be interrupted, so it was not restarted. To restart it: %s\n", theirs, service.Restart())
	}
}

// installCommand switches to the release that contains this program. install.sh runs it after it has unpacked a release into the directory
// of releases.
type installCommand struct {
	Prefix string `required:"" help:"Directory for bin, lib and share."`
}

// Run moves the release into place and creates the links to it.
func (c installCommand) Run() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	self, err = pathresolve.Real(self)
	prefix, prefixErr := pathresolve.Real(c.Prefix)
	if err := errors.Join(err, prefixErr); err != nil {
		return err
	}
	to := installation.Installation{Prefix: prefix}
	release := filepath.Dir(filepath.Dir(self))
	if _, in := installation.Of(self); in || !strings.HasPrefix(release, to.Lib()+string(filepath.Separator)) {
		return errors.New("lash install is a step of install.sh; to install lash, run install.sh; to upgrade it, run lash upgrade")
	}
	return to.Switch(release, daemon.Version)
}
