package shell_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/monitor"
	"lashd/engine/builtin/shell"
	"lashd/engine/provider/scripted"
	"lashd/rpc/protocol"
	"lashd/test/skip"
	"lashd/test/wait"
)

// hello starts a server that answers with a text, and returns its host with the port.
func hello(t *testing.T) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprintf(w, "hello %s\n", r.Host) }))
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

// hostRule returns a rule about a host.
func hostRule(action protocol.ApprovalMode, host string) protocol.ApprovalRule {
	return protocol.ApprovalRule{Host: host, Action: action}
}

func TestNetworkOfCommands(t *testing.T) {
	u := newUser(t)
	at := hello(t)
	get := "curl -sS -w '%{http_code} ' --max-time 10 http://" + at + "/"
	within := func(rules ...protocol.ApprovalRule) protocol.ApprovalConfig {
		return protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace, Rules: rules}
	}
	allow := hostRule(protocol.ApproveAllow, at)
	for _, c := range []struct {
		row    string
		args   map[string]any
		config protocol.ApprovalConfig
		want   string // beginning of the output; empty: the call is denied
	}{
		{"a host that a rule allows is reached without an argument", map[string]any{"command": get}, within(allow), "hello " + at + "\n200 \n[Exit code 0.]"},
		{"a host that a rule allows is reached with the argument", map[string]any{"command": get, "hosts": []string{at}}, within(allow), "hello " + at + "\n200 \n[Exit code 0.]"},
		{"in the mode readOnly, too", map[string]any{"command": get}, protocol.ApprovalConfig{Sandbox: protocol.SandboxReadOnly, Rules: []protocol.ApprovalRule{allow}}, "hello " + at + "\n200 \n[Exit code 0.]"},
		{"a host without a rule is asked about", map[string]any{"command": get, "hosts": []string{at}}, within(), ""},
		{"also if the mode allows all calls", map[string]any{"command": get, "hosts": []string{at}}, protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace, Mode: protocol.ApproveAllow}, ""},
		{"also in the mode readOnly", map[string]any{"command": get, "hosts": []string{at}}, protocol.ApprovalConfig{Sandbox: protocol.SandboxReadOnly}, ""},
		{"one host of two without a rule is asked about", map[string]any{"command": get, "hosts": []string{at, "example.com"}}, within(allow), ""},
		{"a rule that allows the command does not allow hosts", map[string]any{"command": get, "hosts": []string{at}}, within(protocol.ApprovalRule{Tool: "shell", Command: "curl", Action: protocol.ApproveAllow}), ""},
		{"a rule that asks is stricter", map[string]any{"command": get, "hosts": []string{at}}, within(allow, hostRule(protocol.ApproveAsk, "127.0.0.1")), ""},
		{"a rule that asks takes a host from those that are reached without an argument", map[string]any{"command": get}, within(allow, hostRule(protocol.ApproveAsk, "127.0.0.1")),
			"lashd: the sandbox refuses " + at + ": no rule allows it, and the call did not name it\n403 \n[Exit code 0.]\n[The sandbox refused " + at + ": no rule allows it, and the call did not name it.]\n" +
				`[If the task needs that, call again with "hosts": ["` + at + `"]; a person is asked unless rules allow these hosts.]`},
		{"a rule that denies is stricter", map[string]any{"command": get, "hosts": []string{at}}, within(allow, hostRule(protocol.ApproveDeny, "*")), ""},
		{"a refused host is named to the model, with all hosts that the next call needs", map[string]any{"command": "curl -sS http://example.com", "hosts": []string{at}}, within(allow),
			"lashd: the sandbox refuses example.com: no rule allows it, and the call did not name it\n[Exit code 0.]\n[The sandbox refused example.com: no rule allows it, and the call did not name it.]\n" +
				`[If the task needs that, call again with "hosts": ["` + at + `","example.com"]; a person is asked unless rules allow these hosts.]`},
		{"a host that a rule denies is named without advice", map[string]any{"command": "curl -sS http://a.example.com"}, within(hostRule(protocol.ApproveAllow, "*.example.com"), hostRule(protocol.ApproveDeny, "a.example.com")),
			"lashd: the sandbox refuses a.example.com: a rule denies it\n[Exit code 0.]\n[The sandbox refused a.example.com: a rule denies it.]\n"},
		{"a name that leads to this machine is refused", map[string]any{"command": "curl -sS http://localhost", "hosts": []string{"localhost"}}, within(hostRule(protocol.ApproveAllow, "localhost")),
			"lashd: the sandbox refuses localhost: its address "},
		{"without hosts there is no proxy and no DNS", map[string]any{"command": "curl -sS http://example.com; echo ${HTTPS_PROXY-none}"}, within(),
			"curl: (6) Could not resolve host: example.com\nnone\n[Exit code 0.]\n[The command ran in a sandbox (mode workspace): it has no DNS,"},
		{"own servers are reached without the proxy", map[string]any{"command": "python3 -m http.server 8000 --bind 127.0.0.1 >/dev/null 2>&1 & sleep 0.1; curl -sS --retry 40 --retry-delay 1 --retry-connrefused -o /dev/null -w '%{http_code} ' http://127.0.0.1:8000/file 2>/dev/null"}, within(hostRule(protocol.ApproveAllow, "example.com")), "200 \n[Exit code 0.]"},
		{"other ways to the network stay closed", map[string]any{"command": "python3 -c '" + otherWays(at) + "'"}, within(allow), "refused\nrefused\nrefused\n[Exit code 0.]"},
		{"hosts and outside exclude each other", map[string]any{"command": "true", "hosts": []string{at}, "outside": true}, within(protocol.ApprovalRule{Tool: "shell", Action: protocol.ApproveAllow}), "arguments of shell: outside and hosts exclude each other"},
		{"a wrong host is rejected without a question", map[string]any{"command": "true", "hosts": []string{"https://x.test/"}}, within(), `shell: host "https://x.test/": write the host without "https://"`},
		{"too many hosts are rejected without a question", map[string]any{"command": "true", "hosts": slices.Repeat([]string{"x.test"}, 33)}, within(), "shell: hosts has 33 entries; at most 32 are allowed"},
	} {
		t.Run("part11/network "+c.row, func(t *testing.T) {
			out := u.calls(t, "shell", c.args, c.config)
			if text := failureOr(out); denied(out) != (c.want == "") || !strings.HasPrefix(text, c.want) {
				t.Errorf("%+v\n%q\nwant %q", out.Failure, text, c.want)
			}
		})
	}
	t.Run("part11/network the value of the result has the refused hosts", func(t *testing.T) {
		out := u.calls(t, "shell", map[string]any{"command": "curl -sS http://example.com:8080"}, within(allow))
		var value struct{ RefusedHosts []protocol.RefusedHost }
		if err := json.Unmarshal(out.Value, &value); err != nil || len(value.RefusedHosts) != 1 || value.RefusedHosts[0].Host != "example.com:8080" {
			t.Errorf("%s, %v", out.Value, err)
		}
	})
}

// failureOr returns the message of a failed call, or its text.
func failureOr(out protocol.ToolOutput) string {
	if out.Failure != nil && out.Text == "" {
		return out.Failure.Message
	}
	return out.Text
}

// otherWays returns a Python program, without single quotes, that tries to reach a host by TCP, by UDP, and by a lookup of DNS.
func otherWays(at string) string {
	host, port, _ := net.SplitHostPort(at)
	return fmt.Sprintf(`
import socket
def attempt(f):
    try:
        f()
        print("reached")
    except OSError:
        print("refused")
attempt(lambda: socket.create_connection(("%s", %s), 2))
def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(1)
    s.sendto(b"x", ("1.1.1.1", 53))
attempt(udp)
attempt(lambda: socket.getaddrinfo("example.com", 80))
`, host, port)
}

func TestToolsByTheProxy(t *testing.T) {
	u := newUser(t)
	mux := http.NewServeMux()
	s := httptest.NewTLSServer(mux)
	defer s.Close()
	plain := httptest.NewServer(mux)
	defer plain.Close()
	serveGit(t, mux, filepath.Join(u.work, "repo"))
	servePackages(mux, plain.URL)
	for _, c := range []struct{ row, program, command, want string }{
		{"curl over HTTPS", "curl", "curl -sSk " + s.URL + "/text", "text\n"},
		{"git over HTTP", "git", "git clone -q " + plain.URL + "/repo /tmp/clone && cat /tmp/clone/a", "content\n"},
		{"git over HTTPS", "git", "git -c http.sslVerify=false clone -q " + s.URL + "/repo /tmp/clone2 && cat /tmp/clone2/a", "content\n"},
		{"npm", "npm", "cd /tmp && npm view --registry " + plain.URL + "/npm thing version", "1.2.3\n"},
		{"pip", "pip", "pip download -q --no-deps --no-binary :all: --index-url " + plain.URL + "/pip missing 2>&1 | grep -o 'No matching distribution found for missing' | head -1", "No matching distribution found for missing\n"},
		{"wget", "wget", "wget -q -O - " + plain.URL + "/text", "text\n"},
		{"python", "python3", "python3 -c 'import urllib.request as r; print(r.urlopen(\"" + plain.URL + "/text\").read().decode(), end=\"\")'", "text\n"},
	} {
		t.Run("part11/network "+c.row, func(t *testing.T) {
			_, err := exec.LookPath(c.program)
			skip.Unless(t, "PROGRAM", err == nil, fmt.Sprint(err))
			config := protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace, Rules: []protocol.ApprovalRule{
				hostRule(protocol.ApproveAllow, s.Listener.Addr().String()), hostRule(protocol.ApproveAllow, plain.Listener.Addr().String()),
			}}
			if out := u.calls(t, "shell", map[string]any{"command": c.command}, config); !strings.HasPrefix(out.Text, c.want) {
				t.Errorf("%+v\n%q\nwant %q", out.Failure, out.Text, c.want)
			}
		})
	}
}

// serveGit makes a repository with a file, and serves it below /repo.
func serveGit(t *testing.T, mux *http.ServeMux, dir string) {
	t.Helper()
	script := "git init -q . && echo content > a && git add a && git -c user.email=a@b -c user.name=n commit -qm one && git update-server-info"
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", "-c", script)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	mux.Handle("/repo/", http.StripPrefix("/repo/", http.FileServer(http.Dir(filepath.Join(dir, ".git")))))
}

// servePackages serves an npm package, an empty Python index, and a text.
func servePackages(mux *http.ServeMux, url string) {
	mux.HandleFunc("/npm/thing", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, `{"name":"thing","dist-tags":{"latest":"1.2.3"},"versions":{"1.2.3":{"name":"thing","version":"1.2.3","dist":{"tarball":"%s/npm/thing.tgz"}}}}`, url)
	})
	mux.HandleFunc("/pip/missing/", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html></html>") })
	mux.HandleFunc("/text", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "text\n") })
}

// daemonOf starts a daemon with a directory and a model that makes one call with arguments.
func (u user) daemonOf(t *testing.T, dir, name string, args map[string]any) *builtintest.Daemon {
	t.Helper()
	encoded, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return builtintest.Start(t, dir, 0, builtintest.Calling(scripted.Call{ID: "c1", Name: name, Args: encoded}), monitor.Factory{},
		shell.New(shell.Config{Environ: append(os.Environ(), "HOME="+u.home), Nonce: t.Name(), Sandbox: u.places}))
}

func TestNetworkInTheBackground(t *testing.T) {
	u := newUser(t)
	at := hello(t)
	config := &protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace, Rules: []protocol.ApprovalRule{hostRule(protocol.ApproveAllow, at)}}
	get := "curl -sS --max-time 20 http://" + at + "/; curl -sS --max-time 20 http://example.com/"
	refused := "lashd: the sandbox refuses example.com: no rule allows it, and the call did not name it\n"
	note := `[The sandbox refused example.com: no rule allows it, and the call did not name it.]` + "\n" +
		`[If the task needs that, call again with "hosts": ["` + at + `","example.com"]; a person is asked unless rules allow these hosts.]` + "\n"
	for name, args := range map[string]map[string]any{
		"start_command": {"command": get, "hosts": []string{at}},
		"start_monitor": {"id": "m", "command": get, "hosts": []string{at}, "notifyOnly": true},
	} {
		t.Run("part11/network "+name+" reaches its hosts, and its output names the refused ones", func(t *testing.T) {
			d := u.daemonOf(t, t.TempDir(), name, args)
			id := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: u.work, Approval: config}))(t).SessionID
			d.Turn(t, id, "go")
			wait.Until(t, "the command has ended", func() bool { return taskOf(t, d, id).State.Final() })
			out := outputOf(t, d, id)
			if want := "hello " + at + "\n" + refused + note; out != want {
				t.Errorf("%q\nwant %q", out, want)
			}
		})
		t.Run("part11/network "+name+" asks about hosts without a rule", func(t *testing.T) {
			if out := u.calls(t, name, args, protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace}); !denied(out) {
				t.Errorf("%+v", out)
			}
		})
	}
	t.Run("part11/network arguments of start_command and start_monitor are checked", func(t *testing.T) {
		lax := protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace, Rules: []protocol.ApprovalRule{{Tool: "*", Action: protocol.ApproveAllow}}}
		for name, args := range map[string]map[string]any{
			"start_command": {"command": "true", "hosts": []string{"x"}, "detach": true},
			"start_monitor": {"id": "m", "command": "true", "hosts": []string{"x"}, "outside": true},
		} {
			if out := u.calls(t, name, args, lax); out.Failure == nil || !strings.Contains(out.Failure.Message, "and hosts exclude each other") {
				t.Errorf("%s: %+v", name, out)
			}
			delete(args, "detach")
			delete(args, "outside")
			args["hosts"] = []string{"https://x"}
			if out := u.calls(t, name, args, lax); out.Failure == nil || !strings.HasSuffix(out.Failure.Message, `host "https://x": write the host without "https://"`) {
				t.Errorf("%s: %+v", name, out.Failure)
			}
		}
	})
}

// outputOf returns the output of the session's only task.
func outputOf(t *testing.T, d *builtintest.Daemon, id protocol.SessionID) string {
	t.Helper()
	at := protocol.TaskParams{SessionID: id, TaskID: taskOf(t, d, id).ID}
	return builtintest.Must(d.Tasks.Output(t.Context(), &protocol.TaskOutputParams{TaskParams: at, Limit: 1 << 16}))(t).Text
}

// taskOf returns the session's only task.
func taskOf(t *testing.T, d *builtintest.Daemon, id protocol.SessionID) protocol.Task {
	t.Helper()
	all := builtintest.Must(d.Tasks.List(t.Context(), &protocol.TaskListParams{SessionID: id}))(t).Data
	if len(all) != 1 {
		t.Fatalf("the session has %d tasks", len(all))
	}
	return all[0]
}
