package command

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"lashd/engine/proc"
	"lashd/pluginloader/manifest"
)

// Limits of a run of a hook.
const (
	hookTimeout = time.Minute            // default
	maxStdout   = 1 << 20                // bytes; more is a failure
	maxStderr   = 64 << 10               // bytes; more is dropped
	maxLines    = 20                     // of stderr in the plugin's log
	hookGrace   = 500 * time.Millisecond // from SIGTERM to SIGKILL
	hookDrain   = 300 * time.Millisecond // to read the output of processes that outlive the command
)

// hook is a command hook that is ready to run. It is prepared when the plugin is loaded and never
// changes.
type hook struct {
	manifest.CommandHook
	matcher matcher
	argv    []string // complete, except for the project of a session
	timeout time.Duration
}

// newHook compiles the matcher and completes the command line.
func (p *Part) newHook(h manifest.CommandHook) (*hook, error) {
	m, err := newMatcher(h.Matcher)
	if err != nil {
		return nil, err
	}
	made := &hook{CommandHook: h, matcher: m, timeout: cmp.Or(time.Duration(h.TimeoutMs)*time.Millisecond, hookTimeout)}
	if h.Args == nil {
		made.argv = []string{"sh", "-c", h.Command}
		return made, nil
	}
	for _, element := range slices.Concat([]string{h.Command}, h.Args) {
		made.argv = append(made.argv, manifest.Substitute(element, p.config.Root, p.config.Data, p.passed(h.PassEnv)))
	}
	return made, nil
}

// projectVariable is the project directory in the arguments of a hook. It is known when the hook runs.
const projectVariable = "CLAUDE_PROJECT_DIR"

// in returns the command line for a project.
func (h *hook) in(project string) (argv []string) {
	for _, element := range h.argv {
		if h.Args != nil {
			element = strings.ReplaceAll(element, "${"+projectVariable+"}", project)
		}
		argv = append(argv, element)
	}
	return argv
}

// passed returns a lookup of variables in lashd's environment. It finds only the names that the
// hook declares in PassEnv.
func (p *Part) passed(names []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if name == projectVariable {
			return "${" + name + "}", true
		}
		for _, v := range p.config.Environ {
			if key, value, _ := strings.Cut(v, "="); key == name && slices.Contains(names, name) {
				return value, true
			}
		}
		return "", false
	}
}

// String returns the file and line of the hook's definition, for people.
func (h *hook) String() string { return fmt.Sprintf("%s:%d", h.File, h.Line) }

// ran is a finished run of a hook: how the command ended, and its output up to the limits.
type ran struct {
	exit           proc.Exit
	stdout, stderr []byte
	took           time.Duration
	found          string // files that it changed and that start programs, for people; empty: none
}

// run runs a hook to its end and returns its result and duration. After an error the hook has made
// no decision; OnError of the hook says what follows.
func (p *Part) run(ctx context.Context, h *hook, at place, input []byte) (opinion, time.Duration, error) {
	r, err := p.await(ctx, h, at, input)
	p.repeat(r.stderr)
	if err != nil {
		return opinion{}, r.took, err
	}
	o, err := r.decision(h.Event, p.diagnostic)
	o.message = strings.TrimSpace(o.message + "\n" + r.found)
	return o, r.took, err
}

// await runs a hook to its end: it starts the command, feeds it the event on stdin, and waits at
// most the hook's timeout. Processes that the command leaves behind are ended. The error means that
// the run cannot have made a decision.
func (p *Part) await(ctx context.Context, h *hook, at place, input []byte) (r ran, err error) {
	end, err := p.begin()
	if err != nil {
		return r, err
	}
	defer end()
	limited, cancel := context.WithTimeoutCause(ctx, h.timeout, errTimeout)
	defer cancel()
	stdout, stderr := &bounded{limit: maxStdout}, &bounded{limit: maxStderr}
	project := cmp.Or(p.config.Project, at.cwd)
	own := map[string]string{projectVariable: project, "CLAUDE_PLUGIN_DATA": p.config.Data, "PWD": project}
	c := proc.Command{
		Argv: h.in(project), Dir: project, Stdin: bytes.NewReader(input), Stdout: stdout, Stderr: stderr, Grace: hookGrace, Drain: hookDrain,
	}
	box, release, err := p.prepare(limited, &c, at, h.PassEnv, own)
	if err != nil {
		return r, fmt.Errorf("it could not run: %w", err)
	}
	defer release()
	c.Nonce += "/" + rand.Text()
	start := time.Now()
	process, err := proc.Start(limited, c)
	if err != nil {
		return r, fmt.Errorf("it could not run: %w", err)
	}
	r.exit, err = process.Wait()
	if r.exit.Escaped {
		_, swept := proc.Sweep(c.Nonce) // the next sweep of lashd catches the rest
		err = errors.Join(err, swept)
	}
	if r.found = box.Changes(); r.found != "" {
		p.config.Output.Add(slog.LevelWarn, h.Event+": "+r.found)
	}
	r.stdout, r.stderr, r.took = stdout.bytes(), stderr.bytes(), time.Since(start)
	return r, r.failed(h, err, stdout.over())
}

// failed returns why a run cannot have made a decision; nil: it can. flooded means that stdout was
// cut. The first reason that applies is the one to report: a timeout also kills the command with a
// signal.
func (r *ran) failed(h *hook, err error, flooded bool) error {
	switch {
	case errors.Is(r.exit.Cause, errTimeout):
		return fmt.Errorf("it did not answer within %s", h.timeout)
	case r.exit.Cause != nil:
		return r.exit.Cause
	case r.exit.Signal != "":
		return fmt.Errorf("it was ended by %s", r.exit.Signal)
	case err != nil:
		return err
	case flooded:
		return fmt.Errorf("its output is larger than %d bytes", maxStdout)
	}
	return nil
}

// repeat copies the start of stderr to the plugin's log, so that authors can debug a hook. More
// would push out other lines.
func (p *Part) repeat(stderr []byte) {
	n := 0
	for line := range strings.Lines(string(stderr)) {
		if n++; n > maxLines {
			return
		}
		if line = strings.TrimRight(line, "\r\n"); line != "" {
			p.config.Output.Add(slog.LevelInfo, line)
		}
	}
}

// bounded keeps the first limit bytes written to it. Write never fails, so the hook does not
// notice. The command's output is copied on another goroutine, so a mutex protects the buffer.
type bounded struct {
	limit int

	mu    sync.Mutex
	kept  []byte
	total int
}

// Write keeps what fits and drops the rest.
func (b *bounded) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.total += len(data)
	b.kept = append(b.kept, data[:min(len(data), b.limit-len(b.kept))]...)
	return len(data), nil
}

func (b *bounded) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.kept
}

// over reports whether more than limit bytes were written.
func (b *bounded) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total > b.limit
}
