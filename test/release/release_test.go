//go:build linux

// Package release_test builds releases with scripts/release, installs one with install.sh, and upgrades it to the next.
package release_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
)

const system = runtime.GOOS + "_" + runtime.GOARCH

// build builds a release into a new directory.
func build(t *testing.T, version, address string) string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command("../../scripts/release", version, dir)
	cmd.Env = append(os.Environ(), "LASH_RELEASES="+address, "SOURCE_DATE_EPOCH=1800000000")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// machine is a home directory in which a release is installed.
type machine struct {
	t    *testing.T
	home string
}

// run runs a shell command with the installed programs in PATH and returns all that it prints.
func (m machine) run(command string) string {
	m.t.Helper()
	cmd := exec.Command("sh", "-c", command)
	cmd.Dir = m.home
	cmd.Env = []string{"HOME=" + m.home, "LASHD_HOME=" + m.home + "/data", "PATH=" + m.home + "/.local/bin:" + os.Getenv("PATH")}
	out, err := cmd.CombinedOutput()
	if err != nil {
		out = fmt.Appendf(out, "%v\n", err)
	}
	return string(out)
}

// shows checks what a command prints.
func (m machine) shows(command string, want ...string) {
	m.t.Helper()
	out := m.run(command)
	for _, w := range want {
		if !strings.Contains(out, w) {
			m.t.Errorf("%s: %q, want %q", command, out, w)
		}
	}
}

func TestRelease(t *testing.T) {
	var newest atomic.Value // string: the directory of the newest release
	releases := http.NewServeMux()
	releases.HandleFunc("/latest/download/{file}", func(w http.ResponseWriter, r *http.Request) {
		http.ServeFile(w, r, filepath.Join(newest.Load().(string), r.PathValue("file")))
	})
	server := httptest.NewServer(releases)
	t.Cleanup(server.Close)
	first, next := build(t, "0.1.0", server.URL), build(t, "0.2.0", server.URL)
	for version, dir := range map[string]string{"v0.1.0": first, "v0.2.0": next} {
		releases.Handle("/download/"+version+"/", http.StripPrefix("/download/"+version, http.FileServer(http.Dir(dir))))
	}
	m := machine{t, t.TempDir()}
	t.Cleanup(func() { m.run(`lash stop`) })

	t.Run("issue/21-3 the same source makes the same archive", func(t *testing.T) {
		sums := func(dir string) string {
			text, err := os.ReadFile(filepath.Join(dir, "checksums.txt"))
			if err != nil {
				t.Error(err)
			}
			return string(text)
		}
		if a, b := sums(first), sums(build(t, "0.1.0", server.URL)); a != b || !strings.HasSuffix(a, "  lash_0.1.0_"+system+".tar.gz\n") {
			t.Errorf("%s, then %s", a, b)
		}
	})
	t.Run("issue/21-3 install.sh of a release installs it", func(t *testing.T) {
		newest.Store(first)
		m.shows("sh "+first+"/install.sh", "Installed lash and lashd 0.1.0 in "+m.home+"/.local/bin.\n")
		m.shows("lash --version; lashd --version", "lash 0.1.0\nlashd 0.1.0\n")
		m.shows("cat .local/share/man/man1/lash-run.1", ".TH LASH\\-RUN 1 2027-01-15 \"lash 0.1.0\"")
		m.shows("cat .local/share/bash-completion/completions/lash", "complete -F _lash lash")
		m.shows("ls .local/lib/lash/current/", "LICENSE\nLICENSES-OF-LIBRARIES\nbin\nshare\n")
	})
	t.Run("issue/21-3 lash upgrade switches both programs, and says what to do about a running daemon", func(t *testing.T) {
		newest.Store(next)
		m.run("lash session")
		m.shows("lash upgrade --check", "lash 0.1.0 is installed. The newest release is 0.2.0. To install it: lash upgrade\n")
		m.shows("lash --version", "lash 0.1.0\n")
		m.shows("lash upgrade", "Downloading "+server.URL+"/latest/download/lash_0.2.0_"+system+".tar.gz\n", "Installed lash and lashd 0.2.0 (before: 0.1.0).",
			"The daemon still runs lashd 0.1.0.", "To restart it: lash stop")
		m.shows("lash --version; lashd --version", "lash 0.2.0\nlashd 0.2.0\n")
		m.shows("lash upgrade", "lash 0.2.0 is installed. It is the newest release.\n")
	})
	t.Run("issue/21-3 after a restart the new daemon runs, also for a lash of the old version", func(t *testing.T) {
		m.shows("lash session", "the running lashd 0.1.0 is older than lash 0.2.0; to replace it, run: lash stop")
		m.run(`lash stop`)
		m.shows(".local/lib/lash/0.1.0-*/bin/lash session", "the running lashd 0.2.0 is newer than lash 0.1.0")
	})
	t.Run("issue/21-3 an older version is installed only if it is named", func(t *testing.T) {
		newest.Store(first)
		m.shows("lash upgrade", "lash 0.2.0 is installed. It is newer than the newest release, 0.1.0.\n")
		m.shows("lash upgrade --version 0.1.0 2>/dev/null; lash --version", "Installed lash and lashd 0.1.0 (before: 0.2.0)", "\nlash 0.1.0\n")
	})
	t.Run("issue/21-3 lash install is only a step of install.sh", func(t *testing.T) {
		m.shows("lash install --prefix "+m.home+"/.local", "lash install is a step of install.sh")
	})
}
