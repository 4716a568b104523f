package content

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"lashd/pluginloader/manifest"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

// ErrProgram means that a program's bytes differ from the approved ones.
var ErrProgram = errors.New("the program changed since it was approved")

// ErrFile means that a file which a command names differs from the approved one.
var ErrFile = errors.New("the file changed since it was approved")

// Programs checks programs outside plugins against their approved digests. It remembers digests by
// file identity and time stamps, so an unchanged program is read once. The zero value is ready for
// use, and all methods are safe for concurrent use.
type Programs struct {
	mu   sync.Mutex
	seen map[watch.Stamp]protocol.Digest // digests of files that were read, by stamp
}

// Program is an approved program, open for a start. Close it after the start.
type Program struct {
	Path string // path with links resolved
	// Runs is the file to execute while the Program is open. It is the file that was checked, even
	// if another one has taken its path. For a script it is nil, because the interpreter opens the
	// script by path. A change between the check and that moment goes unnoticed.
	Runs *os.File
	file *os.File
}

// Close closes the file. A program that runs is not affected.
func (p Program) Close() error { return p.file.Close() }

// Finder returns a finder that computes digests through the cache. look locates a program by name,
// like exec.LookPath; it may be nil if only digests are needed.
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

// CheckFiles returns an error unless all files that the plugin's commands name are as approved.
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

// CheckDirectory returns an error if a command that runs in a directory below the workspace may find another file there than the one that was
// approved, because it names the file by a relative path.
func (p *Programs) CheckDirectory(ctx context.Context, approved manifest.Beyond, workspace, dir string) error {
	if dir == workspace || !within(workspace, dir) {
		return nil
	}
	for _, f := range approved.Files {
		rel, err := filepath.Rel(workspace, f.Path)
		if err != nil || !filepath.IsLocal(rel) {
			continue
		}
		other := manifest.NamedFile{Path: filepath.Join(dir, rel), Digest: f.Digest}
		if _, err := os.Stat(other.Path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if same, err := other.Same(ctx, p.Finder(nil).Digest); err != nil || !same {
			return fmt.Errorf("the file %s, which a command of the plugin could use in place of %s: %w", other.Path, f.Path, cmp.Or(err, ErrFile))
		}
	}
	return nil
}

// within reports whether a path is dir or below it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// Check returns an error unless all programs that the plugin may run are as approved.
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

// Open checks and opens the approved program that the plugin calls name. Programs inside the plugin
// are not listed; the digest of the copy covers them. Start the program from Runs, not from its
// path: a different file may have that path after Open. The caller closes the Program.
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

// open compares the bytes of the file at the approved path with the approved digest.
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

// digest returns the digest of an open file, from the cache if the file's stamp is unchanged. It
// caches a digest only if the stamp would show a later change: the stamp was the same after reading
// and is not hot.
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

// known returns the digest of a file with a stamp.
func (p *Programs) known(s watch.Stamp) (protocol.Digest, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	d, ok := p.seen[s]
	return d, ok
}

// maxSeen bounds the cache. Plugins run far fewer programs.
const maxSeen = 1000

// keep remembers the digest of a file. A full cache starts empty again.
func (p *Programs) keep(s watch.Stamp, d protocol.Digest) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.seen == nil || len(p.seen) >= maxSeen {
		p.seen = map[watch.Stamp]protocol.Digest{}
	}
	p.seen[s] = d
}

// script reports whether an interpreter runs the program. An unreadable file counts as a script.
func script(f *os.File) bool {
	head := make([]byte, 2)
	n, err := f.ReadAt(head, 0)
	return err != nil || bytes.Equal(head[:n], []byte("#!"))
}
