package shell_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"lashd/engine/builtin/builtintest"
	"lashd/engine/builtin/monitor"
	"lashd/engine/builtin/shell"
	"lashd/engine/builtin/workspace"
	"lashd/engine/provider/scripted"
	"lashd/engine/sandbox"
	"lashd/rpc/protocol"
	"lashd/test/skip"
)

// user is a home directory with a workspace and a secret, and the sandboxes for it.
type user struct {
	home, work string
	places     sandbox.Places
	environ    []string // more variables of the daemon
}

// newUser makes a user, or skips the test where there are no sandboxes.
func newUser(t *testing.T) user {
	t.Helper()
	err := sandbox.Available()
	skip.Unless(t, "NAMESPACES", err == nil, fmt.Sprint(err))
	base, err := os.MkdirTemp("/var/tmp", "lashd-confined-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	u := user{home: filepath.Join(base, "home"), work: filepath.Join(base, "home", "work")}
	u.places = sandbox.Places{Home: u.home, State: filepath.Join(u.home, "state"), Scratch: filepath.Join(u.home, "state", "sandbox")}
	for name, text := range map[string]string{"work/file": "work\n", ".ssh/id": "canary\n", "state/keys.json": "canary\n", "plain": "plain\n"} {
		path := filepath.Join(u.home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return u
}

// calls runs one tool call in a turn of a session with the approval settings. Questions are denied after a millisecond.
func (u user) calls(t *testing.T, name string, args map[string]any, a protocol.ApprovalConfig) protocol.ToolOutput {
	t.Helper()
	encoded, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	model := scripted.New(&scripted.Script{Turns: []scripted.Turn{{Replies: []scripted.Reply{
		{ToolCalls: []scripted.Call{{ID: "c1", Name: name, Args: encoded}}}, {Text: "done"},
	}}}})
	d := builtintest.Start(t, t.TempDir(), 0, model, monitor.Factory{}, &workspace.Factory{}, shell.New(shell.Config{
		Environ: slices.Concat(os.Environ(), []string{"HOME=" + u.home, "SSH_AUTH_SOCK=/run/agent"}, u.environ), Nonce: t.Name(), Sandbox: u.places,
	}))
	a.DeadlineMs = 1
	id := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: u.work, Approval: &a}))(t).SessionID
	return d.Turn(t, id, "go").ToolCalls[0].Output
}

// denied reports whether lashd asked about a call, and so denied it.
func denied(out protocol.ToolOutput) bool { return out.Failure != nil && out.Failure.Code == "denied" }

func TestCommandsInASandbox(t *testing.T) {
	u := newUser(t)
	within := protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace}
	reading := protocol.ApprovalConfig{Sandbox: protocol.SandboxReadOnly}
	command := func(text string) map[string]any { return map[string]any{"command": text} }
	for _, c := range []struct {
		row    string
		args   map[string]any
		config protocol.ApprovalConfig
		want   string // beginning of the output
	}{
		{"in the mode workspace, a command runs unasked and writes to the workspace", command("echo new > made && cat file made"), within, "work\nnew\n[Exit code 0.]"},
		{"secrets are closed", command("cat ~/.ssh/id ../state/keys.json 2>/dev/null; cat ../plain"), within, "plain\n[Exit code 0.]"},
		{"a refusal is explained to the model", command("echo x > ../plain"), within, "sh: 1: cannot create ../plain: Read-only file system\n[Exit code 2.]\n[The command ran in a sandbox (mode workspace): it cannot change ../plain, because it writes only to the workspace and to /tmp."},
		{"agents for keys are not named", command("echo ${SSH_AUTH_SOCK-none} $LASHD_SANDBOX"), within, "none workspace\n"},
		{"in the mode readOnly, the workspace is read", command("cat file; echo x 2>/dev/null > file || echo refused; echo y > /tmp/y && cat /tmp/y"), reading, "work\nrefused\ny\n[Exit code 0.]"},
	} {
		t.Run("part11/1 "+c.row, func(t *testing.T) {
			if out := u.calls(t, "shell", c.args, c.config); !strings.HasPrefix(out.Text, c.want) {
				t.Errorf("%+v\n%q\nwant %q", out.Failure, out.Text, c.want)
			}
		})
	}
}

func TestQuestionsWithASandbox(t *testing.T) {
	u := newUser(t)
	outside := map[string]any{"command": "echo ran > outside", "outside": true}
	inside := map[string]any{"command": "true"}
	write := func(path string) map[string]any { return map[string]any{"path": path, "content": "x"} }
	within, reading := protocol.SandboxWorkspace, protocol.SandboxReadOnly
	rule := func(action protocol.ApprovalMode) []protocol.ApprovalRule {
		return []protocol.ApprovalRule{{Tool: "shell", Action: action}}
	}
	for _, c := range []struct {
		row, tool string
		args      map[string]any
		config    protocol.ApprovalConfig
		asks      bool
	}{
		{"with full access, commands are asked about", "shell", inside, protocol.ApprovalConfig{Sandbox: protocol.SandboxFullAccess}, true},
		{"to leave the sandbox is asked about", "shell", outside, protocol.ApprovalConfig{Sandbox: within}, true},
		{"to leave the sandbox is asked about, even if the mode allows all calls", "shell", outside, protocol.ApprovalConfig{Sandbox: within, Mode: protocol.ApproveAllow}, true},
		{"a rule can allow to leave the sandbox", "shell", outside, protocol.ApprovalConfig{Sandbox: within, Rules: rule(protocol.ApproveAllow)}, false},
		{"a rule that asks counts in a sandbox, too", "shell", inside, protocol.ApprovalConfig{Sandbox: within, Rules: rule(protocol.ApproveAsk)}, true},
		{"a mode that asks counts in a sandbox, too", "shell", inside, protocol.ApprovalConfig{Sandbox: within, Mode: protocol.ApproveAsk}, true},
		{"a file of the workspace is written unasked", "write", write("new"), protocol.ApprovalConfig{Sandbox: within}, false},
		{"a protected file is asked about", "write", write(".vscode/tasks.json"), protocol.ApprovalConfig{Sandbox: within}, true},
		{"in the mode readOnly, the file tools ask", "write", write("other"), protocol.ApprovalConfig{Sandbox: reading}, true},
		{"in the mode readOnly, the file tools ask even if the mode allows all calls", "write", write("other"), protocol.ApprovalConfig{Sandbox: reading, Mode: protocol.ApproveAllow}, true},
		{"a command in the background runs unasked", "start_command", inside, protocol.ApprovalConfig{Sandbox: within}, false},
		{"a monitor runs unasked", "start_monitor", map[string]any{"id": "m", "command": "true"}, protocol.ApprovalConfig{Sandbox: within}, false},
		{"a monitor outside of the sandbox is asked about", "start_monitor", map[string]any{"id": "m", "command": "true", "outside": true}, protocol.ApprovalConfig{Sandbox: within}, true},
		{"a detached command is asked about, because it is in no sandbox", "start_command", map[string]any{"command": "true", "detach": true}, protocol.ApprovalConfig{Sandbox: within}, true},
	} {
		t.Run("part11/1 "+c.row, func(t *testing.T) {
			if out := u.calls(t, c.tool, c.args, c.config); denied(out) != c.asks {
				t.Errorf("lashd asks: %v, want %v: %+v", denied(out), c.asks, out)
			}
		})
	}
}

func TestSandboxInThePrompt(t *testing.T) {
	u := newUser(t)
	for mode, want := range map[protocol.SandboxMode]string{
		protocol.SandboxFullAccess: "", protocol.SandboxReadOnly: "They can write only to /tmp.", protocol.SandboxWorkspace: "They can write only to the workspace and to /tmp.",
	} {
		t.Run("part11/2 the model reads what the sandbox allows: "+string(mode), func(t *testing.T) {
			model := &builtintest.Recorder{Provider: scripted.New(&scripted.Script{Otherwise: &scripted.Turn{Replies: []scripted.Reply{{Text: "done"}}}})}
			d := builtintest.Start(t, t.TempDir(), 0, model, shell.New(shell.Config{Environ: os.Environ(), Nonce: t.Name(), Sandbox: u.places}))
			id := builtintest.Must(d.Sessions.New(t.Context(), &protocol.SessionNewParams{Cwd: u.work, Approval: &protocol.ApprovalConfig{Sandbox: mode}}))(t).SessionID
			d.Turn(t, id, "go")
			if prompt := model.Last(t).System; strings.Contains(prompt, "# Sandbox of commands") != (want != "") || !strings.Contains(prompt, want) {
				t.Errorf("the prompt is %q", prompt)
			}
		})
	}
}

func TestGitInASandbox(t *testing.T) {
	u := newUser(t)
	const setup = "git init -q . && git config user.email a@b && git config user.name n && echo '#!/bin/sh' > .git/hooks/pre-commit && chmod +x .git/hooks/pre-commit"
	full := protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Sandbox: protocol.SandboxFullAccess}
	if out := u.calls(t, "shell", map[string]any{"command": setup}, full); out.Failure != nil || !strings.Contains(out.Text, "[Exit code 0.]") {
		t.Fatalf("%+v", out)
	}
	within := protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace}
	for _, c := range []struct{ row, command, want string }{
		{"a commit and a branch", "git add file && git commit -qm one && git checkout -qb b && git log --oneline | wc -l", "1\n[Exit code 0.]"},
		{"a linked worktree in the workspace", "git worktree add -q sub && cd sub && echo x > y && git add y && git commit -qm two && git log --oneline | wc -l", "2\n[Exit code 0.]"},
		{"hooks and configuration stay", "for x in 'echo y >> .git/config' 'mv .git/hooks z' 'mv .git z' 'echo y > .git/hooks/post-commit' 'git config core.pager evil' 'rm -rf .git/hooks'; do sh -c \"$x\" 2>/dev/null && echo \"$x\"; done; echo end", "end\n[Exit code 0.]"},
	} {
		t.Run("part11/1 git: "+c.row, func(t *testing.T) {
			if out := u.calls(t, "shell", map[string]any{"command": c.command}, within); !strings.HasPrefix(out.Text, c.want) {
				t.Errorf("%+v\n%q\nwant %q", out.Failure, out.Text, c.want)
			}
		})
	}
}

// at returns the user with another workspace.
func (u user) at(work string) user {
	u.work = work
	return u
}

func TestGitOutsideOfTheWorkspace(t *testing.T) {
	u := newUser(t)
	const setup = "mkdir ../lib pkg && cd ../lib && git init -q . && git -c user.email=a@b -c user.name=n commit -q --allow-empty -m x && cd ../work && git init -q . && " +
		"git config user.email a@b && git config user.name n && git -c protocol.file.allow=always submodule add -q ../lib mod && git -C mod config user.email a@b && " +
		"git -C mod config user.name n && git commit -qam x && git worktree add -q ../tree"
	if out := u.calls(t, "shell", map[string]any{"command": setup}, protocol.ApprovalConfig{Mode: protocol.ApproveAllow, Sandbox: protocol.SandboxFullAccess}); out.Failure != nil || !strings.Contains(out.Text, "[Exit code 0.]") {
		t.Fatalf("%+v", out)
	}
	const commits = "echo x > new && git add new && git commit -qm two && git log --oneline | wc -l; (git config a.b c || git -C $(git rev-parse --git-common-dir) config a.b c) 2>/dev/null && echo configured"
	for row, work := range map[string]string{
		"a subdirectory of a repository": filepath.Join(u.work, "pkg"), "a submodule": filepath.Join(u.work, "mod"), "a linked worktree": filepath.Join(u.home, "tree"),
	} {
		t.Run("part11/1 git commits in "+row, func(t *testing.T) {
			out := u.at(work).calls(t, "shell", map[string]any{"command": commits}, protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace})
			if !strings.HasPrefix(out.Text, "2\n[Exit code 4.]") {
				t.Errorf("%+v\n%q", out.Failure, out.Text)
			}
		})
	}
}

func TestFilesThatStartProgramsAppear(t *testing.T) {
	u := newUser(t)
	const setup = "git init -q . && mkdir githooks && rm -r .git/hooks && ln -s ../githooks .git/hooks && git init -q old && git -C old config core.fsmonitor mine"
	if out := u.calls(t, "shell", map[string]any{"command": setup}, protocol.ApprovalConfig{Mode: protocol.ApproveAllow}); !strings.Contains(out.Text, "[Exit code 0.]") {
		t.Fatalf("%+v", out)
	}
	within := protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace}
	for _, c := range []struct{ row, command, want string }{
		{"a file that takes git's configuration elsewhere", "mkdir evil && cp -r .git/. evil && echo ../evil > .git/commondir", "appeared that start programs outside of the sandbox: .git/commondir (lashd has removed it). Tell"},
		{"the link to the hooks", "rm .git/hooks && mkdir .git/hooks && echo evil > .git/hooks/pre-commit", "the link .git/hooks was replaced (lashd has restored it)"},
		{"a repository with a program in its configuration", "git init -q a/b/new && git -C a/b/new config core.fsmonitor evil", "a/b/new/.git/config (core.fsmonitor)"},
		{"a repository with a hook", "git init -q hooked && echo evil > hooked/.git/hooks/post-checkout", "hooked/.git/hooks/post-checkout"},
		{"a bare repository with a program", "git init -q --bare bare.git && git -C bare.git config filter.x.clean evil", "bare.git/config (filter.clean)"},
		{"a setting on the line of its section", "git init -q line && echo '[core] fsmonitor = evil' >> line/.git/config", "line/.git/config (core.fsmonitor)"},
		{"a file .git that leads elsewhere", "mkdir leads && echo 'gitdir: /tmp/evil' > leads/.git", "leads/.git (it leads git elsewhere)"},
		{"settings of an editor", "mkdir .vscode && echo '{}' > .vscode/tasks.json", ": .vscode."},
		{"a file that direnv reads", "echo evil > .envrc", ": .envrc."},
		{"in the background, too", "touch .bashrc", ": .bashrc."},
		{"an ordinary repository is not reported", "git init -q plain && cd plain && git config user.name n && git config user.email a@b && git commit -q --allow-empty -m x && git branch other && git clone -q . ../copy", ""},
		{"what was there before is not reported", "true", ""},
	} {
		t.Run("part11/1 "+c.row, func(t *testing.T) {
			out := u.calls(t, "shell", map[string]any{"command": c.command}, within)
			_, told, _ := strings.Cut(out.Text, "[Exit code 0.]\n")
			if c.want == "" && told != "" || !strings.Contains(told, c.want) {
				t.Errorf("%q\nwant %q", out.Text, c.want)
			}
		})
	}
	if link, err := os.Readlink(filepath.Join(u.work, ".git", "hooks")); link != "../githooks" {
		t.Errorf("part11/1 the link to the hooks leads to %q: %v", link, err)
	}
	if _, err := os.Lstat(filepath.Join(u.work, ".git", "commondir")); err == nil {
		t.Error("part11/1 the file commondir is still there")
	}
}

func TestHomeAsTheWorkspace(t *testing.T) {
	u := newUser(t)
	t.Setenv("HOME", u.home)
	within := protocol.ApprovalConfig{Sandbox: protocol.SandboxWorkspace}
	home := u.at(u.home)
	t.Run("part11/1 in the home directory, commands read all but secrets and change nothing, and the result says why", func(t *testing.T) {
		out := home.calls(t, "shell", map[string]any{"command": "cat plain .ssh/id state/keys.json 2>/dev/null; echo y > /tmp/y; echo x > new"}, within)
		want := "plain\nsh: 1: cannot create new: Read-only file system\n[Exit code 2.]\n[The command ran in a sandbox (mode readOnly): it cannot change new, because it writes only to /tmp. If it"
		if !strings.HasPrefix(out.Text, want) || !strings.Contains(out.Text, "[Commands cannot change files here, because the workspace contains the home directory. A session in a subdirectory can.]") {
			t.Errorf("%+v\n%q\nwant %q", out.Failure, out.Text, want)
		}
	})
	t.Run("part11/1 in the home directory, the file tools ask", func(t *testing.T) {
		if out := home.calls(t, "write", map[string]any{"path": ".local/bin/git", "content": "evil"}, within); !denied(out) {
			t.Errorf("%+v", out)
		}
		if out := u.calls(t, "write", map[string]any{"path": "notes", "content": "x"}, within); denied(out) {
			t.Errorf("in a subdirectory: %+v", out)
		}
	})
}
