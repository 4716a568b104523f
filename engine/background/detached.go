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

// detached is the script of the supervisor shell of a detached command. It waits for the
// command, limits the output file with ulimit in a cat, and then renames a file with the
// exit status into place.
//
// The shell and the command hold a file lock while they run. The lock is more reliable than
// a process id, because it survives restarts of lashd and never refers to another process.
// All of them are one process group. Only the command reacts to SIGTERM; the others ignore
// it. The output does not mention the end of the command, because the shell that notices it
// writes to no file.
//
// Arguments: $1 the script, $2 the status file, $3 the output limit in blocks of 512 bytes,
// $4 the output file. File descriptor 3 is the lock.
const detached = `trap : TERM; ( trap : TERM; { trap : TERM; (exec sh -c "$1" 2>&1 3>&-); echo $? >"$2.new"; } | { trap "" TERM; (ulimit -f "$3"; exec cat); exec cat >/dev/null; } 2>/dev/null 3>&-; mv "$2.new" "$2" ) </dev/null >>"$4" 2>/dev/null &`

// named is the line before detached that writes the process group into the lock file, for
// Halt. It is left out for commands that lashd may not stop.
const named = "echo $$ >&3 || exit; "

// Endings of the files of a detached command, beside its output.
const (
	lockFile   = ".lock"
	statusFile = ".status"
)

// files are the endings of all files that a task may have.
var files = []string{".out", lockFile, statusFile, statusFile + ".new"}

// path returns the path of a task's file with this ending.
func (o *Outputs) path(t *protocol.Task, ending string) string {
	return filepath.Join(o.dir, strings.TrimSuffix(name(t), ".out")+ending)
}

// Ended returns the outcome of a detached command, or nil while it runs. known is false if
// there is neither a status nor a lock, as after a reboot or a SIGKILL of the shell.
func (c *Commands) Ended(t *protocol.Task) (out *protocol.TaskOutcome, known bool) {
	if out := c.status(t, statusFile); out != nil {
		return out, true
	}
	if locked(c.Outputs.path(t, lockFile)) {
		return nil, true
	}
	for _, ending := range []string{statusFile, statusFile + ".new"} { // the command may have ended after the first check
		if out := c.status(t, ending); out != nil {
			return out, true
		}
	}
	return nil, false
}

// Halt stops a detached command with all processes of its group: SIGTERM, then SIGKILL
// after a grace period. It returns when they have ended or ctx is done. It does nothing if
// the command has ended.
func (c *Commands) Halt(ctx context.Context, t *protocol.Task) error {
	return haltHolder(ctx, c.Outputs.path(t, lockFile))
}

// HaltAll stops the detached commands to which these files belong, and joins the errors.
func (c *Commands) HaltAll(ctx context.Context, n Names) (err error) {
	for name := range n {
		if strings.HasSuffix(name, lockFile) {
			err = errors.Join(err, haltHolder(ctx, filepath.Join(c.Outputs.dir, name)))
		}
	}
	return err
}

// haltHolder stops the command that holds a lock. While the lock is held, the group in its
// file exists and its number cannot belong to other processes.
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
		return fmt.Errorf("%q is not a process group", text)
	}
	return halt(ctx, group, lock)
}

// status reads the exit status from a status file. It returns nil if the file is missing or
// incomplete.
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
