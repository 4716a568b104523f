package content

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"

	"lashd/pluginloader/manifest"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

// ErrProgram says that a program is not the one that was approved.
var ErrProgram = errors.New("the program changed since it was approved")

// ErrFile says that a file is not the one that was approved.
var ErrFile = errors.New("the file changed since it was approved")

// Programs knows programs by their bytes. The zero value is ready for use.
type Programs struct {
	mu   sync.Mutex
	seen map[watch.Stamp]protocol.Digest // what was read before
}

// Program is a program that was found to be what was approved, until it is closed.
type Program struct {
	Path string // its place, after all links
	// Runs is what to run, while the Program is open: the very file that was read, whatever is at its place by now. It is nil for
	// a script, which has to be found by its interpreter, so it is run from its place: what is put there between the check
	// and the start is not noticed.
	Runs *os.File
	file *os.File
}

// Close lets go of the program, once it was started.
func (p Program) Close() error { return p.file.Close() }

// Finder finds programs, and reads those again only that have changed. Look tells where a program is, as exec.LookPath does.
func (p *Programs) Finder(look func(string) (string, error)) manifest.Finder {
	return manifest.Finder{Look: look, Digest: func(ctx context.Context, path string) (protocol.Digest, error) {
		f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
		if err != nil {
			return "", err
		}
		defer f.Close()
		return p.digest(ctx, f)
	}}
}

// CheckFiles tells whether all files that the commands of a plugin name are still what was approved.
func (p *Programs) CheckFiles(ctx context.Context, approved manifest.Beyond) error {
	digest := p.Finder(nil).Digest
	for _, f := range approved.Files {
		same, err := f.Same(ctx, digest)
		if err != nil {
			return fmt.Errorf("the file %s, which a command of the plugin names: %w", f.Path, err)
		}
		if !same {
			return fmt.Errorf("the file %s, which a command of the plugin names: %w", f.Path, ErrFile)
		}
	}
	return nil
}

// Check tells whether all programs that a plugin may run are still those that were approved.
func (p *Programs) Check(ctx context.Context, approved manifest.Beyond) error {
	for _, e := range approved.Executables {
		program, err := p.Open(ctx, approved, e.Name)
		if err != nil {
			return err
		}
		if err := program.Close(); err != nil {
			return err
		}
	}
	return nil
}

// Open gives the program that a plugin calls so, as it was approved. Programs that are in the plugin itself are not among
// them: the digest of the copy is theirs, too.
func (p *Programs) Open(ctx context.Context, approved manifest.Beyond, name string) (Program, error) {
	i := slices.IndexFunc(approved.Executables, func(e manifest.Executable) bool { return e.Name == name })
	if i < 0 {
		return Program{}, fmt.Errorf("the program %q is not approved", name)
	}
	program, err := p.open(ctx, approved.Executables[i])
	if err != nil {
		return Program{}, fmt.Errorf("the program %q: %w", name, err)
	}
	return program, nil
}

func (p *Programs) open(ctx context.Context, e manifest.Executable) (Program, error) {
	f, err := os.OpenFile(e.Path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Program{}, err
	}
	digest, err := p.digest(ctx, f)
	if err == nil && digest != e.Digest {
		err = fmt.Errorf("%s: %w", e.Path, ErrProgram)
	}
	if err != nil {
		return Program{}, errors.Join(err, f.Close())
	}
	program := Program{Path: e.Path, Runs: f, file: f}
	if script(f) {
		program.Runs = nil
	}
	return program, nil
}

// digest reads a program, unless it was read before and is the same still.
func (p *Programs) digest(ctx context.Context, f *os.File) (protocol.Digest, error) {
	now := time.Now()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", errors.New("it is not a regular file")
	}
	stamp := watch.StampOf(info)
	if d, ok := p.known(stamp); ok {
		return d, nil
	}
	d, err := manifest.Sum(ctx, f)
	if err != nil {
		return "", err
	}
	if after, err := f.Stat(); err == nil && watch.StampOf(after) == stamp && !stamp.Hot(now) && stamp.Ino != 0 {
		p.keep(stamp, d)
	}
	return d, nil
}

func (p *Programs) known(s watch.Stamp) (protocol.Digest, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, ok := p.seen[s]
	return d, ok
}

// maxSeen is how many programs are kept: many more than anybody runs.
const maxSeen = 1000

func (p *Programs) keep(s watch.Stamp, d protocol.Digest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil || len(p.seen) >= maxSeen {
		p.seen = map[watch.Stamp]protocol.Digest{}
	}
	p.seen[s] = d
}

// script tells whether a program is run by an interpreter, which opens it by its name.
func script(f *os.File) bool {
	head := make([]byte, 2)
	n, err := f.ReadAt(head, 0)
	return err != nil || bytes.Equal(head[:n], []byte("#!"))
}
