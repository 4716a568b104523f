package proc

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSandboxKeepsAttributesOfFiles(t *testing.T) {
	eachSystem(t, testSandboxKeepsAttributesOfFiles)
}

func testSandboxKeepsAttributesOfFiles(t *testing.T) {
	outside, inside := t.TempDir(), t.TempDir()
	secret, own := filepath.Join(outside, "secret"), filepath.Join(inside, "own")
	for _, file := range []string{secret, own} {
		if err := os.WriteFile(file, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	state := func() string {
		info, err := os.Stat(secret)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode().String() + info.ModTime().String()
	}
	before := state()
	within := Confinement{Sandbox: &Sandbox{Write: []string{inside}}}
	for _, command := range []string{"chmod 777 " + secret, "chmod 777 " + outside, "touch -d 2001-01-01 " + secret, "chown 65534 " + secret} {
		out, exit := says(t, confinedShell(command, within))
		if exit.Code == 0 || !strings.Contains(out, "Read-only file system") || state() != before {
			t.Errorf("outside/10 a sandboxed %s: %+v %q, the file is %s, was %s", command, exit, out, state(), before)
		}
	}
	out, exit := says(t, confinedShell("cd "+inside+" && chmod 640 own && echo more >> own && mkdir sub && echo x > sub/y && mv sub other && cat other/y && echo > /dev/null", within))
	if out != "x\n" || exit.Code != 0 {
		t.Errorf("outside/10 a sandboxed program in the directory that it may write: %+v %q", exit, out)
	}
	if info, err := os.Stat(own); err != nil || info.Mode() != 0o640 {
		t.Errorf("outside/10 the mode in the directory that it may write is %v, %v", info.Mode(), err)
	}
	c := confinedShell("echo here > made", within)
	c.Dir = inside
	if out, exit := says(t, c); exit.Code != 0 {
		t.Errorf("outside/10 a sandboxed program that works in the directory that it may write: %+v %q", exit, out)
	}
}
