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

// Approval says that a person trusts a plugin, as it was then and where it was then.
type Approval struct {
	At     string          `json:"at"`  // where it was found: a link to it elsewhere is not approved
	Dir    string          `json:"dir"` // after all links
	Dev    uint64          `json:"dev"`
	Ino    uint64          `json:"ino"`
	Digest protocol.Digest `json:"digest"`
}

// Approvals keeps approvals where nothing but lashd writes.
type Approvals interface {
	All(context.Context) ([]Approval, error)
	Add(context.Context, Approval) error
	Remove(context.Context, Approval) error
}

// Trust knows which plugins a person trusts. What is in a directory cannot change that, but to end it: other content, and
// other directories in the same place, are not what was approved.
type Trust struct {
	kept Approvals

	change sync.Mutex // held while approvals are stored or removed

	mu  sync.Mutex
	all []Approval
}

// NewTrust reads what was approved before.
func NewTrust(ctx context.Context, kept Approvals) (*Trust, error) {
	all, err := kept.All(ctx)
	if err != nil {
		return nil, fmt.Errorf("approved plugins: %w", err)
	}
	return &Trust{kept: kept, all: all}, nil
}

// place is an approval of a digest in a directory as it is now.
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

// Trusted tells whether the plugin with a digest was approved in a directory.
func (t *Trust) Trusted(dir string, d protocol.Digest) bool {
	a, err := place(dir, d)
	if err != nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.all, a)
}

// Knows tells whether anything was ever approved in a directory, wherever that leads to now.
func (t *Trust) Knows(dir string) bool {
	at, err := filepath.Abs(dir)
	if err != nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.all, func(a Approval) bool { return a.At == at })
}

// Approve remembers that a person trusts what has a digest in a directory. When it returns, that is durable.
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

// Revoke forgets all that was approved in a directory, wherever that led to, even if it is gone. It is not trusted from
// then on even if that cannot be stored, which is the error; then it is to be called again.
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

func (t *Trust) forget(at string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = slices.DeleteFunc(t.all, func(a Approval) bool { return a.At == at })
}

// All are the approvals there are.
func (t *Trust) All() []Approval {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.all)
}
