package sandbox

import (
	"os"
	"path/filepath"
	"testing"
)

func TestCachesFollowNoLinks(t *testing.T) {
	t.Run("part11/network a directory for caches that leads elsewhere is not opened", func(t *testing.T) {
		temp, elsewhere := t.TempDir(), t.TempDir()
		if err := os.Symlink(elsewhere, filepath.Join(temp, "cache")); err != nil {
			t.Fatal(err)
		}
		if root, err := openCaches(temp); err == nil {
			t.Errorf("it opened %s", root.Name())
		}
	})
}

func TestProxiesOfGo(t *testing.T) {
	home := t.TempDir()
	stored := filepath.Join(home, "stored")
	if err := os.WriteFile(stored, []byte("GOFLAGS=\nGOPROXY=https://stored.test\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		row, want string
		env       []string
	}{
		{"the default", "https://proxy.golang.org|file:///home/x/go/pkg/mod/cache/download,direct", nil},
		{"several proxies", "https://a.test|file:///m/cache/download,https://b.test|direct", []string{"GOPROXY=https://a.test,https://b.test|direct", "GOMODCACHE=/m"}},
		{"one proxy", "https://a.test|file:///p/pkg/mod/cache/download", []string{"GOPROXY=https://a.test", "GOPATH=/p:/q"}},
		{"no proxy", "file:///home/x/go/pkg/mod/cache/download", []string{"GOPROXY=off"}},
		{"a stored setting", "https://stored.test|file:///home/x/go/pkg/mod/cache/download", []string{"GOENV=" + stored}},
		{"the last of two variables", "https://b.test|file:///home/x/go/pkg/mod/cache/download", []string{"GOPROXY=https://a.test", "GOPROXY=https://b.test"}},
	} {
		t.Run("part11/network the downloaded modules come after the first proxy: "+c.row, func(t *testing.T) {
			if got := (environment{variables: append([]string{"XDG_CONFIG_HOME=" + home}, c.env...), home: "/home/x"}).goProxy(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
