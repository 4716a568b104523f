package cli

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"lashd/cmd/internal/config"
	"lashd/engine/capture"
	"lashd/engine/sandbox"
)

// sandboxes returns the places for sandboxes of commands. lashd's own data is hidden from them, and so are the files with secrets that the
// environment names.
func (e *server) sandboxes(cfg config.Config) sandbox.Places {
	user, err := os.UserHomeDir()
	if err != nil {
		user = ""
	}
	p := sandbox.Places{Home: user, State: e.Home, Scratch: e.Scratch(), Hidden: []string{filepath.Dir(e.Socket)}, Named: sandbox.NamedSecrets(os.Environ(), user)}
	got := capture.Environment(cfg.Environ(os.Environ()))
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

// removeUnused removes temporary files of sandboxed commands in workspaces that have not been used for long. The returned function waits for
// that. Failures are only logged.
func (e *server) removeUnused(ctx context.Context, places sandbox.Places) (wait func()) {
	if err := places.Retire(time.Now()); err != nil {
		e.Log.Warn("cannot retire temporary files of sandboxed commands", "error", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	var removal sync.WaitGroup
	removal.Go(func() {
		if err := places.RemoveRetired(ctx); err != nil && ctx.Err() == nil {
			e.Log.Warn("cannot remove temporary files of sandboxed commands", "error", err)
		}
	})
	return func() { cancel(); removal.Wait() }
}
