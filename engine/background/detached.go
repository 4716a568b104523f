package background

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"lashd/rpc/protocol"
)

// A detached command belongs to nobody: a shell of its own waits for it. What it puts out goes through a cat whose
// file may not be longer than lashd would make it; its exit status becomes a file, all at once. For as long as that shell, or the command, is there it
// holds a lock, which says more than a process id could: it holds over a restart of anything. All of this is one group, of which
// only the command minds when it is asked to end. That it has is not said in its output: the shell that sees it has none.
const detached = `trap : TERM; ( trap : TERM; { trap : TERM; (exec sh -c "$1" 2>&1 3>&-); echo $? >"$2.new"; } | { trap "" TERM; (ulimit -f "$3"; exec cat); exec cat >/dev/null; } 2>/dev/null 3>&-; mv "$2.new" "$2" ) </dev/null >>"$4" 2>/dev/null &`

// named has the lock say which group is to be halted. What only others end does not say it.
const named = "echo $$ >&3 || exit; "

// Files of a detached command, beside its output.
const (
	lockFile   = ".lock"
	statusFile = ".status"
)

// files are the endings of all that may be there of a task.
var files = []string{".out", lockFile, statusFile, statusFile + ".new"}

func (o *Outputs) path(t *protocol.Task, ending string) string {
	return filepath.Join(o.dir, strings.TrimSuffix(name(t), ".out")+ending)
}

// Ended tells how a detached command has ended; nil: it runs. known is false if nobody can say.
func (c *Commands) Ended(t *protocol.Task) (out *protocol.TaskOutcome, known bool) {
	if out := c.status(t, statusFile); out != nil {
		return out, true
	}
	if locked(c.Outputs.path(t, lockFile)) {
		return nil, true
	}
	for _, ending := range []string{statusFile, statusFile + ".new"} { // it may have come meanwhile
		if out := c.status(t, ending); out != nil {
			return out, true
		}
	}
	return nil, false
}

// Halt asks a detached command to end, with all that has not left its group, and kills it if it does not. It returns once that is
// so, or ctx is done.
func (c *Commands) Halt(ctx context.Context, t *protocol.Task) error {
	return haltHolder(ctx, c.Outputs.path(t, lockFile))
}

// HaltAll halts the detached commands that have files of these names.
func (c *Commands) HaltAll(ctx context.Context, n Names) (err error) {
	for name := range n {
		if strings.HasSuffix(name, lockFile) {
			err = errors.Join(err, haltHolder(ctx, filepath.Join(c.Outputs.dir, name)))
		}
	}
	return err
}

// haltHolder halts the command that holds a lock, if one does that says how. For as long as it is held the group is there, and nobody else's.
func haltHolder(ctx context.Context, lock string) error {
	if !locked(lock) {
		return nil
	}
	text, err := os.ReadFile(lock)
	if err != nil || len(text) == 0 {
		return err
	}
	group, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || group <= 1 {
		return fmt.Errorf("%q is no process group", text)
	}
	return halt(ctx, group, lock)
}

func (c *Commands) status(t *protocol.Task, ending string) *protocol.TaskOutcome {
	text, err := os.ReadFile(c.Outputs.path(t, ending))
	if err != nil || !strings.HasSuffix(string(text), "\n") {
		return nil
	}
	code, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return nil
	}
	return &protocol.TaskOutcome{Kind: protocol.TaskExited, ExitCode: &code}
}
