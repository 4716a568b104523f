//go:build unix

package upgrade

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"lashd/cmd/internal/installation"
)

// thisSystem is the system for which install.sh downloads an archive here.
const thisSystem = runtime.GOOS + "_" + runtime.GOARCH

// installer returns a command that runs install.sh. Programs in before come first in its PATH.
func installer(t *testing.T, base, prefix, before string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sh", "../../../scripts/install.sh")
	cmd.Env = []string{"HOME=" + t.TempDir(), "PREFIX=" + prefix, "LASH_BASE_URL=" + base, "PATH=" + before + ":" + os.Getenv("PATH")}
	return cmd
}

func TestInstall(t *testing.T) {
	content := release(t, thisSystem)
	base := published(t, thisSystem, content, serving(content))
	t.Run("issue/21-3 install.sh installs both programs and says what to do about PATH", func(t *testing.T) {
		to := installation.Installation{Prefix: filepath.Join(t.TempDir(), "a directory")}
		out, err := installer(t, base, to.Prefix, "/none").Output()
		bin := filepath.Join(to.Prefix, "bin")
		want := "Installed lash and lashd 0.2.0 in " + bin + ".\n" + bin + " is not in your PATH. Add this line to the configuration of your shell, such as ~/.profile:\n  export PATH=\"" + bin + ":$PATH\"\n"
		if err != nil || string(out) != want {
			t.Errorf("%v, %q, want %q", err, out, want)
		}
		if got, files := versions(t, to), left(t, to); got != new || files != "0.2.0 current" {
			t.Errorf("%s, %q", got, files)
		}
		if text, err := os.ReadFile(filepath.Join(to.Prefix, "share/bash-completion/completions/lash")); err != nil || string(text) != "complete" {
			t.Errorf("completions %q, %v", text, err)
		}
	})
	t.Run("issue/21-3 install.sh replaces an older version, and finds it in PATH", func(t *testing.T) {
		to := installed(t)
		bin := filepath.Join(to.Prefix, "bin")
		cmd := installer(t, base+"/", to.Prefix, bin)
		cmd.Env = append(cmd.Env, "LASH_VERSION=0.2.0")
		out, err := cmd.Output()
		if want := "Installed lash and lashd 0.2.0 in " + bin + ".\nTo start: lash login, then lash chat.\n"; err != nil || string(out) != want {
			t.Errorf("%v, %q, want %q", err, out, want)
		}
		if got, files := versions(t, to), left(t, to); got != new || files != "0.1.0 0.2.0 current" {
			t.Errorf("%s, %q", got, files)
		}
	})
	t.Run("issue/21-3 install.sh says if another lash comes first in PATH", func(t *testing.T) {
		to, other := installed(t), installed(t)
		out, err := installer(t, base, to.Prefix, other.Prefix+"/bin:"+to.Prefix+"/bin").Output()
		if want := "Note: the command lash runs " + other.Prefix + "/bin/lash, which comes first in your PATH.\n"; err != nil || !strings.HasSuffix(string(out), want) {
			t.Errorf("%v, %q, want %q", err, out, want)
		}
	})
	t.Run("issue/21-3 install.sh reads itself before it runs: a script that is cut does nothing", func(t *testing.T) {
		text, err := os.ReadFile("../../../scripts/install.sh")
		if err != nil {
			t.Fatal(err)
		}
		to := installed(t)
		for _, size := range []int{len(text) / 3, len(text) / 2, len(text) * 4 / 5} {
			cmd := installer(t, base, to.Prefix, "/none")
			cmd.Args, cmd.Stdin = []string{"sh"}, strings.NewReader(string(text[:size]))
			cmd.Run() // it may fail or succeed
			if got := versions(t, to); got != old {
				t.Errorf("%d bytes: %s", size, got)
			}
		}
	})
}

func TestFailedInstall(t *testing.T) {
	good := release(t, thisSystem)
	for name, x := range map[string]struct {
		content []byte
		answer  http.HandlerFunc
		want    string
	}{
		"the checksum is wrong": {good, serving(good[1:]), "the checksum of lash_0.2.0_" + thisSystem + ".tar.gz is wrong: it is "},
		"the download is cut": {good, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", fmt.Sprint(len(good)))
			w.Write(good[:len(good)/2])
		}, "cannot download "},
		"the archive is not found":        {good, http.NotFound, "cannot download "},
		"a program is missing":            {without(t, thisSystem, "lashd", ""), nil, "the archive has no program lashd"},
		"a program does not run here":     {without(t, thisSystem, "lash", "#!/none"), nil, "the new lash does not run on this machine"},
		"a program is of another version": {without(t, thisSystem, "lashd", program("lashd", "0.1.0")), nil, "the new lashd says that it is 'lashd 0.1.0', not 0.2.0"},
	} {
		t.Run("issue/21-3 install.sh leaves the old programs if "+name, func(t *testing.T) {
			if x.answer == nil {
				x.answer = serving(x.content)
			}
			to := installed(t)
			out, err := installer(t, published(t, thisSystem, x.content, x.answer), to.Prefix, to.Prefix+"/bin").CombinedOutput()
			if err == nil || !strings.Contains(string(out), "install.sh: "+x.want) || !strings.HasSuffix(string(out), "; nothing was changed\n") {
				t.Errorf("%v, %q, want %q", err, out, x.want)
			}
			if got, files := versions(t, to), left(t, to); got != old || files != "0.1.0 current" {
				t.Errorf("%s, %q", got, files)
			}
		})
	}
	t.Run("issue/21-3 install.sh refuses what it cannot do", func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		other := published(t, "plan9_mips", good, nil)
		for _, x := range []struct{ base, prefix, want string }{
			{"", t.TempDir(), "install.sh: this copy of install.sh has no address; set LASH_BASE_URL to that of the releases\n"},
			{other, "here", "install.sh: PREFIX is here, but must be an absolute path\n"},
			{"http://192.0.2.1", t.TempDir(), "install.sh: http://192.0.2.1 is not an https URL; releases are downloaded over https only\n"},
			{other, file, "install.sh: cannot write to " + file + "/lib/lash; set PREFIX to a directory of yours\n"},
			{other, t.TempDir(), "install.sh: checksums.txt at " + other + "/latest/download has no archive for " + thisSystem + "; build lash from source\n"},
		} {
			out, err := installer(t, x.base, x.prefix, "/none").CombinedOutput()
			if err == nil || string(out) != x.want {
				t.Errorf("%v, %q, want %q", err, out, x.want)
			}
		}
	})
}

func TestUnreachableServer(t *testing.T) {
	t.Run("issue/21-3 install.sh without network leaves the old programs", func(t *testing.T) {
		to := installed(t)
		out, err := installer(t, "http://127.0.0.1:1", to.Prefix, "/none").CombinedOutput()
		if want := "install.sh: cannot download http://127.0.0.1:1/latest/download/checksums.txt; nothing was changed\n"; err == nil || !strings.HasSuffix(string(out), want) {
			t.Errorf("%v, %q, want %q", err, out, want)
		}
		if got, files := versions(t, to), left(t, to); got != old || files != "0.1.0 current" {
			t.Errorf("%s, %q", got, files)
		}
	})
}

func TestKilledInstall(t *testing.T) {
	t.Run("issue/21-3 after a kill of install.sh the old programs work, and the next run completes", func(t *testing.T) {
		content := release(t, thisSystem)
		reached, hang := make(chan struct{}), make(chan struct{})
		slow := published(t, thisSystem, content, func(w http.ResponseWriter, _ *http.Request) {
			close(reached)
			<-hang
		})
		defer close(hang)
		to := installed(t)
		cmd := installer(t, slow, to.Prefix, "/none")
		ownGroup(cmd)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-reached
		killGroup(cmd)
		if got := versions(t, to); got != old {
			t.Error(got)
		}
		if out, err := installer(t, published(t, thisSystem, content, serving(content)), to.Prefix, "/none").CombinedOutput(); err != nil || versions(t, to) != new {
			t.Errorf("%v, %q", err, out)
		}
	})
}

// ownGroup makes cmd the leader of a process group, so that killGroup reaches what it runs.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

func killGroup(cmd *exec.Cmd) {
	syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	cmd.Wait()
}
