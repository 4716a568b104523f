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

const (
	hookTimeout = time.Minute // if nothing is said
	maxStdout   = 1 << 20
	maxStderr   = 64 << 10 // what is more is dropped
	maxLines    = 20       // of stderr, in the plugin's log
	hookGrace   = 500 * time.Millisecond
	hookDrain   = 300 * time.Millisecond
)

// hook is a command that is asked.
type hook struct {
	manifest.CommandHook
	matcher matcher
	argv    []string
	timeout time.Duration
}

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

// passed finds variables of lashd's environment that a hook names.
func (p *Part) passed(names []string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range p.config.Environ {
			if key, value, _ := strings.Cut(v, "="); key == name && slices.Contains(names, name) {
				return value, true
			}
		}
		return "", false
	}
}

// String is where the hook stands, for people.
func (h *hook) String() string { return fmt.Sprintf("%s:%d", h.File, h.Line) }

// ran is how a run of a hook ended.
type ran struct {
	exit           proc.Exit
	stdout, stderr []byte
	took           time.Duration
}

// run runs a hook to its end, and gives what it says. An error means that it has said nothing: nothing of it is a decision.
func (p *Part) run(ctx context.Context, h *hook, cwd string, input []byte) (opinion, time.Duration, error) {
	r, err := p.await(ctx, h, cwd, input)
	p.repeat(r.stderr)
	if err != nil {
		return opinion{}, r.took, err
	}
	o, err := r.spoken(h.Event, p.diagnostic)
	return o, r.took, err
}

// await runs a hook to its end, and tells whether it was one that can have decided.
func (p *Part) await(ctx context.Context, h *hook, cwd string, input []byte) (r ran, err error) {
	end, err := p.begin()
	if err != nil {
		return r, err
	}
	defer end()
	limited, cancel := context.WithTimeoutCause(ctx, h.timeout, errTimeout)
	defer cancel()
	stdout, stderr := &bounded{limit: maxStdout}, &bounded{limit: maxStderr}
	own := map[string]string{"CLAUDE_PROJECT_DIR": cwd, "CLAUDE_PLUGIN_DATA": p.config.Data, "PWD": cwd}
	c := proc.Command{
		Argv: h.argv, Dir: cwd, Stdin: bytes.NewReader(input), Stdout: stdout, Stderr: stderr, Grace: hookGrace, Drain: hookDrain,
	}
	release, err := p.prepare(limited, &c, cwd, h.PassEnv, own)
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
		_, swept := proc.Sweep(c.Nonce) // it is swept again when lashd ends
		err = errors.Join(err, swept)
	}
	r.stdout, r.stderr, r.took = stdout.bytes(), stderr.bytes(), time.Since(start)
	return r, r.failed(h, err, stdout.over())
}

// failed is why a run cannot have decided; nil: it can.
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

// repeat has the beginning of what a hook said on stderr in the plugin's log; more would keep out what is said of the run.
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

// bounded keeps the beginning of what is written to it. Write never fails: the hook must not notice.
type bounded struct {
	limit int

	mu    sync.Mutex
	kept  []byte
	total int
}

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

func (b *bounded) over() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.total > b.limit
}
