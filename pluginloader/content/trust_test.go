//go:build unix

package content_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/pluginloader/content"
	"lashd/rpc/protocol"
)

// kept keeps approvals in memory, or fails.
type kept struct {
	all []content.Approval
	err error
}

func (k *kept) All(context.Context) ([]content.Approval, error) { return slices.Clone(k.all), k.err }

func (k *kept) Add(_ context.Context, a content.Approval) error {
	if k.err == nil {
		k.all = append(k.all, a)
	}
	return k.err
}

func (k *kept) Remove(_ context.Context, a content.Approval) error {
	if k.err == nil {
		k.all = slices.DeleteFunc(k.all, func(b content.Approval) bool { return a == b })
	}
	return k.err
}

func TestTrust(t *testing.T) {
	const one, two = protocol.Digest("1"), protocol.Digest("2")
	home := t.TempDir()
	dir := files{"plugin.json": named}.in(t, filepath.Join(home, "p"))
	k := &kept{}
	trust, err := content.NewTrust(t.Context(), k)
	check(t, err)
	trusted := func(dir string, d protocol.Digest, want bool) {
		t.Helper()
		if got := trust.Trusted(dir, d); got != want {
			t.Errorf("%s in %s: trusted %t", d, dir, got)
		}
	}
	t.Run("reliability/T5 a plugin without approval is not trusted", func(t *testing.T) { trusted(dir, one, false) })
	check(t, trust.Approve(t.Context(), dir, one))
	t.Run("reliability/T5 exactly the approved contents are trusted", func(t *testing.T) {
		trusted(dir, one, true)
		trusted(dir, two, false)
		trusted(files{"plugin.json": named}.in(t, filepath.Join(home, "q")), one, false)
	})
	t.Run("reliability/T5 a link elsewhere to an approved plugin is not trusted", func(t *testing.T) {
		check(t, os.Symlink("p", filepath.Join(home, "l")))
		trusted(filepath.Join(home, "l"), one, false)
	})
	t.Run("reliability/T5 approvals survive a restart", func(t *testing.T) {
		again, err := content.NewTrust(t.Context(), k)
		check(t, err)
		if !again.Trusted(dir, one) || again.Trusted(dir, two) {
			t.Errorf("got %+v", again.All())
		}
	})
	t.Run("reliability/T6 another directory at the same path is not trusted", func(t *testing.T) {
		check(t, os.Rename(dir, dir+".old"))
		files{"plugin.json": named}.in(t, dir)
		trusted(dir, one, false)
		check(t, os.RemoveAll(dir), os.Symlink("p.old", dir))
		trusted(dir, one, false)
		check(t, os.Remove(dir), os.WriteFile(dir, nil, 0o644))
		trusted(dir, one, false)
		check(t, os.Remove(dir))
		trusted(dir, one, false)
		check(t, os.Rename(dir+".old", dir))
		trusted(dir, one, true)
	})
	t.Run("reliability/T5 an approval that cannot be stored fails", func(t *testing.T) {
		k.err = errors.New("full")
		defer func() { k.err = nil }()
		if err := trust.Approve(t.Context(), dir, two); err == nil || !strings.HasSuffix(err.Error(), "full") {
			t.Errorf("got %v", err)
		}
		trusted(dir, two, false)
	})
	t.Run("reliability/T5 a revoked plugin is untrusted even if that cannot be stored", func(t *testing.T) {
		check(t, trust.Approve(t.Context(), dir, two))
		k.err = errors.New("full")
		if err := trust.Revoke(t.Context(), dir); err == nil {
			t.Error("that it cannot be stored is not told")
		}
		k.err = nil
		trusted(dir, one, false)
		trusted(dir, two, false)
		check(t, trust.Revoke(t.Context(), dir))
		if len(k.all) > 0 {
			t.Errorf("stored are %+v", k.all)
		}
	})
}
