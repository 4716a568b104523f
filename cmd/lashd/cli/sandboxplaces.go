package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"lashd/engine/capture"
	"lashd/engine/sandbox"
)

// sandboxes returns the places for sandboxes of commands. lashd's own data is hidden from them, and so are the files with secrets that the
// environment names.
func (e *environment) sandboxes(cfg config) sandbox.Places {
	user, err := os.UserHomeDir()
	if err != nil {
		user = ""
	}
	p := sandbox.Places{Home: user, State: e.home, Scratch: e.scratch(), Hidden: []string{filepath.Dir(e.socket)}, Named: sandbox.NamedSecrets(os.Environ(), user)}
	got := capture.Environment(cfg.environ(os.Environ()))
	for _, entry := range os.Environ() {
		switch name, _, _ := strings.Cut(entry, "="); {
		case slices.Contains(cfg.SandboxEnv, name):
			p.Env = append(p.Env, entry)
		case name != "PWD" && name != "OLDPWD" && name != "TERM" && !slices.Contains(got, entry):
			p.Withheld = append(p.Withheld, name)
		}
	}
	return p
}

// scratch is the directory for temporary files and caches of sandboxed commands.
func (e *environment) scratch() string { return filepath.Join(e.home, "sandbox") }

// removeUnused removes temporary files of sandboxed commands in workspaces that have not been used for long. The returned function waits for
// that. Failures are only logged.
func (e *environment) removeUnused(ctx context.Context, places sandbox.Places) (wait func()) {
	if err := places.Retire(time.Now()); err != nil {
		e.log.Warn("cannot retire temporary files of sandboxed commands", "error", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var removal sync.WaitGroup
	removal.Go(func() {
		if err := places.RemoveRetired(ctx); err != nil && ctx.Err() == nil {
			e.log.Warn("cannot remove temporary files of sandboxed commands", "error", err)
		}
	})
	return func() { cancel(); removal.Wait() }
}

// checkScratch notes the size of the temporary files of sandboxed commands.
func (d *diagnosis) checkScratch(ctx context.Context, e *environment) {
	n, bytes := sandbox.Places{Scratch: e.scratch()}.Size(ctx)
	if n == 0 {
		return
	}
	d.note("scratch", fmt.Sprintf("temporary files and caches of sandboxed commands: %d workspaces, %d MiB in %s; those of a workspace that was not used for 30 days are removed when the daemon starts", n,
		(bytes+1<<20-1)>>20, e.scratch()), nil, "")
}
