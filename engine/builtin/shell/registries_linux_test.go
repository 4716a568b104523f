package shell_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"lashd/rpc/protocol"
	"lashd/test/skip"
)

// registry is a server for packages of Go, npm, cargo and Python. Commands reach it by the name registry.test, because Go uses no proxy for a
// local address.
type registry struct {
	mux  *http.ServeMux
	url  string
	own  string   // the address by which this process reaches it
	open []string // hosts to allow: the name, and the address to which it leads
}

// newRegistry starts a registry.
func newRegistry(t *testing.T) *registry {
	t.Helper()
	mux := http.NewServeMux()
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	at := s.Listener.Addr().(*net.TCPAddr)
	name := fmt.Sprintf("registry.test:%d", at.Port)
	return &registry{mux, "http://" + name, s.URL, []string{name, at.String()}}
}

// toThisMachine returns a resolver for which each name leads to 127.0.0.1.
func toThisMachine(t *testing.T) *net.Resolver {
	t.Helper()
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	t.Cleanup(func() {
		conn.Close()
		serving.Wait()
	})
	serving.Go(func() {
		query := make([]byte, 1500)
		for {
			n, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(localAnswer(query[:n]), from)
		}
	})
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "udp", conn.LocalAddr().String())
	}}
}

// localAnswer answers a DNS query with one question: 127.0.0.1 if it asks for an address of IPv4, else nothing.
func localAnswer(query []byte) []byte {
	end := 12 + bytes.IndexByte(query[12:], 0) + 5
	answers := byte(0)
	if binary.BigEndian.Uint16(query[end-4:]) == 1 {
		answers = 1
	}
	out := append(slices.Clone(query[:2]), 0x81, 0x80, 0, 1, 0, answers, 0, 0, 0, 0)
	out = append(out, query[12:end]...)
	if answers == 1 {
		out = append(out, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 127, 0, 0, 1)
	}
	return out
}

// file serves one file.
func (r *registry) file(path string, data []byte) {
	r.mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
}

// files are the files of an archive, by their paths.
type files map[string]string

// zipped returns an archive as Go modules have it.
func zipped(t *testing.T, all files) []byte {
	t.Helper()
	var out bytes.Buffer
	z := zip.NewWriter(&out)
	for name, text := range all {
		f, err := z.Create(name)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(f, text)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// tarred returns an archive as npm, cargo and Python have it.
func tarred(t *testing.T, all files) []byte {
	t.Helper()
	var out bytes.Buffer
	g := gzip.NewWriter(&out)
	a := tar.NewWriter(g)
	for name, text := range all {
		if err := a.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(a, text)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// goModule serves a version of a module.
func (r *registry) goModule(t *testing.T, module, version string) {
	at := "/go/" + module + "/@v/" + version
	mod := "module " + module + "\n\ngo 1.21\n"
	r.file(at+".info", fmt.Appendf(nil, `{"Version":%q}`, version))
	r.file(at+".mod", []byte(mod))
	prefix := module + "@" + version + "/"
	r.file(at+".zip", zipped(t, files{prefix + "go.mod": mod, prefix + "x.go": "package x\n\nconst Version = \"" + module + " " + version + "\"\n"}))
}

// npmPackage serves a version of a package.
func (r *registry) npmPackage(t *testing.T, name string) {
	data := tarred(t, files{"package/package.json": `{"name":"` + name + `","version":"1.2.3"}`, "package/index.js": `module.exports = "npm made it"`})
	sum := sha512.Sum512(data)
	r.file("/npm/"+name, fmt.Appendf(nil, `{"name":%q,"dist-tags":{"latest":"1.2.3"},"versions":{"1.2.3":{"name":%q,"version":"1.2.3","dist":{"tarball":"%s/npm/%s.tgz","integrity":"sha512-%s"}}}}`,
		name, name, r.url, name, base64.StdEncoding.EncodeToString(sum[:])))
	r.file("/npm/"+name+".tgz", data)
}

// crate serves a version of a crate by the sparse protocol.
func (r *registry) crate(t *testing.T, name string) {
	data := tarred(t, files{name + "-1.2.3/Cargo.toml": "[package]\nname = \"" + name + "\"\nversion = \"1.2.3\"\n", name + "-1.2.3/src/lib.rs": "pub fn it() -> &'static str { \"cargo made it\" }\n"})
	sum := sha256.Sum256(data)
	r.file("/crates/config.json", fmt.Appendf(nil, `{"dl":"%s/dl/{crate}.crate"}`, r.url))
	r.file("/crates/"+name[:2]+"/"+name[2:4]+"/"+name, fmt.Appendf(nil, `{"name":%q,"vers":"1.2.3","deps":[],"cksum":%q,"features":{},"yanked":false}`+"\n", name, hex.EncodeToString(sum[:])))
	r.file("/dl/"+name+".crate", data)
}

// wheel serves a version of a Python package.
func (r *registry) wheel(t *testing.T, name string) {
	info := name + "-1.2.3.dist-info/"
	all := files{name + ".py": "it = 'pip made it'\n", info + "METADATA": "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.2.3\n", info + "WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
	var record strings.Builder
	record.WriteString(info + "RECORD,,\n")
	for path := range all {
		record.WriteString(path + ",,\n")
	}
	all[info+"RECORD"] = record.String()
	wheel := name + "-1.2.3-py3-none-any.whl"
	r.file("/pip/"+name+"/", fmt.Appendf(nil, `<html><a href="%s/wheels/%s">%s</a></html>`, r.url, wheel, wheel))
	r.file("/wheels/"+wheel, zipped(t, all))
}

// write writes files into the workspace.
func (u user) write(t *testing.T, all files) {
	t.Helper()
	for name, text := range all {
		path := filepath.Join(u.work, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// needs skips a test without a program.
func needs(t *testing.T, program string) {
	t.Helper()
	_, err := exec.LookPath(program)
	skip.Unless(t, "PROGRAM", err == nil, fmt.Sprint(err))
}

// installing runs a command in the default mode with a rule that allows the registry, and returns the output without the exit code 0.
func (u user) installing(t *testing.T, r *registry, command string) string {
	t.Helper()
	config := protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace}
	if r != nil {
		u.places.Resolver = toThisMachine(t)
		for _, host := range r.open {
			config.Rules = append(config.Rules, hostRule(protocol.ApproveAllow, host))
		}
	}
	out := u.calls(t, "shell", map[string]any{"command": command}, config)
	text, ok := strings.CutSuffix(failureOr(out), "[Exit code 0.]\n")
	if !ok {
		t.Errorf("%s\nfailed: %q", command, failureOr(out))
	}
	return text
}

func TestInstallingWithHosts(t *testing.T) {
	t.Run("part11/network go get downloads to a private cache, also the newest version, and later builds need no network", func(t *testing.T) {
		needs(t, "go")
		u, r := newUser(t), newRegistry(t)
		r.goModule(t, "a.test/new", "v1.1.0")
		r.file("/go/a.test/new/@v/list", []byte("v1.0.0\nv1.1.0\n"))
		host := newRegistry(t)
		host.goModule(t, "a.test/had", "v1.0.0")
		host.goModule(t, "a.test/new", "v1.0.0")
		env := "export GOFLAGS=-mod=mod GOSUMDB=off GOTOOLCHAIN=local GOPROXY="
		fill := exec.Command("sh", "-c", env+host.own+"/go && go mod download a.test/had@v1.0.0 a.test/new@v1.0.0")
		fill.Env, fill.Dir = append(os.Environ(), "HOME="+u.home, "GOMODCACHE="+u.home+"/go/pkg/mod"), u.work
		if out, err := fill.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		t.Cleanup(func() { _ = exec.Command("chmod", "-R", "u+w", u.home).Run() })
		u.write(t, files{"go.mod": "module m.test\n\ngo 1.21\n", "main.go": "package main\n\nimport (\n\thad \"a.test/had\"\n\tx \"a.test/new\"\n)\n\nfunc main() { println(had.Version, x.Version) }\n"})
		u.environ = []string{"GOPROXY=" + r.url + "/go", "GOSUMDB=off", "GOTOOLCHAIN=local", "GOFLAGS=", "GOMODCACHE=" + u.home + "/go/pkg/mod"}
		if out := u.installing(t, r, "go get a.test/new@latest a.test/had@v1.0.0 2>&1 && go run . 2>&1"); !strings.HasSuffix(out, "a.test/had v1.0.0 a.test/new v1.1.0\n") {
			t.Errorf("it says %q", out)
		}
		if out := u.installing(t, nil, "echo '// changed' >> main.go && go run . 2>&1"); out != "a.test/had v1.0.0 a.test/new v1.1.0\n" {
			t.Errorf("without a network it says %q", out)
		}
	})
	t.Run("part11/network npm install", func(t *testing.T) {
		needs(t, "npm")
		u, r := newUser(t), newRegistry(t)
		r.npmPackage(t, "thing")
		u.write(t, files{"package.json": `{"name":"m","version":"1.0.0"}`})
		install := "npm install --no-audit --no-fund --registry " + r.url + "/npm thing >/dev/null && node -p 'require(\"thing\")'"
		if out := u.installing(t, r, install); out != "npm made it\n" {
			t.Errorf("it says %q", out)
		}
		if out := u.installing(t, nil, "rm -rf node_modules && npm ci --offline --no-audit --no-fund >/dev/null && node -p 'require(\"thing\")'"); out != "npm made it\n" {
			t.Errorf("without a network it says %q", out)
		}
	})
	t.Run("part11/network cargo fetch from a sparse registry", func(t *testing.T) {
		needs(t, "cargo")
		u, r := newUser(t), newRegistry(t)
		r.crate(t, "thing")
		u.environ = append(rustup(), "CARGO_HOME="+u.home+"/.cargo")
		u.write(t, files{
			"Cargo.toml": "[package]\nname = \"m\"\nversion = \"1.0.0\"\nedition = \"2021\"\n\n[dependencies]\nthing = \"1\"\n", "src/main.rs": "fn main() { println!(\"{}\", thing::it()) }\n",
			"../.cargo/config.toml": "[source.crates-io]\nreplace-with = \"local\"\n\n[source.local]\nregistry = \"sparse+" + r.url + "/crates/\"\n",
		})
		if out := u.installing(t, r, "cargo fetch -q 2>&1 && cargo run -q --offline 2>&1"); out != "cargo made it\n" {
			t.Errorf("it says %q", out)
		}
		if out := u.installing(t, nil, "rm -r target && cargo run -q --offline 2>&1"); out != "cargo made it\n" {
			t.Errorf("without a network it says %q", out)
		}
	})
	t.Run("part11/network pip install into an environment of the workspace", func(t *testing.T) {
		needs(t, "python3")
		err := exec.Command("python3", "-c", "import ensurepip").Run()
		skip.Unless(t, "PROGRAM", err == nil, "python3 has no ensurepip, which venv needs")
		u, r := newUser(t), newRegistry(t)
		r.wheel(t, "thing")
		u.environ = []string{"PIP_FIND_LINKS=", "PIP_DISABLE_PIP_VERSION_CHECK=1"}
		if out := u.installing(t, r, "python3 -m venv .venv && .venv/bin/pip install -q --trusted-host registry.test --index-url "+r.url+"/pip thing 2>&1 && .venv/bin/python -c 'import thing; print(thing.it)'"); out != "pip made it\n" {
			t.Errorf("it says %q", out)
		}
	})
	t.Run("part11/network Maven makes its cache without one of the user", func(t *testing.T) {
		needs(t, "mvn")
		u := newUser(t)
		u.write(t, files{"pom.xml": "<project><modelVersion>4.0.0</modelVersion><groupId>g</groupId><artifactId>a</artifactId><version>1</version><packaging>pom</packaging></project>"})
		if out := u.installing(t, nil, "mvn -B -q -o validate 2>&1 && ls -d /tmp/cache/m2"); !strings.HasSuffix(out, "/tmp/cache/m2\n") {
			t.Errorf("it says %q", out)
		}
	})
}

// rustup returns the variables by which cargo finds its tools if the home directory is another one.
func rustup() []string {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil
	}
	return []string{"RUSTUP_HOME=" + filepath.Join(home, ".rustup"), "RUSTUP_TOOLCHAIN="}
}

func TestNewCachesBeginWithThoseOfTheUser(t *testing.T) {
	t.Run("part11/network a new cache has the files of the user's cache, and a command changes only its own", func(t *testing.T) {
		u, r := newUser(t), newRegistry(t)
		large := strings.Repeat("x", 5000)
		u.write(t, files{
			"../.cargo/registry/cache/i/thing.crate": large, "../.cargo/registry/index/i/config.json": "{}", "../.cargo/credentials.toml": "canary", "../.cargo/config.toml": "a = 1\n",
			"../.npm/_cacache/index-v5/a": large, "../.npm/_logs/log": "log", "../.m2/repository/g/a.jar": large, "../.m2/settings.xml": "canary", "../.cache/pip/http-v2/a": large,
		})
		script := "cd /tmp/cache && find cargo npm pip m2 -type f -o -type l | sort && head -c 3 cargo/registry/cache/i/thing.crate && echo && echo more >> npm/_cacache/index-v5/a && rm m2/g/a.jar && echo $CARGO_HOME && " +
			"(echo bad >> cargo/registry/cache/i/thing.crate) 2>/dev/null || echo refused"
		want := "cargo/config.toml\ncargo/registry/cache/i/thing.crate\ncargo/registry/index/i/config.json\nm2/g/a.jar\nnpm/_cacache/index-v5/a\npip/http-v2/a\nxxx\n/tmp/cache/cargo\nrefused\n"
		if out := u.installing(t, r, script); out != want {
			t.Errorf("it says\n%s\nwant\n%s", out, want)
		}
		for _, name := range []string{".cargo/registry/cache/i/thing.crate", ".npm/_cacache/index-v5/a", ".m2/repository/g/a.jar"} {
			if data, err := os.ReadFile(filepath.Join(u.home, name)); err != nil || string(data) != large {
				t.Errorf("%s has changed: %d bytes, %v", name, len(data), err)
			}
		}
	})
	t.Run("part11/network commands without hosts use the caches of the user until the workspace has private ones", func(t *testing.T) {
		u := newUser(t)
		u.environ = []string{"GOPROXY=off", "CARGO_HOME=/x", "GOMODCACHE=/y"}
		u.write(t, files{"../.m2/repository/a": "a"})
		if out := u.installing(t, nil, "echo $GOPROXY $CARGO_HOME $GOMODCACHE $MAVEN_OPTS"); out != "off /x /y\n" {
			t.Errorf("it says %q", out)
		}
		if out := u.installing(t, newRegistry(t), "echo $GOPROXY $CARGO_HOME $GOMODCACHE"); out != "file:///y/cache/download /tmp/cache/cargo /tmp/cache/go-mod\n" {
			t.Errorf("with hosts it says %q", out)
		}
	})
}
