package content

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"lashd/internal/pathresolve"
	"lashd/pluginloader/watch"
	"lashd/rpc/protocol"
)

// Approval records that a person trusts the plugin with this digest in this directory. Every field
// must match: the same contents in another directory need a new approval.
type Approval struct {
	At  string `json:"at"`  // absolute path at which the plugin was found; a link elsewhere to the same directory is not approved
	Dir string `json:"dir"` // At with links resolved
	// Dev and Ino identify the directory, so that another directory at the same path is not
	// approved.
	Dev    uint64          `json:"dev"`
	Ino    uint64          `json:"ino"`
	Digest protocol.Digest `json:"digest"`
}

// Approvals stores approvals durably where only lashd writes. Trust calls it from one goroutine at
// a time.
type Approvals interface {
	All(context.Context) ([]Approval, error)
	Add(context.Context, Approval) error
	Remove(context.Context, Approval) error
}

// Trust records which plugins a person trusts. The contents of a workspace cannot grant trust:
// changed contents, or another directory at the same path, do not match an approval. Only Approve
// grants it, for an exact digest at an exact place. It is safe for concurrent use.
type Trust struct {
	kept Approvals // durable storage

	change sync.Mutex // held while approvals are stored or removed

	mu  sync.Mutex
	all []Approval // the approvals in memory, which decide
}

// NewTrust reads the stored approvals.
func NewTrust(ctx context.Context, kept Approvals) (*Trust, error) {
	all, err := kept.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("approved plugins: %w", err)
	}
	return &Trust{kept: kept, all: all}, nil
}

// place returns the approval of a digest for the directory as it is on disk now.
func place(dir string, d protocol.Digest) (Approval, error) {
	at, err := filepath.Abs(dir)
	if err != nil {
		return Approval{}, err
	}
	real, err := pathresolve.Existing(at)
	if err != nil {
		return Approval{}, err
	}
	info, err := os.Lstat(real)
	if err == nil && !info.IsDir() {
		err = fmt.Errorf("%s is not a directory", real)
	}
	if err != nil {
		return Approval{}, err
	}
	stamp := watch.StampOf(info)
	return Approval{At: at, Dir: real, Dev: stamp.Dev, Ino: stamp.Ino, Digest: d}, nil
}

// Trusted reports whether the plugin with a digest is approved in dir. It is false if dir cannot be
// read.
func (t *Trust) Trusted(dir string, d protocol.Digest) bool {
	a, err := place(dir, d)
	if err != nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.all, a)
}

// Knows reports whether any contents were approved at dir, wherever dir leads now. The loader
// spends less effort on directories that it does not know.
func (t *Trust) Knows(dir string) bool {
	at, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.all, func(a Approval) bool { return a.At == at })
}

// Approve stores the approval of a digest in dir. It is durable when Approve returns nil.
func (t *Trust) Approve(ctx context.Context, dir string, d protocol.Digest) error {
	t.change.Lock()
	defer t.change.Unlock()
	a, err := place(dir, d)
	if err == nil {
		err = t.kept.Add(ctx, a)
	}
	if err != nil {
		return fmt.Errorf("approve plugin %s: %w", dir, err)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !slices.Contains(t.all, a) {
		t.all = append(t.all, a)
	}
	return nil
}

// Revoke removes all approvals at dir, even if dir no longer exists. The plugin is untrusted at
// once, also if Revoke returns an error. Then call it again, or the stored approvals return at the
// next start.
func (t *Trust) Revoke(ctx context.Context, dir string) error {
	t.change.Lock()
	defer t.change.Unlock()
	at, err := filepath.Abs(dir)
	if err != nil {
		return fmt.Errorf("revoke plugin %s: %w", dir, err)
	}
	t.forget(at)
	all, err := t.kept.All(ctx)
	for _, a := range all {
		if err == nil && a.At == at {
			err = t.kept.Remove(ctx, a)
		}
	}
	if err != nil {
		return fmt.Errorf("revoke plugin %s: %w", dir, err)
	}
	return nil
}

// forget removes all approvals at a path from memory.
func (t *Trust) forget(at string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = slices.DeleteFunc(t.all, func(a Approval) bool { return a.At == at })
}

// All returns a copy of the approvals.
func (t *Trust) All() []Approval {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.all)
}
